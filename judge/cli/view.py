"""``judge view``: a results folder in the browser."""

from __future__ import annotations

from pathlib import Path

import click

from judge.cli.help import HelpCommand
from judge.cli.local_page import serve_page
from judge.cli.options import option


@click.command(cls=HelpCommand)
@click.argument(
    "results",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default="results",
    required=False,
)
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8484,
    show_default=True,
    help="Port on 127.0.0.1; 0 for any that is free.",
)
@option("--dataset", metavar="SUITE", help="Suite; default: the one that each run remembers.")
def view(results: Path, port: int, dataset: str | None) -> None:
    """Show the runs of the folder RESULTS [results] in the browser.

    Read-only, and for you alone: served on 127.0.0.1, to anyone who has the printed address.
    A list of all runs with their scores, the report of each run, comparisons of runs, and the
    progress of runs that have not finished.
    """
    from judge.report.view import ViewPage  # noqa: PLC0415  `judge view --help` needs no server

    page = ViewPage(results, dataset)
    serve_page(page, "judge view", said=f"runs of {results}", port=port, no_browser=True)
    raise KeyboardInterrupt
