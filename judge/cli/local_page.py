"""Serves a page of this machine until it is interrupted, and opens it in the browser."""

from __future__ import annotations

import contextlib
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from judge.cli.signals import Ended

if TYPE_CHECKING:
    from judge.web.local_page import LocalPage


def serve_page(
    page: LocalPage,
    title: str,
    *,
    said: str,
    port: int,
    no_browser: bool,
    on_listening: Callable[[], None] = lambda: None,
) -> None:
    """Serves a page; returns after Ctrl-C, which is how a page is left.

    Args:
        page: the page.
        title: of the file that sends the browser on.
        said: what is printed in front of the address.
        port: 0 for any free one.
        no_browser: whether the address is only printed.
        on_listening: called once the address is known.

    Raises:
        UsageError: the port is taken.
        Ended: SIGTERM or SIGHUP came.
    """
    from judge.web import local_page  # noqa: PLC0415  `--help` needs none of it
    from judge.web.local_page import redirect_to  # noqa: PLC0415  likewise

    listener = local_page.listen(page, port)
    click.echo(f"{said}: {page.address}\nCtrl-C ends it.")
    on_listening()
    try:
        with contextlib.closing(listener), redirect_to(page.address, title) as redirect:
            # Whoever came by the printed address needs no file either.
            page.on_open = redirect.remove
            if no_browser:
                redirect.remove()
            else:
                webbrowser.open(redirect.uri)
            local_page.server_of(page).run(sockets=[listener])
    except Ended:
        raise
    except KeyboardInterrupt:
        pass
    finally:
        page.give_up()
