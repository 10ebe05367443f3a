"""How the browser gets the page's address without anyone else on the machine learning it."""

from __future__ import annotations

import http.client
import re
import stat
import threading
import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import uvicorn
from click.testing import CliRunner

import judge.annotate.web.server
import judge.local_page
from judge.annotate.web.server import Page
from judge.annotate.web.session import AnnotationSession
from judge.cli.groups import annotate
from judge.local_page import redirect_to
from tests.unit.annotate.conftest import suite

__all__ = ["suite"]


def test_only_its_owner_can_read_the_file() -> None:
    with redirect_to("http://127.0.0.1:1/?token=secret&x=<") as redirect:
        assert "secret" not in redirect.uri
        assert stat.S_IMODE(redirect.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(redirect.path.parent.stat().st_mode) == 0o700
        assert "0; url=http://127.0.0.1:1/?token=secret&amp;x=&lt;" in redirect.path.read_text()
        redirect.remove()
        assert not redirect.path.parent.exists()
    with redirect_to("http://127.0.0.1:1/") as redirect:
        pass
    assert not redirect.path.parent.exists()


class Browser:
    """Records how it is started, follows the address as a browser would, and presses Ctrl-C."""

    def __init__(self) -> None:
        self.started_with: list[str] = []
        self.file: Path | None = None
        self.status = 0
        self.removed_when_open = False
        self.server: uvicorn.Server | None = None

    def open(self, what: str) -> None:
        self.started_with.append(what)
        self.file = Path(unquote(urlsplit(what).path))
        found = re.search(r'url=([^"]+)"', self.file.read_text())
        assert found is not None
        threading.Thread(target=self._follow, args=(found[1],)).start()

    def _follow(self, address: str) -> None:
        parts = urlsplit(address)
        connection = http.client.HTTPConnection("127.0.0.1", parts.port, timeout=120)
        connection.request("GET", f"/?{parts.query}", headers={"Host": parts.netloc})
        self.status = connection.getresponse().status
        assert self.file is not None
        self.removed_when_open = not self.file.exists()
        connection.close()
        assert self.server is not None
        self.server.should_exit = True


def test_the_browser_is_not_started_with_the_token(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Browser()
    made = judge.local_page.server_of

    def server_of(page: Page) -> uvicorn.Server:
        browser.server = made(page)
        return browser.server

    # The engines are not what this is about.
    monkeypatch.setattr(AnnotationSession, "warm_up", lambda _: None)
    monkeypatch.setattr(judge.local_page, "server_of", server_of)
    monkeypatch.setattr(judge.annotate.web.server, "check_grid", lambda: None)
    monkeypatch.setattr(webbrowser, "open", browser.open)
    shown = CliRunner().invoke(annotate, ["page", str(suite), "7", "--author", "Ann"])
    assert shown.exit_code == 0, shown.output
    (given,) = browser.started_with
    (token,) = re.findall(r"token=(\S+)", shown.stdout)
    assert token not in given
    assert given.startswith("file:///")
    assert browser.status == 200
    assert browser.removed_when_open
