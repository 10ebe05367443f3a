"""``judge report``: writes a run as HTML, Markdown, JSON or CSV, and an episode as an animation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from judge import api
from judge.api.options import ScoreOptions
from judge.cli.help import HelpCommand, OneOf
from judge.cli.options import bootstrap_options, option, options_of, sandbox_option
from judge.cli.output import write_file, write_text
from judge.console import make_console
from judge.errors import UsageError

if TYPE_CHECKING:
    from judge.report.model import Method

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
