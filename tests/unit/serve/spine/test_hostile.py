"""Hostile input: broken and huge bodies, archives, names, headers, streams, suites."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.exceptions import HTTPException

from judge.serve.api.limits import BoundedBodies
from judge.serve.store import tables as t
from tests.unit.serve.spine.world import ACTOR, LINES, TYPED, World, furnish

LINE = '{{"id": "trips", "response": {}}}'
ZIP = {"content-type": "application/zip"}


def archive(*members: tuple[str, bytes]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return data.getvalue()


@pytest.mark.parametrize(
    "body",
    [
        b"", b"\n\n", b"\xff\xfe", b"[]", b"null", b"{", b'{"id": "trips"}', b"{}" * 3,
        LINE.format("9" * 5000).encode(),
        LINE.format("[" * 100_000).encode(),
        LINE.format("{}").encode(),
        LINE.format('"' + "x" * (1 << 20) + '"').encode(),
        b'{"id": ' + b"9" * 5000 + b', "response": "1"}',
        b'{"id": "\\u0000", "response": "1"}',
        b'{"id": "\\ud800", "response": "1"}',
        b'{"id": "trips", "id": "cards", "response": 1}',
        b'{"id": "trips", "response": "1", "outputs": {"1": "/etc/passwd"}}',
        b'{"id": "../../etc", "response": "1"}',
        b'{"id": "trips", "response": "1", "sample": 99999999999}',
        (b'{"id": "trips", "response": "1"}\n') * 10_001,
    ],
    ids=lambda body: body[:30].decode("latin-1"),
)  # fmt: skip
def test_lines_that_cannot_be_read_are_refused(small_world: World, body: bytes) -> None:
    headers = {**small_world.headers("contestant"), **LINES}
    answer = small_world.client().post("/v1/submissions?phase=open", headers=headers, content=body)
    assert answer.status_code == 422, answer.text
    assert str(small_world.server.folder.path) not in answer.text
    assert not list(small_world.server.folder.temporary().iterdir()), "nothing is left behind"


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"[" * 200_000, b'{"name": ' + b"9" * 5000 + b"}", b"\xff",
        b'{"name": "\\ud800"}', b"1",
    ],
    ids=["cut", "deep", "long number", "no UTF-8", "surrogate", "a number"],
)  # fmt: skip
def test_json_that_cannot_be_read_is_refused(small_world: World, body: bytes) -> None:
    headers = {**small_world.headers("contestant"), "content-type": "application/json"}
    for path in ("/v1/tokens", "/v1/disputes", "/v1/submissions:batch", "/v1/webhooks"):
        answer = small_world.client().post(path, headers=headers, content=body)
        assert answer.status_code in {400, 422}, (path, answer.text)


def damaged() -> bytes:
    """An archive whose packed bytes are not valid."""
    data = bytearray(archive(("a.xlsx", bytes(range(256)) * 4)))
    start = data.index(b"a.xlsx") + len("a.xlsx")
    data[start : start + 20] = b"\xff" * 20
    return bytes(data)


BROKEN_ARCHIVES: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"PK\x05\x06" + b"\0" * 18,
    "text": lambda: b"no archive",
    "climbs": lambda: archive(("../out.xlsx", b"x")),
    "absolute": lambda: archive(("/abs.xlsx", b"x")),
    "nested": lambda: archive(("a/b.zip", b"x")),
    "damaged": damaged,
    "no UTF-8": lambda: archive(("\xe9.xlsx", b"x")).replace("\xe9".encode(), b"\xff\xfe"),
    "deep": lambda: archive(("a/" * 1_300 + "b.xlsx", b"x")),
    "long name": lambda: archive(("x" * 300 + ".xlsx", b"x")),
    "cut": lambda: archive(("bomb.xlsx", b"\0" * (64 << 20)))[:2000],
    "many": lambda: archive(*((f"{number}.xlsx", b"") for number in range(20_001))),
    "names": lambda: archive(("con\n.xlsx", b"x"), ("\u202exslx.exe", b"x")),
}
"""Made in the test, since every worker collects this module."""


@pytest.mark.parametrize("name", BROKEN_ARCHIVES)
def test_archives_that_cannot_be_trusted_are_refused(small_world: World, name: str) -> None:
    data = BROKEN_ARCHIVES[name]()
    headers = {**small_world.headers("contestant"), **ZIP}
    answer = small_world.client().post("/v1/submissions?phase=open", headers=headers, content=data)
    assert answer.status_code == 422, answer.text
    assert not list(small_world.server.folder.temporary().iterdir())
    headers = {**small_world.headers("author"), **ZIP}
    answer = small_world.client().put("/v1/suites/fresh/revisions", headers=headers, content=data)
    assert answer.status_code == 422, answer.text
    assert str(small_world.server.folder.path) not in answer.text
    assert not list(small_world.server.folder.temporary().iterdir())


def test_a_body_that_is_too_long_is_cut_wherever_it_is_sent(small_world: World) -> None:
    client, headers = small_world.client(), small_world.headers("contestant")
    large = b" " * ((2 << 20) + 1)
    for path in ("/v1/tokens", "/v1/disputes", "/v1/rejudgings", "/sign-in", "/nowhere"):
        answer = client.post(path, headers=headers, content=large)
        assert answer.status_code in {403, 404, 413}, (path, answer.text)
    answer = client.post("/v1/tokens", headers=headers, content=large)
    assert answer.json()["type"] == "/problems/too-large"


def test_a_body_that_comes_too_slowly_is_refused() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass

    async def send(_: Any) -> None:
        raise AssertionError

    async def pause() -> dict[str, Any]:
        await asyncio.sleep(3600)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def drip() -> dict[str, Any]:
        await asyncio.sleep(0.001)
        return {"type": "http.request", "body": b".", "more_body": True}

    for receive in (pause, drip):
        bounded = BoundedBodies(app, {}, silence_s=0.01)
        with pytest.raises(HTTPException) as refused:
            asyncio.run(bounded({"type": "http", "path": "/"}, receive, send))
        assert refused.value.status_code == 400


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("host", "["), ("host", "a b"), ("host", "x]:1"), ("host", ""),
        ("x-request-id", "\x7f" * 9), ("cookie", "judge=" + "a" * 43),
        ("authorization", "Bearer " + "x" * 9000), ("if-none-match", '"' * 150),
        ("last-event-id", "9" * 20), ("accept", "text/html," * 500),
        ("content-length", "x"), ("x-forwarded-for", "127.0.0.1"),
    ],
)  # fmt: skip
def test_no_header_breaks_a_route(small_world: World, header: str, value: str) -> None:
    client = small_world.client()
    for path in ("/", "/v1/status", "/v1/boards", "/me", "/problems/not-found", "/nowhere"):
        answer = client.get(path, headers={header: value})
        assert answer.status_code < 500, (path, answer.text)


@pytest.mark.parametrize("last", ["9" * 20, "-1", "x", "99999999999999999999", "٣", "0"])
def test_a_stream_of_a_judged_submission_ends_whatever_was_seen_last(
    small_world: World, last: str
) -> None:
    ids = furnish(small_world)["open"]
    headers: dict[bytes, bytes] = {b"last-event-id": last.encode()}
    for name, value in small_world.headers("contestant").items():
        headers[name.encode()] = value.encode()
    path = f"/v1/submissions/{ids['submission']}/events"
    with small_world.client().stream("GET", path, headers=headers) as answer:
        text = answer.read().decode()
    assert answer.status_code == 200
    assert text.endswith("event: end\ndata: {}\n\n")
    assert ("judging.done" in text) == (not last.startswith("9")), text


def test_a_stream_goes_on_after_the_last_event_that_was_seen(small_world: World) -> None:
    ids = furnish(small_world)["open"]
    client, headers = small_world.client(), small_world.headers("contestant")
    path = f"/v1/submissions/{ids['submission']}/events"
    whole = client.get(path, headers=headers).text.split("\n\n")
    numbers = [block.split("\n")[0].removeprefix("id: ") for block in whole if "id: " in block]
    assert numbers == sorted(numbers, key=int)
    rest = client.get(path, headers={**headers, "last-event-id": numbers[1]}).text
    assert rest == "\n\n".join(whole[2:])


def test_every_address_names_its_methods_and_answers_head_as_get(small_world: World) -> None:
    client, headers = small_world.client(), small_world.headers("contestant")
    for method in ("PATCH", "OPTIONS", "TRACE", "NONE"):
        answer = client.request(method, "/v1/tokens", headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")
    assert client.put("/submit").headers["allow"] == "GET, HEAD, POST"
    for path in ("/", "/v1/me", "/v1/boards/none", "/healthz", "/static/serve.css"):
        whole, head = client.get(path, headers=headers), client.head(path, headers=headers)
        assert (head.status_code, head.content) == (whole.status_code, b""), path
        assert head.headers["content-length"] == whole.headers["content-length"], path
    stream = client.head("/v1/boards/none/events")
    assert (stream.status_code, stream.headers["allow"]) == (405, "GET")


def test_an_account_has_a_bounded_number_of_tokens(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.serve.api.accounts.MAX_TOKENS", 3)
    client, headers = small_world.client(), small_world.headers("contestant")
    body = {"name": "x", "scopes": ["read"]}
    made = [client.post("/v1/tokens", headers=headers, json=body) for _ in range(3)]
    assert [answer.status_code for answer in made] == [201, 201, 409]
    client.delete(f"/v1/tokens/{made[0].json()['id']}", headers=headers)
    assert client.post("/v1/tokens", headers=headers, json=body).status_code == 201


MARKUP = '<img src=x onerror="alert(1)">\u202e\u2066'


def test_names_with_markup_and_turned_text_are_shown_as_text(small_world: World) -> None:
    """Names of people and suites, on every page that anyone can open."""
    ids = furnish(small_world)
    with small_world.server.database.writing(ACTOR) as transaction:
        for table, columns in (
            (t.suite, ("title", "description")), (t.board, ("title",)), (t.revision, ("note",)),
            (t.submission, ("system", "model", "setting", "note")), (t.rejudging, ("reason",)),
            (t.dispute, ("claim", "evidence", "reason")), (t.account, ("name",)),
        ):  # fmt: skip
            named = table.c.id + MARKUP if table is t.account else MARKUP
            transaction.execute(sa.update(table).values(dict.fromkeys(columns, named)))
    from tests.unit.serve.spine.test_rights import Visitors, filled, routes  # noqa: PLC0415

    visitors, pages = Visitors(small_world), 0
    for method, path in routes():
        if method != "GET" or path.startswith("/v1/"):
            continue
        for role in ("visitor", "contestant", "author", "reviewer", "operator"):
            answer = visitors.ask(role, method, filled(path, ids["open"]), {})
            if "text/html" not in answer.headers.get("content-type", ""):
                continue
            pages += 1
            assert "<img" not in answer.text, (role, path)
            assert "\u202e" not in answer.text, (role, path)
            assert "\u2066" not in answer.text, (role, path)
    assert pages > 80


@pytest.mark.parametrize(
    "field",
    ["system", "model", "setting", "note"],
)
def test_claims_have_no_character_that_cannot_be_seen(small_world: World, field: str) -> None:
    headers = {**small_world.headers("contestant"), **LINES}
    for text in ("\u202eevil", "a\u0000b", "a\nb", "\u2028"):
        answer = small_world.client().post(
            "/v1/submissions", params={"phase": "open", field: text}, headers=headers, content=b"{}"
        )
        assert answer.status_code == 422, (text, answer.text)


@pytest.mark.parametrize(
    ("query", "form"),
    [
        ({"url": "https://known.example@evil.example/"}, {}), ({"url": "javascript:alert(1)"}, {}),
        ({"cutoff": "2026-02-30"}, {}), ({}, {"system": "lost"}),
    ],
)  # fmt: skip
def test_claims_that_mislead_or_would_be_lost_are_refused(
    small_world: World, query: dict[str, str], form: dict[str, str]
) -> None:
    client, headers = small_world.client(), small_world.headers("contestant")
    file = {"file": ("answers.jsonl", b'{"id": "trips", "response": "1"}', "application/x-ndjson")}
    address = "/v1/submissions?phase=open"
    answer = client.post(address, params=query, headers=headers, data=form, files=file)
    assert answer.status_code == 422, answer.text
    fine = client.post(f"{address}&url=https://a.example/@b", headers=headers, files=file)
    assert fine.status_code == 202, fine.text


def test_a_request_whose_body_has_two_lengths_ends_its_connection(small_world: World) -> None:
    """A proxy that uses the other length would take the rest for the next person's request."""
    headers = {"content-length": "4", "transfer-encoding": "chunked"}
    answer = small_world.client().post("/v1/tokens", headers=headers, content=b"0\r\n\r\n")
    assert (answer.status_code, answer.headers["connection"]) == (400, "close")


