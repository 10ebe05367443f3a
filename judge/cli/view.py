"""``judge view``, and the function that commands use to serve a local page in the browser."""

from __future__ import annotations

import contextlib
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from judge import api
from judge.cli.help import HelpCommand
from judge.cli.options import option
from judge.cli.signals import EndSignal

if TYPE_CHECKING:
    from judge.local_page import LocalPage


def serve_page(
    page: LocalPage,
    title: str,
    *,
    message: str,
    port: int,
    no_browser: bool,
    on_listening: Callable[[], None] = lambda: None,
) -> None:
    """Serves a page until the user presses Ctrl-C.

    Args:
        page: the page.
        title: title of the file that redirects the browser to the page.
        message: what is printed in front of the address.
        port: the port; 0 for any free one.
        no_browser: only print the address, and open no browser.
        on_listening: called once the address is known.

    Raises:
        UsageError: the port is taken.
        EndSignal: SIGTERM or SIGHUP was received.
    """
    from judge import local_page  # noqa: PLC0415  `--help` needs none of it

    listener = local_page.listen(page, port)
    click.echo(f"{message}: {page.address}\nCtrl-C ends it.")
    on_listening()
    try:
        with contextlib.closing(listener), api.redirect_to(page.address, title) as redirect:
            # Once the page is open, the file is not needed, even if the printed address was used.
            page.on_open = redirect.remove
            if no_browser:
                redirect.remove()
            else:
                webbrowser.open(redirect.uri)
            local_page.server_of(page).run(sockets=[listener])
    except EndSignal:
        raise
    except KeyboardInterrupt:
        pass
    finally:
        page.give_up()


@click.command(cls=HelpCommand, examples=("view results/", "view results/ --port 8080"))
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
@option("--dataset", metavar="SUITE", help="Suite; default: the one that each run names.")
def view(results: Path, port: int, dataset: str | None) -> None:
    """Show the runs of the folder RESULTS [results] in the browser.

    Shows a list of all runs with their scores, the report of each run, comparisons of runs, and
    the progress of unfinished runs. The pages are read-only, and are served only on 127.0.0.1, to
    anyone who has the printed address.
    """
    page = api.ViewPage(results, dataset)
    serve_page(page, "judge view", message=f"runs of {results}", port=port, no_browser=True)
    raise KeyboardInterrupt
