"""``judge compare-runs``: several runs on the same tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge.cli.help import HelpCommand, OneOf
from judge.cli.options import bootstrap_options, option
from judge.cli.out_file import write_text
from judge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from judge.report.desktop.episodes import SettingRow
    from judge.report.pairing import RunComparison


@click.command("compare-runs", cls=HelpCommand)
@click.argument("first", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument(
    "others", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@option(
    "--format",
    "form",
    type=OneOf(["text", "markdown", "html", "json"]),
    default="text",
    show_default=True,
    help="What to write; of desktop episodes, all but text have a row for each run.",
)
@option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="File for --format markdown, html or json. [stdout]",
)
@bootstrap_options
@option("--json", "as_json", is_flag=True, help="The same as --format json.")
def compare_runs(
    first: Path,
    others: tuple[Path, ...],
    form: str,
    out: Path | None,
    seed: int | None,
    resamples: int | None,
    as_json: bool,
) -> None:
    """Compare runs on the tasks that all of them have.

    Hard scores by McNemar's exact test, soft scores by the paired bootstrap with tasks as clusters;
    with several pairs, p is adjusted by Holm's method. A positive difference favours the run that
    is named second. Of runs with desktop episodes, a table has the settings of each and the tasks
    that it solved, by class.
    """
    from judge.api.comparing import compare_runs as compare  # noqa: PLC0415  for a quick --help

    form = _form(form, out, as_json=as_json)
    comparison = compare(first, *others, seed=seed, resamples=resamples)
    if form == "text":
        _print(comparison)
    else:
        write_text(_written(comparison, form), out)


def _form(form: str, out: Path | None, *, as_json: bool) -> str:
    """The form that the options ask for."""
    if as_json and form not in {"text", "json"}:
        raise UsageError(f"--json and --format {form} are two forms", hint="Give one of them.")
    form = "json" if as_json else form
    if form == "text" and out is not None:
        raise UsageError(
            "--out is for --format markdown, html or json, not for text", hint="Add --format."
        )
    return form


def _written(comparison: RunComparison, form: str) -> str:
    from judge.report.html.runs import render_comparison  # noqa: PLC0415
    from judge.report.markdown import comparison_markdown  # noqa: PLC0415  as above

    if form == "html":
        return render_comparison(comparison)
    if form == "markdown":
        return comparison_markdown(comparison)
    return json.dumps(comparison.to_json(), ensure_ascii=False) + "\n"


def _print(comparison: RunComparison) -> None:
    from judge.cli.listing import print_table, table  # noqa: PLC0415
    from judge.console import make_console, styled  # noqa: PLC0415
    from judge.report.markdown import (  # noqa: PLC0415
        closing_lines,
        head_lines,
        pair_lines,
        with_interval,
    )

    console = make_console()
    for line in head_lines(comparison):
        console.print(styled((line, "yellow")), soft_wrap=True)
    console.print(f"{comparison.tasks} tasks in common")
    scores = table("!run", "!profile", "recalc", "soft % [interval]", "hard % [interval]")
    for run in comparison.runs:
        scores.add_row(
            run.name,
            run.profile,
            run.recalc,
            with_interval(run.soft_restriction),
            with_interval(run.hard_restriction),
        )
    print_table(scores, console)
    if comparison.settings:
        console.print("desktop episodes; solved tasks in %")
        print_table(_settings_table(comparison.settings), console)
    for pair in comparison.pairs:
        heading, *lines = pair_lines(comparison, pair)
        for line in (heading, *(f"  {each}" for each in lines)):
            console.print(line, soft_wrap=True)
    for line in closing_lines(comparison):
        console.print(styled((line, "dim")), soft_wrap=True)


def _settings_table(runs: Sequence[SettingRow]) -> Table:
    """Settings of the desktop episodes, and success by class of tasks; a column for each run."""
    from judge.cli.listing import table  # noqa: PLC0415
    from judge.report.desktop.counts import differing, plan_in_words  # noqa: PLC0415
    from judge.report.markdown import percent  # noqa: PLC0415

    shown = table("")
    for run in runs:
        shown.add_column(run.name, no_wrap=True)
    shown.add_row("model", *(run.model or "-" for run in runs))
    shown.add_row("observation", *(run.observation or "-" for run in runs))
    shown.add_row("action space", *(run.action_space or "-" for run in runs))
    shown.add_row("history", *("-" if run.history is None else str(run.history) for run in runs))
    shown.add_row("instruction", *map(plan_in_words, runs))
    shown.add_row("gui only", *("yes" if run.gui_only else "no" for run in runs))
    for name in differing(runs):
        shown.add_row(name, *(run.details.get(name, "-") for run in runs))
    shown.add_row("episodes", *(str(run.episodes) for run in runs))
    for cells in zip(*(run.cells for run in runs), strict=True):
        label = f"{cells[0].heading} {cells[0].label}".strip()
        shown.add_row(label, *(f"{percent(cell.solved.value)} of {cell.tasks}" for cell in cells))
    return shown
