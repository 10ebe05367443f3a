"""Who may send requests to the page's server, and what it reveals."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from judge.annotate.web.server import GRID_FILES, STATIC_FILES, Page, check_grid, page_folder
from judge.errors import UsageError
from judge.local_page import MAX_BODY_BYTES, TOKEN_HEADER, listen

Answer = tuple[int, http.client.HTTPMessage, bytes]


def ask(
    page: Page,
    method: str,
    path: str,
    *,
    body: object = None,
    host: str | None = None,
    token: str | None = None,
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=120)
    headers = {"Host": host or f"127.0.0.1:{page.port}"}
    headers[TOKEN_HEADER] = page.token if token is None else token
    data = None if body is None else json.dumps(body).encode()
    connection.putrequest(method, path, skip_host=True)
    if data is not None:
        headers["Content-Length"] = str(len(data))
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders(data)
    answer = connection.getresponse()
    found = answer.status, answer.msg, answer.read()
    connection.close()
    return found


def json_of(answer: Answer) -> Any:
    return json.loads(answer[2])


def test_the_page_needs_the_token(page: Page) -> None:
    status, headers, body = ask(page, "GET", f"/?token={page.token}")
    assert status == 200
    assert page.token in body.decode()
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert ask(page, "GET", "/")[0] == 403
    assert ask(page, "GET", "/?token=guess")[0] == 403
    assert ask(page, "GET", "/?token=%F0%9F%98%80")[0] == 403


@pytest.mark.parametrize("token", ["", "guess", "é"])
def test_so_does_everything_that_reads_or_changes(page: Page, token: str) -> None:
    for method, path in (("GET", "/api/state"), ("GET", "/api/window"), ("POST", "/api/change")):
        status, _, body = ask(page, method, path, body={}, token=token.encode().decode("latin-1"))
        assert status == 403
        assert b"suite" not in body


@pytest.mark.parametrize(
    "host", ["evil.test", "evil.test:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.test"]
)
def test_a_name_of_somebody_else_for_this_machine_is_refused(page: Page, host: str) -> None:
    """A website whose name is made to point to 127.0.0.1 gets nothing, with or without a token."""
    host = host.format(port=page.port)
    for path in (f"/?token={page.token}", "/api/state", "/static/app.js"):
        assert ask(page, "GET", path, host=host)[0] == 421
    assert ask(page, "GET", "/api/state", host=f"localhost:{page.port}")[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/../session.py",
        "/static/%2e%2e/session.py",
        "/static/..%2fdesk.py",
        "/static//etc/passwd",
        "/static/",
        "/static",
        "/grid/../static/index.html",
        "/grid/versions.txt",
        "/static/index.html",
        "//static/app.js",
        "/etc/passwd",
    ],
)
def test_files_beyond_the_list_are_not_served(page: Page, path: str) -> None:
    assert ask(page, "GET", path)[0] == 404


def test_the_pages_files_are_served(page: Page) -> None:
    for name, kind in STATIC_FILES.items():
        status, headers, body = ask(page, "GET", f"/static/{name}", token="")
        assert (status, headers["X-Content-Type-Options"]) == (200, "nosniff")
        assert headers["Content-Type"].startswith(kind)
        assert body == (page_folder() / "static" / name).read_bytes()


def test_a_change_and_what_it_answers(page: Page) -> None:
    before = json_of(ask(page, "GET", "/api/state"))
    change = {"book": "input", "sheet": "Sheet", "cells": [{"cell": "A3", "text": "50"}]}
    after = json_of(
        ask(page, "POST", "/api/change", body={**change, "revision": before["revision"]})
    )
    assert after["edits"] == ["'Sheet'!A3 = 50"]
    window = json_of(ask(page, "GET", "/api/window?book=input&sheet=Sheet&row=1&column=1"))
    assert window["rows"][2][0] == "50"
    # With the revision that it saw before, the same request changes nothing.
    status, _, body = ask(
        page, "POST", "/api/change", body={**change, "revision": before["revision"]}
    )
    assert status == 409
    assert json.loads(body)["state"]["revision"] == after["revision"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/api/window?book=input&sheet=Nix", None, 400),
        ("GET", "/api/window?book=../x&sheet=Sheet", None, 400),
        ("GET", "/api/window?book=input&sheet=Sheet&row=-1", None, 400),
        ("GET", "/api/window?book=input&sheet=Sheet&row=99999999999", None, 400),
        ("GET", "/api/nothing", None, 404),
        ("GET", "/api/change", None, 404),
        ("POST", "/api/change", [], 400),
        ("POST", "/api/base", {"case": "1"}, 400),
        ("POST", "/api/save", {"revision": "x"}, 409),
        ("POST", "/api/change", {"fill": "x" * MAX_BODY_BYTES}, 413),
    ],
)
def test_what_cannot_be_done_is_explained(
    page: Page, method: str, path: str, body: object, status: int
) -> None:
    answer = ask(page, method, path, body=body)
    assert answer[0] == status
    assert json_of(answer)["error"]


def test_a_port_that_is_taken_is_reported(page: Page) -> None:
    with pytest.raises(UsageError, match="cannot listen on port"):
        listen(page, page.port).close()


def test_a_page_without_its_grid_says_where_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr("judge.annotate.web.server.page_folder", lambda: tmp_path)
    with pytest.raises(UsageError) as missing:
        check_grid()
    assert "fetch-grid" in (missing.value.hint or "")
    (tmp_path / "grid").mkdir()
    for name in GRID_FILES:
        (tmp_path / "grid" / name).touch()
    check_grid()
