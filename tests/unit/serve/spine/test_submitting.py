"""Submitting over the API: quotas, keys, limits, waiting, levels; mostly on both databases."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from judge.cli import submit
from judge.serve import intake
from judge.serve.access.accounts import create_token
from judge.serve.access.rights import Viewer
from judge.serve.api import submissions
from judge.serve.api.limits import Rates, requester_key
from judge.serve.api.results import MAX_WAITS_OF_ONE
from judge.serve.operations.upkeep import faults_of
from judge.serve.queue.conditions import set_setting
from judge.serve.queue.dispatcher import MAINTENANCE
from judge.serve.store import tables as t
from judge.serve.store.folder import DataFolder
from judge.serve.store.tables import PhaseState, Scope, Visibility
from tests.unit.serve.spine.world import (
    ACTOR,
    FREE,
    LINES,
    World,
    add_team,
    furnish,
    typed_lines,
)

SUBMIT = "/v1/submissions?phase=open"


def handed_in(world: World, role: str = "contestant", phase: str = "open", **more: Any) -> Any:
    tasks = () if phase == "open" else ("bars", "cards")
    headers = {**world.headers(role), **LINES, **more}
    answer = world.client().post(
        f"/v1/submissions?phase={phase}", headers=headers, content=typed_lines(*tasks)
    )
    assert answer.status_code == 202, answer.text
    return answer.json()


def judged(world: World, verdict: str = "AC") -> None:
    claimed = world.claim()
    assert claimed is not None
    world.finish(claimed, verdict)


def test_a_submission_is_queued_with_its_place(world: World) -> None:
    first, second = handed_in(world), handed_in(world, "rival")
    assert (first["position"], first["ahead_cases"]) == (1, 0)
    assert (second["position"], second["ahead_cases"]) == (2, first["cases"]["all"])
    seen = world.client().get(first["links"]["self"], headers=world.headers("contestant"))
    assert seen.json()["state"] == "queued"
    assert faults_of(world.server.database, world.server.folder) == []


def test_two_hundred_equal_requests_with_one_key_are_one_submission(world: World) -> None:
    client = world.client()
    headers = {**world.headers("contestant"), **LINES, "Idempotency-Key": "one key"}
    content = typed_lines()

    def post(_: int) -> tuple[int, str, str | None]:
        answer = client.post(SUBMIT, headers=headers, content=content)
        return answer.status_code, answer.text, answer.headers.get("idempotency-replayed")

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(post, range(200)))
    assert {status for status, _, _ in answers} == {202}
    assert len({text for _, text, _ in answers}) == 1
    assert sum(replayed is None for _, _, replayed in answers) == 1
    assert len(world.rows(t.submission)) == len(world.rows(t.judging)) == 1


def test_a_key_belongs_to_one_request_of_one_account(world: World) -> None:
    handed_in(world, **{"Idempotency-Key": "k"})
    headers = {**world.headers("contestant"), **LINES, "Idempotency-Key": "k"}
    other = world.client().post(SUBMIT, headers=headers, content=typed_lines("trips"))
    assert other.status_code == 422
    assert other.json()["type"].endswith("/key-reused")
    handed_in(world, "rival", **{"Idempotency-Key": "k"})  # keys of others are nothing to it
    assert len(world.rows(t.submission)) == 2


@pytest.mark.parametrize("change", ["closed", "full"])
def test_a_missed_answer_can_be_fetched_later(small_world: World, change: str) -> None:
    """If the key of an accepted submission is repeated, it is not reported as refused."""
    key = {"Idempotency-Key": "k"}
    made = handed_in(small_world, **key)
    if change == "closed":
        with small_world.server.database.writing(ACTOR) as transaction:
            transaction.execute(sa.update(t.phase).values(state=PhaseState.CLOSED))
    else:
        options = dataclasses.replace(small_world.server.options, max_queue=1)
        small_world.server.options = options
    assert handed_in(small_world, **key) == made
    headers = {**small_world.headers("contestant"), **LINES}
    for others, content, status in (
        ({}, typed_lines(), 409 if change == "closed" else 503),
        ({"Idempotency-Key": "another"}, typed_lines(), 409 if change == "closed" else 503),
        (key, typed_lines("trips"), 422),
    ):
        answer = small_world.client().post(SUBMIT, headers={**headers, **others}, content=content)
        assert answer.status_code == status, answer.text
    assert len(small_world.rows(t.submission)) == 1


def test_the_quota_holds_against_requests_at_once(world: World) -> None:
    with world.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.phase).values(per_day=3))
    client, headers = world.client(), {**world.headers("contestant"), **LINES}

    def post(_: int) -> int:
        return client.post(SUBMIT, headers=headers, content=typed_lines("trips")).status_code

    with ThreadPoolExecutor(8) as pool:
        answers = sorted(pool.map(post, range(16)))
    assert answers == [202] * 3 + [429] * 13
    assert len(world.rows(t.submission)) == 3


def test_the_turns_of_a_suite_are_those_that_count(world: World) -> None:
    """Submitting and cancelling take no turn from others; in a race, only one gets the last."""
    with world.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.suite).values(per_day=1))
    client = world.client()
    for _ in range(2):
        made = handed_in(world)
        headers = {**world.headers("contestant"), "If-Match": "*"}
        assert client.post(f"{made['links']['self']}:cancel", headers=headers).is_success

    def post(number: int) -> int:
        headers = {**world.headers(("contestant", "rival")[number % 2]), **LINES}
        return client.post(SUBMIT, headers=headers, content=typed_lines("trips")).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(post, range(8))) == [202] + [429] * 7


@pytest.mark.parametrize("change", ["closed", "revision"])
def test_what_changed_while_a_body_was_sent_is_noticed(
    small_world: World, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """A body may arrive slowly: it is recorded if the phase is open and the revision fits."""
    admit = intake.admit

    def admit_and_change(*given: Any) -> intake.Admission:
        admission = admit(*given)
        with small_world.server.database.writing(ACTOR) as transaction:
            if change == "closed":
                transaction.execute(sa.update(t.phase).values(state=PhaseState.CLOSED))
            else:
                other = t.revision.c.id != admission.revision["id"]
                revision = transaction.execute(sa.select(t.revision.c.id).where(other)).scalar()
                assert revision is not None
                transaction.execute(sa.update(t.suite).values(current_revision=revision))
        return admission

    monkeypatch.setattr(submissions, "admit", admit_and_change)
    headers = {**small_world.headers("contestant"), **LINES}
    answer = small_world.client().post(SUBMIT, headers=headers, content=typed_lines())
    assert answer.status_code == 409, answer.text
    assert small_world.rows(t.submission) == []


def test_the_quota_is_that_of_the_team(world: World) -> None:
    team = add_team(world, "team", "contestant", "rival")
    with world.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.phase).values(in_total=1))
    handed_in(world, "contestant")
    assert world.rows(t.submission)[0]["account"] == team
    headers = {**world.headers("rival"), **LINES}
    refused = world.client().post(SUBMIT, headers=headers, content=typed_lines())
    assert refused.status_code == 429
    assert refused.json()["type"].endswith("/quota-exceeded")
    alone = world.client().post(f"{SUBMIT}&team=rival", headers=headers, content=typed_lines())
    assert alone.status_code == 422  # who has a team has no turns besides


@pytest.mark.parametrize(
    ("content_type", "content", "status", "words"),
    [
        ("application/x-ndjson", b"", 422, "empty"),
        ("application/x-ndjson", b'{"id": 1,\n', 422, "line 1"),
        ("application/x-ndjson", b'{"id": "nothing", "response": "1"}\n', 422, "nothing"),
        ("application/x-ndjson", b'{"id": "trips", "outputs": {}}\n', 422, "ZIP"),
        ("application/x-ndjson", b"\xff\xfe\n", 422, ""),
        ("application/x-ndjson", b"[" * 100_000 + b"\n", 422, "line 1"),
        ("text/x-python", b"print(1)", 422, "task"),
        ("application/zip", b"PK", 422, "refused"),
        ("multipart/form-data; boundary=x", b"nothing", 400, ""),
        ("multipart/form-data", b"nothing", 400, ""),
        ("text/html", b"x", 415, "x-ndjson"),
        ("", b"x", 415, "x-ndjson"),
    ],
)
def test_a_body_that_cannot_be_judged_is_refused_with_the_place(
    small_world: World, content_type: str, content: bytes, status: int, words: str
) -> None:
    headers = {**small_world.headers("contestant"), "content-type": content_type}
    answer = small_world.client().post(SUBMIT, headers=headers, content=content)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.text
    assert str(small_world.server.folder.path) not in answer.text
    assert small_world.rows(t.submission) == []
    assert list((small_world.server.folder.path / "bodies").iterdir()) == []
    assert list(small_world.server.folder.temporary().iterdir()) == []


@pytest.mark.parametrize(
    "content", [b'{"id": 1,\n', b'{"id": "nothing", "response": "1"}\n', b'{"id": "trips"}\n']
)
def test_a_refusal_speaks_to_submitters_and_names_the_line_with_its_fault(
    small_world: World, content: bytes
) -> None:
    headers = {**small_world.headers("contestant"), **LINES}
    problem = small_world.client().post(SUBMIT, headers=headers, content=content).json()
    assert "--" not in problem["detail"]  # options of the command line
    assert "run the command again" not in problem["detail"]
    (error,) = problem["errors"]
    assert error["line"] == 1
    assert len(error["detail"]) > 10
    assert error["detail"] in problem["detail"]


def test_a_phase_that_does_not_exist_is_named(small_world: World) -> None:
    headers = {**small_world.headers("contestant"), **LINES}
    address = "/v1/submissions?phase=nowhere"
    answer = small_world.client().post(address, headers=headers, content=typed_lines())
    assert answer.status_code == 404
    assert "There is no phase 'nowhere'" in answer.json()["detail"]


def packed(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "archive",
    [
        packed(**{"../1_trips_output.xlsx": b"x"}),
        packed(**{"/1_trips_output.xlsx": b"x"}),
        packed(**{"inner.zip": packed(a=b"x")}),
        packed(**{f"{place}.txt": b"" for place in range(20)}),
        packed(bomb=b"\0" * 3000),
    ],
)
def test_archives_are_unpacked_with_bounds(
    small_world: World, archive: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MAX_MEMBERS", 10)
    monkeypatch.setattr(intake, "MAX_UNPACKED_BYTES", 2000)
    headers = {**small_world.headers("contestant"), "content-type": "application/zip"}
    answer = small_world.client().post(SUBMIT, headers=headers, content=archive)
    assert answer.status_code == 422, answer.text
    assert list((small_world.server.folder.path / "bodies").iterdir()) == []


def test_a_body_is_cut_at_its_limit_without_reading_on(
    small_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(intake.LIMITS, intake.LINES, 1000)
    read: list[int] = []

    def pieces() -> Any:
        for _ in range(100):
            read.append(1)
            yield b"x" * 100

    headers = {**small_world.headers("contestant"), **LINES}
    answer = small_world.client().post(SUBMIT, headers=headers, content=pieces())
    assert answer.status_code == 413
    stated = small_world.client().post(SUBMIT, headers=headers, content=b"x" * 1001)
    assert stated.status_code == 413


def test_what_is_too_much_waits(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {**world.headers("contestant"), **LINES}
    client, content = world.client(), typed_lines()
    with world.server.database.writing(ACTOR) as transaction:
        set_setting(transaction, MAINTENANCE, {"message": "back at noon"})
    closed = client.post(SUBMIT, headers=headers, content=content)
    assert (closed.status_code, closed.json()["detail"]) == (503, "back at noon")
    assert closed.headers["retry-after"]
    assert client.get("/v1/suites").status_code == 200
    with world.server.database.writing(ACTOR) as transaction:
        set_setting(transaction, MAINTENANCE, None)
    monkeypatch.setattr(DataFolder, "free_bytes", lambda _: 1000)
    assert client.post(SUBMIT, headers=headers, content=content).status_code == 507
    monkeypatch.undo()
    object.__setattr__(world.server.options, "max_queue", 0)
    assert client.post(SUBMIT, headers=headers, content=content).status_code == 503
    assert world.rows(t.submission) == []


@pytest.mark.parametrize("state", [PhaseState.PLANNED, PhaseState.CLOSED, PhaseState.PUBLISHED])
def test_a_phase_takes_submissions_while_it_is_open(small_world: World, state: PhaseState) -> None:
    with small_world.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.phase).values(state=state))
    headers = {**small_world.headers("contestant"), **LINES}
    answer = small_world.client().post(SUBMIT, headers=headers, content=typed_lines())
    assert answer.status_code == 409


def test_waiting_ends_with_the_change(world: World) -> None:
    made = handed_in(world)
    client, headers = world.client(), world.headers("contestant")
    seen = client.get(made["links"]["self"], headers=headers)
    tag = seen.headers["etag"]
    unchanged = client.get(made["links"]["self"], headers={**headers, "If-None-Match": tag})
    assert unchanged.status_code == 304
    assert unchanged.headers["etag"] == tag
    worker = threading.Timer(0.3, judged, [world])
    worker.start()
    waited = client.get(
        made["links"]["self"] + "?wait=30", headers={**headers, "If-None-Match": tag}
    )
    worker.join()
    assert waited.status_code == 200
    assert waited.json()["version"] > seen.json()["version"]


def test_nobody_waits_too_often(small_world: World) -> None:
    made = handed_in(small_world)
    headers = small_world.headers("contestant")
    with TestClient(small_world.client().app) as client:
        tag = client.get(made["links"]["self"], headers=headers).headers["etag"]

        def wait(_: int) -> int:
            address = made["links"]["self"] + "?wait=2"
            return client.get(address, headers={**headers, "If-None-Match": tag}).status_code

        with ThreadPoolExecutor(MAX_WAITS_OF_ONE + 3) as pool:
            answers = sorted(pool.map(wait, range(MAX_WAITS_OF_ONE + 3)))
    assert answers == [304] * MAX_WAITS_OF_ONE + [429] * 3


def test_events_resume_and_end(world: World) -> None:
    made = handed_in(world)
    judged(world)
    address = made["links"]["self"] + "/events"
    client, headers = world.client(), world.headers("contestant")
    whole = client.get(address, headers=headers).text
    kinds = [line[7:] for line in whole.splitlines() if line.startswith("event: ")]
    assert kinds[-2:] == ["submission.judged", "end"]
    ids = [line[4:] for line in whole.splitlines() if line.startswith("id: ")]
    rest = client.get(address, headers={**headers, "Last-Event-ID": ids[-2]}).text
    assert [line[4:] for line in rest.splitlines() if line.startswith("id: ")] == ids[-1:]


@pytest.mark.parametrize("way", ["events", "wait", "board"])
def test_a_listener_who_loses_the_right_receives_nothing_more(small_world: World, way: str) -> None:
    """A token is revoked, or a suite hidden, after a stream or a long poll has begun."""
    ids, made = furnish(small_world)["open"], handed_in(small_world)
    database, headers = small_world.server.database, small_world.headers("contestant")
    address = f"/v1/boards/{ids['board']}/events" if way == "board" else made["links"]["self"]
    if way == "events":
        address += "/events"
    if way == "wait":
        tag = small_world.client().get(address, headers=headers).headers["etag"]
        address, headers = address + "?wait=30", {**headers, "If-None-Match": tag}

    def revoke() -> None:
        with database.writing(ACTOR) as transaction:
            if way == "board":
                hidden = sa.update(t.suite).where(t.suite.c.name == "open")
                transaction.execute(hidden.values(visibility=Visibility.HIDDEN))
                transaction.event("board.changed", str(small_world.rows(t.board)[0]["id"]))
            else:
                own = t.token.c.account == small_world.accounts["contestant"]
                transaction.execute(sa.update(t.token).where(own).values(revoked=t.Now()))
        judged(small_world)

    worker = threading.Timer(0.3, revoke)
    worker.start()
    answer = small_world.client().get(address, headers={} if way == "board" else headers)
    worker.join()
    assert answer.status_code == (401 if way == "wait" else 200)
    assert "judging.running" not in answer.text
    assert "event: end" not in answer.text


def test_cancelling_and_withdrawing_need_the_version_that_was_seen(world: World) -> None:
    made = handed_in(world)
    client, headers = world.client(), world.headers("contestant")
    address = made["links"]["self"]
    assert client.post(address + ":cancel", headers=headers).status_code == 428
    stale = {**headers, "If-Match": '"0-00000000"'}
    assert client.post(address + ":cancel", headers=stale).status_code == 412
    fresh = {**headers, "If-Match": client.get(address, headers=headers).headers["etag"]}
    cancelled = client.post(address + ":cancel", headers=fresh)
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    again = {**headers, "If-Match": cancelled.headers["etag"]}
    assert client.post(address + ":cancel", headers=again).status_code == 409
    withdrawn = client.post(address + ":withdraw", headers=again)
    assert withdrawn.json()["withdrawn"] is True
    author = {**world.headers("author"), "If-Match": withdrawn.headers["etag"]}
    assert client.post(address + ":cancel", headers=author).status_code == 403


def test_a_level_tells_what_it_says_and_no_more(world: World) -> None:
    """For a hidden split at ``score``: no verdicts, times, progress or report."""
    made = handed_in(world, phase="secret")
    claimed = world.claim()
    assert claimed is not None
    with world.server.database.writing(ACTOR) as transaction:
        transaction.execute(sa.update(t.judging).values(done=1))
    client, headers = world.client(), world.headers("contestant")
    address = made["links"]["self"]
    assert client.get(address, headers=headers).json()["cases"]["done"] is None
    world.finish(claimed, "TLE")
    view = client.get(address, headers=headers).json()
    assert view["judging"]["finished"][-6:-1].endswith("00")
    assert int(view["judging"]["finished"][14:16]) % 5 == 0
    assert "TLE" not in json.dumps(view)
    assert client.get(address + "/verdicts", headers=headers).json()["verdicts"] == []
    assert client.get(address + "/report", headers=headers).status_code == 403
    as_author = client.get(address + "/verdicts", headers=world.headers("author")).json()
    assert {row["verdict"] for row in as_author["verdicts"]} == {"TLE"}
    assert client.get(address + "/report", headers=world.headers("author")).status_code == 403
    assert client.get(address, headers=world.headers("rival")).status_code == 404


def test_lists_neither_repeat_nor_skip_while_others_hand_in(world: World) -> None:
    made = [handed_in(world)["id"] for _ in range(5)]
    client, headers = world.client(), world.headers("contestant")
    listed, address = [], "/v1/submissions?limit=2&fields=id"
    while address:
        answer = client.get(address, headers=headers)
        listed += [one["id"] for one in answer.json()["submissions"]]
        link = answer.headers.get("link", "")
        address = link[1 : link.index(">")] if link else ""
        handed_in(world)
    assert listed == made[::-1]
    forged = client.get("/v1/submissions?cursor=AAAAAAAAAAAAAAAAAAAAAAAxMjM0", headers=headers)
    assert forged.status_code == 422


def test_a_batch_has_an_outcome_for_each(world: World) -> None:
    items = [
        {"phase": "open", "lines": typed_lines("trips").decode(), "key": "a"},
        {"phase": "open", "lines": typed_lines("trips").decode(), "key": "a"},
        {"phase": "open", "lines": "nonsense"},
        {"phase": "nowhere", "lines": "x"},
        {"phase": "open"},
    ]
    answer = world.client().post(
        "/v1/submissions:batch",
        headers=world.headers("contestant"),
        json={"submissions": items},
    )
    outcomes = answer.json()["outcomes"]
    assert [one["status"] for one in outcomes] == [202, 202, 422, 404, 422]
    assert outcomes[1]["replayed"]
    assert len(world.rows(t.submission)) == 1


def test_more_tokens_and_addresses_of_a_network_are_no_more_turns(small_world: World) -> None:
    account = small_world.accounts["contestant"]
    with small_world.server.database.writing(ACTOR) as transaction:
        _, token = create_token(transaction, account, "another", list(Scope))
    small_world.server.shared["rates"] = Rates({**FREE, "read": 3})
    headers = {"Authorization": f"Bearer {token}"}
    client = small_world.client()
    sent = [headers, small_world.headers("contestant")] * 2
    answers = [client.get("/v1/me", headers=one).status_code for one in sent]
    assert answers == [200, 200, 200, 429]
    assert requester_key(Viewer(address="2001:db8::1")) == requester_key(
        Viewer(address="2001:db8::ffff:1")
    )
    assert requester_key(Viewer(address="2001:db8::1")) != requester_key(
        Viewer(address="2001:db8:0:1::1")
    )
    assert requester_key(Viewer(address="192.0.2.1")) == requester_key(
        Viewer(address="::ffff:192.0.2.1")
    )
    assert requester_key(Viewer(address="192.0.2.1")) != requester_key(Viewer(address="192.0.2.2"))


def test_rates_say_what_is_left(small_world: World) -> None:
    small_world.server.shared["rates"] = Rates(
        {"submit": 2, "read": 2, "change": 2, "sign-in": 2}, clock=lambda: 0.0
    )
    client, headers = small_world.client(), small_world.headers("contestant")
    answers = [client.get("/v1/suites", headers=headers) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[0].headers["ratelimit"] == '"read";r=1;t=60'
    assert answers[2].headers["retry-after"] == "60"
    assert client.get("/v1/suites", headers=small_world.headers("rival")).status_code == 200


def test_scores_are_printed_for_people() -> None:
    view = {
        "id": "sub_1", "state": "done",
        "scores": {"hard": 0.511904, "tasks": 6, "verdicts": {"AC": 16, "WA": 14}, "none": None},
    }  # fmt: skip
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        submit._show(view, as_json=False)
    assert shown.getvalue().splitlines() == [
        "sub_1: done", "hard: 51.19 %", "tasks: 6", "verdicts: AC 16, WA 14", "none: null",
    ]  # fmt: skip


@pytest.mark.parametrize("on_path", [True, False])
def test_commands_to_copy_begin_with_what_the_shell_knows(
    small_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: bool
) -> None:
    program = tmp_path / "some where" / "judge"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setattr("sys.argv", [str(program)])
    monkeypatch.setenv("PATH", str(program.parent if on_path else tmp_path))
    assert small_world.server.program == ("judge" if on_path else f"'{program}'")
