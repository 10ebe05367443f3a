"""``judge report``, ``judge compare-runs`` and ``judge audit``: finished runs.

``judge report`` writes a run as HTML, Markdown, JSON or CSV, and an episode as an animation.
``judge audit`` has a person mark a sample of the verdicts, and computes rates of errors.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from judge import api
from judge.api.options import ScoreOptions
from judge.cli.help import HelpCommand, OneOf
from judge.cli.options import bootstrap_options, json_option, option, options_of, sandbox_option
from judge.cli.output import print_table, table, write_file, write_text
from judge.console import counted, make_console, styled
from judge.core.statistics import SEED
from judge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from judge.core.statistics import Estimate
    from judge.report.audit import AuditRates
    from judge.report.desktop.episodes import SettingRow
    from judge.report.model import Method
    from judge.report.pairing import RunComparison

HTML_FILE = "report.html"
ATIF_FOLDER = "atif"


@click.command(
    cls=HelpCommand,
    examples=(
        "report results/mine",
        "report results/mine --format csv --table tasks --out tasks.csv",
    ),
)
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@option(
    "--format",
    "form",
    type=OneOf(["html", "markdown", "json", "csv", "gif", "webp", "atif"]),
    default="html",
    show_default=True,
    help="What to write.",
)
@option(
    "--out",
    type=click.Path(allow_dash=True, path_type=Path),
    help="File to write; for ATIF, a folder. [HTML, GIF, WEBP, ATIF: in RUN; all else: stdout]",
)
@option(
    "--table",
    type=OneOf(
        [
            *("scores", "paper", "tasks", "cases", "items"),
            *("episodes", "settings", "histogram", "endings"),
        ]
    ),
    default="scores",
    show_default=True,
    help="Which table to write as CSV.",
)
@option("--case", metavar="ID/N", help="Desktop episode to show with gif or webp.")
@option(
    "--sample", type=click.IntRange(min=0), default=0, help="Which of the task's solutions, from 0."
)
@options_of(ScoreOptions, "dataset suspects")
@sandbox_option
@bootstrap_options
def report(
    run: Path,
    form: str,
    out: Path | None,
    table: str,
    case: str | None,
    sample: int,
    dataset: str | None,
    suspects: Path | None,
    sandbox: str,
    seed: int | None,
    resamples: int | None,
) -> None:
    """Report on RUN: scores with intervals, subsets, verdicts, differences, time and cost.

    HTML is one file that opens from disk. It has a page for each task and its workbooks, on which
    desktop episodes can be watched turn by turn. Nothing is run and nothing is judged.

    With --format gif or webp, writes the desktop episode of one --case as an animation; with
    --format atif, writes each episode of tools as a trajectory that Harbor reads.
    """
    if form != "atif" and out is not None and out.is_dir():
        raise UsageError(f"--out {out}: is a folder", hint="Name a file.")
    if form == "atif":
        folder = out or run / ATIF_FOLDER
        count = api.write_atif(run, folder)
        make_console(err=True).print(f"{count} trajectories: {folder}")
        return
    if form in {"gif", "webp"}:
        _write_film(run, case, sample, form, sandbox, out)
        return
    if case is not None:
        raise UsageError(f"--case is for --format gif and webp, not for {form}")

    method = api.method_of(seed=seed, resamples=resamples)
    if form == "html":
        write_text(_html(run, dataset, suspects, method, sandbox), out or run / HTML_FILE)
        return
    report = api.Report.of_run(run, dataset=dataset, suspects=suspects, method=method)
    forms: dict[str, Callable[[], str]] = {
        "json": report.to_json,
        "markdown": report.to_markdown,
        "csv": lambda: report.to_csv(table),
    }
    write_text(forms[form](), out)


def _write_film(
    run: Path, case: str | None, sample: int, form: str, sandbox: str, out: Path | None
) -> None:
    """Writes one episode as a GIF or a WebP."""
    if case is None:
        raise UsageError("which episode should be shown?", hint="Add --case ID/N.")
    task_id, slash, number = case.rpartition("/")
    if not slash or not number.isdecimal():
        raise UsageError(f"--case {case}: write the task and the number of the case, as 59196/1")
    if str(out) == "-":
        raise UsageError("an animation cannot be written to stdout", hint="Give --out FILE.")
    data = api.film_of_case(run, task_id, int(number), sample=sample, form=form, sandbox=sandbox)
    out = (
        out or run / f"{quote(task_id, safe=' ', errors='surrogatepass')}.{sample}.{number}.{form}"
    )
    write_file(data, out)


def _html(
    run: Path, dataset: str | None, suspects: Path | None, method: Method, sandbox: str
) -> str:
    """Returns the HTML report; shows a progress bar if stderr is a terminal."""
    from rich.progress import (  # noqa: PLC0415  as above
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TimeRemainingColumn,
    )

    console = make_console(err=True)
    columns = ("task pages", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        contextlib.closing(api.FilmStudio(lambda: api.open_sandbox(sandbox))) as studio,
        Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        ) as progress,
    ):
        bar = progress.add_task("task pages", total=None)

        def show(done: int, total: int) -> None:
            progress.update(bar, completed=done, total=total)

        return api.report_html(
            run,
            dataset=dataset,
            suspects=suspects,
            method=method,
            shrink=studio.shrink,
            on_page=show,
        )


@click.command(
    cls=HelpCommand,
    examples=(
        "audit results/mine --sample 50",
        "audit results/mine --read results/mine/audit.xlsx",
        "audit results/mine --items 40 --out items.json",
    ),
)
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@option(
    "--sample",
    "size",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="How many instructions to draw, each with all of its cases.",
)
@option("--seed", type=int, help="Seed of the draw, or of the intervals. [20240624]")
@option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Sheet to write, .xlsx or .csv. [audit.xlsx in RUN]",
)
@option("--dataset", metavar="SUITE", help="Suite; default: the one that the run remembers.")
@option(
    "--read",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Read a marked sheet back and print the rates.",
)
@option(
    "--items",
    type=click.IntRange(min=1),
    metavar="N",
    help="Draw N items of checklists instead, for `judge checklist take`.",
)
@json_option("the rates")
def audit(
    run: Path,
    size: int,
    seed: int | None,
    out: Path | None,
    dataset: str | None,
    read: Path | None,
    items: int | None,
    as_json: bool,
) -> None:
    """Have a person mark a sample of the verdicts of RUN, and show how far they can be trusted.

    Writes a sheet with instruction, verdict, differences and links to the workbooks. Fill in right
    or wrong; --read then gives the four rates of the benchmark's paper with intervals. With
    --items, the sheet has single items of checklists, without the judge's marks.
    """
    if items is not None:
        _draw_items(run, items, SEED if seed is None else seed, out or run / "items.json")
        return
    if read is not None:
        rates = api.read_audit(run, read, seed=seed)
        click.echo(
            json.dumps(rates.to_json(), ensure_ascii=False) if as_json else "\n".join(_lines(rates))
        )
        return
    audit = api.make_audit(
        run, size=size, out=out, dataset=dataset, **({} if seed is None else {"seed": seed})
    )
    drawn = len(audit.sample.submissions)
    click.echo(
        f"{audit.sheet}: {drawn} of {audit.sample.population} instructions, "
        f"{len(audit.sample.verdicts)} cases, seed {audit.sample.seed}"
    )
    click.echo(f"fill in right or wrong, then: judge audit {run} --read {audit.sheet}")


def _draw_items(run: Path, size: int, seed: int, out: Path) -> None:
    from judge.report.load import load_run  # noqa: PLC0415  for a quick --help
    from judge.report.marks import draw_items, write_item_sheet  # noqa: PLC0415

    drawn = draw_items(load_run(run), size, seed)
    write_item_sheet(out, drawn)
    click.echo(f"{out}: {len(drawn)} items, seed {seed}")
    click.echo(f"fill in score (0 to 1), then: judge checklist take {run} {out} --by NAME")


def _lines(rates: AuditRates) -> list[str]:
    cases, solved = rates.cases, rates.solved
    false_yes, false_no = cases.false_positive, cases.false_negative
    marked = (
        f"audit {rates.sample_id}: {rates.marked_cases} of {rates.sampled_cases} cases and "
        f"{rates.whole_instructions} of {rates.sampled_instructions} instructions with all of "
        "their cases are marked"
    )
    lines = [
        marked,
        _line(
            "test case, false discovery",
            rates.case_false_discovery,
            false_yes,
            false_yes + cases.true_positive,
            "accepted cases are wrong",
        ),
        _line(
            "test case, false omission",
            rates.case_false_omission,
            false_no,
            false_no + cases.true_negative,
            "cases that were not accepted are right",
        ),
        _line(
            "instruction, false positive",
            rates.instruction_false_positive,
            rates.false_positive_instructions,
            rates.whole_instructions,
            "instructions have a wrong case that was accepted",
        ),
        _line(
            "instruction, false negative",
            rates.instruction_false_negative,
            rates.false_negative_instructions,
            rates.whole_instructions,
            "instructions have a right case that was not accepted",
        ),
    ]
    if rates.marked_instructions:
        lines.append(
            f"  {solved.true_positive + solved.false_positive} of {rates.marked_instructions} "
            f"instructions are called solved, {solved.false_positive} of them wrongly; "
            f"{solved.false_negative} of the others are solved"
        )
    if rates.marked_by_cases:
        lines.append(
            f"{rates.marked_by_cases} instructions are not marked; their marks follow from those "
            "of their cases"
        )
    if rates.rejudged_cases:
        lines.append(
            f"{rates.rejudged_cases} cases got another verdict after the sample was drawn; the "
            "rates use the earlier one, which is the one that was marked"
        )
    return lines


def _line(name: str, rate: Estimate, count: int, total: int, unit: str) -> str:
    return f"  {name:28} {api.with_interval(rate):>24} %   {count} of {total} {unit}"


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
    console.print(f"{counted(comparison.tasks, 'task')} in common")
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
