"""All local pages share one entry: who is let in, and how many requests at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.requests import Request

from judge import local_page
from judge.annotate.web.server import Page
from judge.local_page import MAX_AT_WORK, MAX_WAITING, LocalPage, check_wanted
from judge.report.view import ViewPage
from judge.sessions.live import LivePage
from judge.sessions.review import ReviewPage
from tests.unit.serving import answer_of, ask, begin, served

WAIT_S = 30


class Scripted(LocalPage):
    """A page whose work waits until it is released, and records its end."""

    def __init__(self, *, only_reads: bool = True) -> None:
        super().__init__("judge test", "default-src 'none'", only_reads=only_reads)
        self.begun: list[str] = []
        self.given_up: list[str] = []
        self.finished: list[str] = []
        self.let_go = threading.Event()
        self.changed = threading.Condition()

    def index(self) -> str:
        return "<p>the page"

    def respond(
        self, method: str, path: str, request: Request, body: bytes
    ) -> dict[str, Any] | None:
        if path == "/api/slow":
            self._take_long(f"{method} {request.url.query}")
        elif path == "/api/deep":
            return dict(local_page.object_of(body))
        elif path != "/api/quick":
            return None
        return {"path": path}

    def _take_long(self, name: str) -> None:
        self._note(self.begun, name)
        while not self.let_go.wait(0.01):
            try:
                check_wanted()
            except local_page.UnwantedError:
                self._note(self.given_up, name)
                raise
        self._note(self.finished, name)

    def _note(self, where: list[str], name: str) -> None:
        with self.changed:
            where.append(name)
            self.changed.notify_all()

    def wait_for(self, where: list[str], count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(where) >= count, WAIT_S)


@pytest.fixture
def page() -> Iterator[Scripted]:
    with served(Scripted()) as page:
        assert isinstance(page, Scripted)
        yield page
        page.let_go.set()


def test_every_page_of_this_machine_is_behind_it() -> None:
    pages = {Page, LivePage, ReviewPage, ViewPage}
    assert pages <= set(LocalPage.__subclasses__())
    for kind in pages:
        assert not vars(kind).keys() & {"_serve", "_turned_away", "_is_token", "__call__"}


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/api/quick"])
def test_other_methods_are_refused(page: Scripted, method: str, path: str) -> None:
    status, headers, _ = ask(page, method, f"{path}?token={page.token}")
    assert status == 405
    # A browser that asks beforehand is told nothing that would let it go on.
    assert not [name for name in headers if name.lower().startswith("access-control-")]


def test_a_document_cannot_be_posted_to(page: Scripted) -> None:
    assert ask(page, "POST", f"/?token={page.token}", body=b"{}")[0] == 405
    assert ask(page, "GET", f"/?token={page.token}")[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "http://localhost:{port}"}, 403),
        ({"Origin": "https://127.0.0.1:{port}"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        (
            {
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "navigate",
                "Sec-Fetch-Dest": "document",
            },
            403,
        ),
    ],
)
def test_requests_of_other_pages_are_refused(
    page: Scripted, headers: dict[str, str], status: int
) -> None:
    given = {name: value.format(port=page.port) for name, value in headers.items()}
    assert ask(page, "GET", "/api/quick", given)[0] == status
    assert ask(page, "POST", "/api/quick", given, b"{}")[0] == status


@pytest.mark.parametrize(
    ("mode", "dest", "status"),
    [("navigate", "document", 200), ("navigate", "iframe", 403), ("no-cors", "image", 403)],
)
def test_a_link_to_a_document_may_be_anywhere(
    page: Scripted, mode: str, dest: str, status: int
) -> None:
    """The file that redirects the browser counts as one; a frame or a picture does not."""
    given = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    assert answer_of(begin(page, "GET", f"/?token={page.token}", given))[0] == status


def test_a_stranger_is_sent_away_before_anything_is_read(page: Scripted) -> None:
    """The announced body never arrives."""
    for headers in ({}, {"X-Judge-Token": "guess"}):
        connection = begin(page, "POST", "/api/slow", {**headers, "Content-Length": "1000"})
        assert answer_of(connection)[0] == 403
    assert page.begun == []


def test_the_token_is_shown_only_to_those_who_have_it(page: Scripted) -> None:
    for path in ("/", "/api/quick", "/nothing", "/?token=guess"):
        status, headers, body = answer_of(begin(page, "GET", path))
        assert status == 403
        assert page.token not in str(headers)
        assert page.token.encode() not in body
    headers = ask(page, "GET", f"/?token={page.token}")[1]
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Set-Cookie" not in headers


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a": ' * 500 + b"1" + b"}" * 500, b"9" * 5000, b"\xff", b"nope"]
)
def test_what_is_not_an_object_is_refused(
    page: Scripted, body: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(page, "POST", "/api/deep", body=body)[0] == 400
    assert capfd.readouterr().err == ""


def test_equal_requests_share_one_answer(page: Scripted) -> None:
    waiting = [begin(page, "GET", "/api/slow", {"X-Judge-Token": page.token}) for _ in range(20)]
    page.wait_for(page.begun, 1)
    # In turn with the others: by its answer, they have come in.
    assert ask(page, "GET", "/api/quick")[0] == 200
    page.let_go.set()
    assert {answer_of(each)[0] for each in waiting} == {200}
    assert page.begun == ["GET "]


def test_what_changes_something_is_never_shared() -> None:
    with served(Scripted(only_reads=False)) as page:
        assert isinstance(page, Scripted)
        headers = {"X-Judge-Token": page.token}
        waiting = [begin(page, method, "/api/slow", headers, b"") for method in ["GET", "POST"] * 2]
        page.wait_for(page.begun, 4)
        page.let_go.set()
        assert {answer_of(each)[0] for each in waiting} == {200}


def test_work_is_given_up_when_the_last_client_has_gone(page: Scripted) -> None:
    first, second = (
        begin(page, "GET", "/api/slow", {"X-Judge-Token": page.token}) for _ in range(2)
    )
    page.wait_for(page.begun, 1)
    assert ask(page, "GET", "/api/quick")[0] == 200
    first.close()
    assert ask(page, "GET", "/api/quick")[0] == 200
    assert page.given_up == []
    second.close()
    page.wait_for(page.given_up, 1)
    assert page.finished == []


def test_a_change_is_made_even_if_its_client_has_gone(page: Scripted) -> None:
    connection = begin(page, "POST", "/api/slow", {"X-Judge-Token": page.token}, b"{}")
    page.wait_for(page.begun, 1)
    connection.close()
    assert ask(page, "GET", "/api/quick")[0] == 200
    page.let_go.set()
    page.wait_for(page.finished, 1)
    assert page.given_up == []


def test_so_many_requests_and_no_more(page: Scripted) -> None:
    headers = {"X-Judge-Token": page.token}
    waiting = [begin(page, "GET", f"/api/slow?{n}", headers) for n in range(MAX_WAITING)]
    page.wait_for(page.begun, MAX_AT_WORK)
    while len(page._jobs) < MAX_WAITING:
        time.sleep(0.01)
    for number in range(3):
        status, told, _ = ask(page, "GET", f"/api/slow?more{number}")
        assert (status, told["Retry-After"]) == (503, "1")
    assert len(page.begun) == MAX_AT_WORK
    page.let_go.set()
    assert {answer_of(each)[0] for each in waiting} == {200}
    assert len(page.finished) == MAX_WAITING


def test_nothing_is_begun_once_the_server_ends(page: Scripted) -> None:
    connection = begin(page, "GET", "/api/slow", {"X-Judge-Token": page.token})
    page.wait_for(page.begun, 1)
    page.give_up()
    assert answer_of(connection)[0] == 503
    assert ask(page, "GET", "/api/slow?2")[0] == 503
    assert page.begun == ["GET "]
