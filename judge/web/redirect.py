"""The page's address for the browser, past everybody else on the machine.

A browser gets what it should open on its command line, which every user of the machine can see,
and the address holds the token. So the browser is given the name of a file that only its owner can
read, and the file sends it on.
"""

from __future__ import annotations

import contextlib
import html
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from judge.files.writing import write_new

_PAGE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>{title}</title>
<a href="{address}">Open the page</a>
"""


class Redirect:
    """A file that sends a browser on to an address.

    Args:
        folder: a private folder, which belongs to the file alone.
        address: where to.
        title: the title of the page.
    """

    def __init__(self, folder: Path, address: str, title: str) -> None:
        self._folder = folder
        self.path = folder / "page.html"
        write_new(
            self.path,
            _PAGE.format(address=html.escape(address), title=html.escape(title)).encode(),
            mode=0o600,
        )

    @property
    def uri(self) -> str:
        """What to give to a browser; holds no secret."""
        return self.path.as_uri()

    def remove(self) -> None:
        """Takes the file and its folder away; safe to call twice, and from any thread."""
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def redirect_to(address: str, title: str = "judge annotate") -> Iterator[Redirect]:
    """A redirect to an address, in a folder that nobody else can enter; removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="judge-page-"))  # mode 0700
    try:
        yield Redirect(folder, address, title)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
