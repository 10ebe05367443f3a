"""``judge compare-runs``: compares several runs on the same tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge import api
from judge.cli.help import HelpCommand, OneOf
from judge.cli.options import bootstrap_options, option
from judge.cli.output import print_table, table, write_text
from judge.console import make_console, styled
from judge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from judge.report.desktop.episodes import SettingRow
    from judge.report.pairing import RunComparison


@click.command(
    "compare-runs",
    cls=HelpCommand,
    examples=(
        "compare-runs results/a results/b",
        "compare-runs results/a results/b --format html --out both.html",
    ),
)
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
    help="Format of the comparison; for desktop episodes, all but text have a row for each run.",
)
@option(
    "--out",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="File for --format markdown, html or json. [stdout]",
)
@option(
    "--by",
    type=OneOf(["runs", "tools"]),
    default="runs",
    show_default=True,
    help="Rows of the table of scores: runs, or the tool sets of episodes, with their cost.",
)
@bootstrap_options
@option("--json", "as_json", is_flag=True, help="The same as --format json.")
def compare_runs(
    first: Path,
    others: tuple[Path, ...],
    form: str,
    out: Path | None,
    by: str,
    seed: int | None,
    resamples: int | None,
    as_json: bool,
) -> None:
    """Compare runs on the tasks that all of them have.

    Compares hard scores by McNemar's exact test, and soft scores by the paired bootstrap with tasks
    as clusters; with several pairs, p is adjusted by Holm's method. A positive difference favours
    the run that is named second. For runs with desktop episodes, a table shows the settings of each
    run and the tasks that it solved, by class.
    """
    form = _form(form, out, as_json=as_json)
    comparison = api.compare_runs(first, *others, seed=seed, resamples=resamples)
    by_tools = api.tools_table(comparison)
    if by == "tools" and by_tools is None:
        raise UsageError(
            "--by tools: none of the runs has episodes of tools",
            hint="judge infer --mode tools makes such runs, and judge score FOLDER --trajectories.",
        )
    if form == "text":
        _print(comparison, by_tools if by == "tools" else None)
    else:
        write_text(_written(comparison, form), out)


def _form(form: str, out: Path | None, *, as_json: bool) -> str:
    """Returns the output format that the options select."""
    if as_json and form not in {"text", "json"}:
        raise UsageError(
            f"--json and --format {form} are two different formats", hint="Give one of them."
        )
    form = "json" if as_json else form
    if form == "text" and out is not None:
        raise UsageError(
            "--out is for --format markdown, html or json, not for text", hint="Add --format."
        )
    return form


def _written(comparison: RunComparison, form: str) -> str:
    if form == "html":
        return api.render_comparison(comparison)
    if form == "markdown":
        return api.comparison_markdown(comparison)
    return json.dumps(comparison.to_json(), ensure_ascii=False) + "\n"


def _print(comparison: RunComparison, by_tools: tuple[list[str], list[list[str]]] | None) -> None:
    console = make_console()
    for line in api.head_lines(comparison):
        console.print(styled((line, "yellow")), soft_wrap=True)
    console.print(f"{comparison.tasks} tasks in common")
    figures = (f"{heading} % [interval]" for heading in api.figure_headings(comparison))
    scores = table(
        *("!run", "!profile", "recalc", "soft % [interval]", "hard % [interval]"), *figures
    )
    for run in comparison.runs:
        scores.add_row(
            run.name,
            run.profile,
            run.recalc,
            api.with_interval(run.soft_restriction),
            api.with_interval(run.hard_restriction),
            *api.figure_cells(comparison, run),
        )
    if by_tools is not None:
        headings, rows = by_tools
        scores = table(*(f"!{heading}" for heading in headings[:1]), *headings[1:])
        for row in rows:
            scores.add_row(*row)
    print_table(scores, console)
    if comparison.settings:
        console.print("desktop episodes; solved tasks in %")
        print_table(_settings_table(comparison.settings), console)
    for pair in comparison.pairs:
        heading, *lines = api.pair_lines(comparison, pair)
        for line in (heading, *(f"  {detail}" for detail in lines)):
            console.print(line, soft_wrap=True)
    for line in api.closing_lines(comparison):
        console.print(styled((line, "dim")), soft_wrap=True)


def _settings_table(runs: Sequence[SettingRow]) -> Table:
    """Makes a table of settings and successes of desktop episodes, with a column for each run."""
    from judge.report.desktop.counts import differing, plan_in_words  # noqa: PLC0415  for a quick --help
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