# -- revisions over the API -----------------------------------------------------------------------


def suite_archive(**changed: bytes) -> bytes:
    root = TYPED.parent
    members = []
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name = str(path.relative_to(root))
        members.append((f"suite/{name}", changed.get(name, path.read_bytes())))
    return archive(*members)


def put(world: World, role: str, name: str, data: bytes, query: str = "") -> Any:
    headers = {**world.headers(role), **ZIP}
    return world.client().put(f"/v1/suites/{name}/revisions{query}", headers=headers, content=data)


def test_an_author_puts_a_suite_and_its_next_revision(small_world: World) -> None:
    first = put(small_world, "author", "fresh", suite_archive(), "?hidden=bars&note=the+first")
    assert first.status_code == 201, first.text
    assert (first.json()["number"], first.json()["note"]) == (1, "the first")
    again = put(small_world, "author", "fresh", suite_archive())
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    assert put(small_world, "other", "fresh", suite_archive()).status_code == 403
    assert put(small_world, "contestant", "another", suite_archive()).status_code == 404
    splits = small_world.client().get("/v1/suites/fresh").json()["splits"]
    assert {split["name"]: split["tasks"] for split in splits}["hidden"] == 1
    assert small_world.client().get("/v1/suites/fresh/tasks/bars").status_code == 404


def test_a_new_task_of_a_suite_with_a_hidden_split_has_to_be_sorted(small_world: World) -> None:
    assert put(small_world, "author", "fresh", suite_archive(), "?hidden=bars").status_code == 201
    text = (TYPED.parent / "suite.json").read_text()
    document = json.loads(text)
    document["tasks"].append({**document["tasks"][0], "id": "new"})
    changed = suite_archive(**{"suite.json": json.dumps(document).encode()})
    refused = put(small_world, "author", "fresh", changed)
    assert refused.status_code == 422
    assert "name all hidden tasks" in refused.json()["detail"]
    made = put(small_world, "author", "fresh", changed, "?hidden=bars&hidden=new")
    assert made.json()["number"] == 2
    listed = small_world.client().get("/v1/suites/fresh/revisions").json()["revisions"]
    assert [revision["number"] for revision in listed] == [1, 2]


def test_a_suite_that_points_outside_of_its_archive_is_refused(small_world: World) -> None:
    document = json.loads((TYPED.parent / "suite.json").read_text())
    text = json.dumps(document).replace('.csv"', '.csv/../../../../../../../../etc/passwd"')
    for name in ("passwd", "out"):
        changed = suite_archive(**{"suite.json": text.replace("passwd", name).encode()})
        answer = put(small_world, "author", "fresh", changed)
        assert answer.status_code == 422, answer.text
        assert str(small_world.server.folder.path) not in answer.text
        assert "the submission" not in answer.text
        assert "trips" in str(answer.json()["errors"]), "its author hears what is wrong, and where"
