"""Submissions, limited by their feedback level: list, wait, verdicts, cancel, events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi import Path as PathPart
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse

from judge.core.verdict import Verdict
from judge.errors import JudgeError
from judge.report.html import report_html
from judge.serve.access.rights import Viewer, find, level_for, phase_state, require, visible_to
from judge.serve.api.limits import (
    Paging,
    entity_tag,
    matches,
    rate,
    requester_key,
    required_version,
)
from judge.serve.boards.disclosure import is_bounded_for, shown_rows
from judge.serve.boards.feedback import slot
from judge.serve.boards.results import scored
from judge.serve.boards.versions import boards_of
from judge.serve.context import Caller, Server, ThisServer, viewer_of
from judge.serve.intake import place_in_queue
from judge.serve.problems import Problem, not_found
from judge.serve.queue.conditions import suite_path
from judge.serve.queue.leases import cancel
from judge.serve.store import tables as t
from judge.serve.store.database import Database, Transaction, all_rows, first_row
from judge.serve.store.tables import FINISHED, JudgingState, Level, Scope

router = APIRouter(tags=["submissions"])

MAX_WAIT_S = 60  # of a long poll; proxies often close idle connections after a minute
_KEEP_ALIVE_S = 15.0  # a stream sends a comment this often, so that proxies keep it open
_MAX_STREAM_S = 3600.0  # then the client connects again
_MAX_EVENT = 2**63 - 1  # the largest number that the column holds
_END = "event: end\ndata: {}\n\n"
_VARY = {"Vary": "Authorization, Cookie", "Cache-Control": "private, no-cache"}

SubmissionId = Annotated[str, PathPart(max_length=40)]
_DECLARED = ("system", "model", "setting", "url", "cost_usd", "tokens", "cutoff", "note")
_FIELDS = frozenset(
    {"id", "state", "version", "phase", "account", "kind", "created", "cases", "scores", "links"}
)


@router.get("/submissions", dependencies=[rate("read")])
def list_submissions(
    response: Response,
    caller: Caller,
    server: ThisServer,
    page: Paging,
    phase: Annotated[str | None, Query(max_length=80)] = None,
    fields: Annotated[str | None, Query(max_length=200)] = None,
) -> dict[str, Any]:
    """The submissions that the caller may see, newest first."""
    require(caller, Scope.READ)
    chosen = _chosen(fields)
    with server.database.reading() as connection:
        query = sa.select(t.submission).where(visible_to(caller, t.submission))
        if phase is not None:
            row = find(connection, caller, t.phase, phase)
            query = query.where(t.submission.c.phase == row["id"])
        last = page.since("submissions")
        if last is not None:
            query = query.where(t.submission.c.seq < last)
        query = query.order_by(t.submission.c.seq.desc()).limit(page.limit + 1)
        rows = page.cut("submissions", all_rows(connection, query), "seq")
        views = [submission_view(connection, caller, row) for row in rows]
    response.headers.update(_VARY)
    return {
        "submissions": [
            {name: value for name, value in view.items() if chosen is None or name in chosen}
            for view in views
        ]
    }


@router.get(
    "/submissions/{submission}",
    dependencies=[rate("read")],
    responses={304: {"description": "It has not changed."}},
)
async def get_submission(
    request: Request,
    submission: SubmissionId,
    caller: Caller,
    server: ThisServer,
    wait: Annotated[int, Query(ge=0, le=MAX_WAIT_S)] = 0,
    if_none_match: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """One submission; ``wait`` waits until its version differs from ``If-None-Match``."""
    require(caller, Scope.READ)
    view = await run_in_threadpool(_view, server, caller, submission)
    if wait and matches(if_none_match, _tag(view)) and not is_finished(view):
        waker = waker_of(server)
        deadline = time.monotonic() + wait
        with waker.waiting_place(requester_key(caller)), waker.listening(submission) as event:
            while matches(if_none_match, _tag(view)):
                left = deadline - time.monotonic()
                if left <= 0 or await request.is_disconnected():
                    break
                if await wait_for(event, min(left, 5.0)):
                    caller = await viewer_of(
                        request
                    )  # the token can be revoked while the caller waits
                    view = await run_in_threadpool(_view, server, caller, submission)
    headers = {"ETag": _tag(view), **_VARY}
    if matches(if_none_match, _tag(view)):
        return Response(status_code=304, headers=headers)
    return JSONResponse(view, headers=headers)


@router.get("/submissions/{submission}/verdicts", dependencies=[rate("read")])
def get_verdicts(submission: SubmissionId, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The verdicts of a submission that its feedback level shows."""
    require(caller, Scope.READ)
    with server.database.reading() as connection:
        row = find(connection, caller, t.submission, submission)
        judging, level, phase = visible_judging(connection, caller, row)
        bounded = is_bounded_for(connection, caller, phase)
        verdicts = verdicts_view(connection, judging, level, bounded=bounded)
    return {"id": row["id"], "level": level.value, "verdicts": verdicts}


@router.get(
    "/submissions/{submission}/report",
    dependencies=[rate("read")],
    response_class=HTMLResponse,
)
def get_report(submission: SubmissionId, caller: Caller, server: ThisServer) -> Response:
    """The report of a submission with cells, if the feedback level shows them."""
    require(caller, Scope.READ)
    with server.database.reading() as connection:
        results, suite = own_results(connection, server, caller, submission)
    try:
        text = report_html(results, dataset=suite)
    except JudgeError as error:
        raise not_found() from error
    policy = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
    policy += "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return HTMLResponse(text, headers={"Content-Security-Policy": policy, **_VARY})


@router.post("/submissions/{submission}:cancel", dependencies=[rate("change")])
def cancel_submission(
    submission: SubmissionId,
    caller: Caller,
    server: ThisServer,
    if_match: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Cancels the judging of one's own submission, immediately or after the current case."""
    return _changed(server, caller, submission, if_match, _cancel)


def _cancel(_: Server, transaction: Transaction, row: dict[str, Any]) -> None:
    if row["current_judging"] is None or cancel(transaction, row["current_judging"]) in FINISHED:
        raise Problem("conflict", "The judging has ended.")
    # A rejudging that was applied at this moment has replaced the judging.
    current = sa.select(t.submission.c.current_judging).where(t.submission.c.id == row["id"])
    if transaction.execute(current).scalar() != row["current_judging"]:
        raise Problem("conflict", "The submission was judged again meanwhile.")


@router.post("/submissions/{submission}:withdraw", dependencies=[rate("change")])
def withdraw_submission(
    submission: SubmissionId,
    caller: Caller,
    server: ThisServer,
    if_match: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Takes one's own submission off the boards; it is kept, and still counts in the quota."""
    return _changed(server, caller, submission, if_match, _withdraw)


def _withdraw(server: Server, transaction: Transaction, row: dict[str, Any]) -> None:
    if row["withdrawn"] is not None:
        raise Problem("conflict", "It has already been withdrawn.")
    transaction.execute(
        sa.update(t.submission)
        .where(t.submission.c.id == row["id"])
        .values(withdrawn=t.Now(), version=t.submission.c.version + 1)
    )
    transaction.event("submission.withdrawn", row["id"], after="withdrawn")
    boards_of(server).renew(transaction, row["phase"], "a submission was withdrawn")


def _changed(
    server: Server,
    caller: Viewer,
    submission: str,
    if_match: str | None,
    act: Callable[[Server, Transaction, dict[str, Any]], None],
) -> Response:
    """Changes the caller's submission if its version is the one they saw; returns the new one."""
    require(caller, Scope.SUBMIT)
    expected = required_version(if_match)
    with server.database.writing(caller.actor()) as transaction:
        act(server, transaction, own_row(transaction.connection, caller, submission, expected))
    view = _view(server, caller, submission)
    return JSONResponse(view, headers={"ETag": _tag(view), **_VARY})


@router.get(
    "/submissions/{submission}/events",
    dependencies=[rate("read")],
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def stream_submission(
    request: Request,
    submission: SubmissionId,
    caller: Caller,
    server: ThisServer,
    last_event_id: Annotated[str | None, Header(max_length=20)] = None,
) -> Response:
    """The states of a submission as server-sent events, until it is judged."""
    require(caller, Scope.READ)
    view = await run_in_threadpool(_view, server, caller, submission)
    ending = "" if is_finished(view) else "submission.judged"
    about = t.submission, view["id"]
    return event_stream(request, server, caller, about, last_event_id, ends_with=ending)


def event_stream(
    request: Request,
    server: Server,
    caller: Viewer,
    about: tuple[sa.Table, str],
    last_event_id: str | None,
    *,
    ends_with: str | None = None,
    is_shown: Callable[[Viewer, dict[str, Any]], bool] = lambda *_: True,
) -> StreamingResponse:
    """Events about an object that the caller may see, as server-sent events.

    Before anything is sent, the caller's token and rights are checked again. If the token has been
    revoked, the account blocked or the suite hidden since, the stream ends.

    Args:
        request: the request; the stream ends when its client disconnects.
        server: the server.
        caller: the caller who gets the events.
        about: table and id of the object.
        last_event_id: the header; only events after it are sent.
        ends_with: the kind of event after which the stream ends with ``end``; empty if it ends
            after the past events, None if it does not end.
        is_shown: whether a viewer may see an event.
    """
    table, of = about
    waker = waker_of(server)
    waiting_place = waker.waiting_place(requester_key(caller))
    waiting_place.__enter__()
    last = last_event_id or ""
    after = min(int(last), _MAX_EVENT) if last.isdecimal() else 0

    async def lines() -> AsyncIterator[str]:
        nonlocal after
        deadline = time.monotonic() + _MAX_STREAM_S
        with waker.listening(of) as event:
            while time.monotonic() < deadline and not await request.is_disconnected():
                try:
                    now = await viewer_of(request)
                    news = await run_in_threadpool(_news_of, server, now, table, of, after)
                except Problem:
                    return
                for row in news:
                    after = row["seq"]
                    if not is_shown(now, row):
                        continue
                    data = json.dumps({"kind": row["kind"], "state": row["after"]})
                    yield f"id: {after}\nevent: {row['kind']}\ndata: {data}\n\n"
                    if row["kind"] == ends_with:
                        yield _END
                        return
                if ends_with == "":
                    yield _END
                    return
                if not await wait_for(event, _KEEP_ALIVE_S):
                    yield ": still here\n\n"

    async def lines_until_closed() -> AsyncIterator[str]:
        try:
            async for line in lines():
                yield line
        finally:
            waiting_place.__exit__(None, None, None)

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(lines_until_closed(), media_type="text/event-stream", headers=headers)


def waker_of(server: Server) -> Waker:
    """The waker of this process."""
    waker: Waker = server.shared.setdefault("waker", Waker(server.database))
    return waker


def own_row(
    connection: sa.Connection, caller: Viewer, submission: str, expected: str
) -> dict[str, Any]:
    """The row of a submission that the caller may change, if its version is the one they saw.

    Raises:
        Problem: 404; 403 if they may only see it; 412 if the version differs.
    """
    row = find(connection, caller, t.submission, submission)
    if row["account"] not in caller.teams:
        raise Problem("forbidden", "Only the team that submitted it may do this.")
    view = submission_view(connection, caller, row)
    if not matches(expected, _tag(view)):
        raise Problem("precondition-failed", headers={"ETag": _tag(view)})
    return row


def _news_of(
    server: Server, viewer: Viewer, table: sa.Table, of: str, after: int
) -> list[dict[str, Any]]:
    """Events about an object and its first judging; later judgings may not be applied yet.

    Raises:
        Problem: 404, the viewer does not see the object.
    """
    with server.database.reading() as connection:
        find(connection, viewer, table, of)
        first = sa.select(t.judging.c.id).where(
            t.judging.c.submission == of, t.judging.c.rejudging.is_(None)
        )
        judgings = set(connection.scalars(first))
        query = (
            sa.select(t.event.c.seq, t.event.c.kind, t.event.c.after, t.event.c.detail)
            .where(t.event.c.seq > after, t.event.c.object.in_([of, *judgings]))
            .order_by(t.event.c.seq)
            .limit(500)
        )
        rows = all_rows(connection, query)
    return [
        row
        for row in rows
        if row["kind"] != "submission.judged" or row["detail"]["judging"] in judgings
    ]


def _view(server: Server, caller: Viewer, submission: str) -> dict[str, Any]:
    with server.database.reading() as connection:
        row = find(connection, caller, t.submission, submission)
        return submission_view(connection, caller, row)


def _tag(view: dict[str, Any]) -> str:
    return entity_tag(view["version"], view["level"])


def own_results(
    connection: sa.Connection, server: Server, viewer: Viewer, submission: str
) -> tuple[Path, Path]:
    """The results directory of a submission and its suite, for a viewer who may see cells.

    Raises:
        Problem: 404; 403 if the level shows no cells; 409 if it has not been judged.
    """
    judging, level, _ = visible_judging(
        connection, viewer, find(connection, viewer, t.submission, submission)
    )
    return results_of(connection, server, judging["id"], level)


def results_of(
    connection: sa.Connection, server: Server, judging: str, level: Level
) -> tuple[Path, Path]:
    """The results directory of a judging and its suite, for a viewer at this feedback level.

    Raises:
        Problem: 403 if the level shows no cells; 409 if it has not been judged; 404 if files are
            missing.
    """
    row = first_row(connection, sa.select(t.judging).where(t.judging.c.id == judging))
    if row is None or row["state"] != JudgingState.DONE:
        raise Problem("conflict", "The submission has not been judged.")
    if not level.shows(Level.CELLS):
        raise Problem("forbidden", f"The feedback level of this phase is {level}.")
    revision = first_row(
        connection,
        sa.select(t.revision)
        .join(t.conditions, t.conditions.c.revision == t.revision.c.id)
        .where(t.conditions.c.digest == row["conditions"]),
    )
    assert revision is not None, "conditions name a revision"
    try:
        return server.folder.results(judging), suite_path(server.folder, revision)
    except JudgeError as error:
        raise not_found() from error


def _chosen(fields: str | None) -> frozenset[str] | None:
    if fields is None:
        return None
    chosen = frozenset(fields.split(","))
    if not chosen <= _FIELDS:
        raise Problem("invalid", f"`fields` accepts {', '.join(sorted(_FIELDS))}.")
    return chosen


def visible_judging(
    connection: sa.Connection, viewer: Viewer, submission: dict[str, Any]
) -> tuple[dict[str, Any], Level, dict[str, Any]]:
    """The current judging of a submission, the level at which it is shown, and the phase."""
    phase = first_row(connection, sa.select(t.phase).where(t.phase.c.id == submission["phase"]))
    assert phase is not None
    suite = first_row(connection, sa.select(t.suite).where(t.suite.c.id == phase["suite"]))
    assert suite is not None
    now = str(connection.scalar(sa.select(t.Now())))
    level = level_for(viewer, suite, phase, phase_state(phase, now))
    judging = first_row(
        connection, sa.select(t.judging).where(t.judging.c.id == submission["current_judging"])
    )
    assert judging is not None, "each submission has a judging"
    return judging, level, phase


def submission_view(
    connection: sa.Connection, viewer: Viewer, submission: dict[str, Any]
) -> dict[str, Any]:
    """A submission as one viewer sees it."""
    judging, level, phase = visible_judging(connection, viewer, submission)
    state = JudgingState(judging["state"])
    detailed = level.shows(Level.VERDICTS)
    done = judging["done"] if detailed or state is JudgingState.DONE else None
    view: dict[str, Any] = {
        "id": submission["id"],
        "state": state.value,
        "version": submission["version"],
        "withdrawn": submission["withdrawn"] is not None,
        "phase": phase["name"],
        "account": connection.scalar(
            sa.select(t.account.c.name).where(t.account.c.id == submission["account"])
        ),
        "kind": submission["kind"],
        "sha256": submission["sha256"],
        "created": submission["created"],
        "level": level.value,
        "cases": {"done": done, "all": judging["cases"]},
        "judging": {
            "id": judging["id"],
            "conditions": f"sha256:{judging['conditions']}",
            "lost_leases": judging["lost"],
            "finished": _finished(judging["finished"], exact=detailed),
            "cancelling": bool(judging["cancel"]) and state is JudgingState.RUNNING,
            "reason": _reason(judging, detailed) if state is JudgingState.FAILED else None,
        },
        "scores": shown_scores(connection, submission, judging, level),
        **{name: submission[name] for name in _DECLARED},
        "links": {
            "self": f"/v1/submissions/{submission['id']}",
            "events": f"/v1/submissions/{submission['id']}/events",
            "verdicts": f"/v1/submissions/{submission['id']}/verdicts",
            "report": f"/v1/submissions/{submission['id']}/report",
            "result": f"/v1/submissions/{submission['id']}/result",
        },
    }
    if state is JudgingState.QUEUED:
        view.update(place_in_queue(connection, judging["id"]))
    return view


def _finished(time: str | None, *, exact: bool) -> str | None:
    return time if time is None or exact else slot(time)


def _reason(judging: dict[str, Any], detailed: bool) -> str:
    """Why a judging failed; the number of failed cases is shown only to those who see verdicts."""
    return str(judging["reason"]) if detailed else "The judge failed; an operator can see why."


def shown_scores(
    connection: sa.Connection,
    submission: dict[str, Any],
    judging: dict[str, Any],
    level: Level,
) -> dict[str, Any] | None:
    """The scores of a judging, as far as a feedback level shows them.

    At the level ``score``, the ladder decides: a score is shown only if it is a point better than
    the last shown score; otherwise, the answer only says that it is not.
    """
    if judging["state"] != JudgingState.DONE or level is Level.NONE:
        return None
    scores: dict[str, Any] = judging["scores"]
    if level.shows(Level.VERDICTS):
        return scores
    if level is Level.TASKS:
        rows = shown_rows(connection, judging["id"], bounded=True)
        hard = scored(rows, ()).means.hard.values()
        return {"hard": sum(sorted(hard)) / len(hard) if hard else None, "tasks": len(hard)}
    row = first_row(
        connection,
        sa.select(t.shown_score).where(
            t.shown_score.c.account == submission["account"],
            t.shown_score.c.phase == submission["phase"],
            t.shown_score.c.conditions == judging["conditions"],
        ),
    )
    better = row is not None and row["submission"] == submission["id"]
    return {"better": better, "shown": None if row is None or not better else row["score"]}


def verdicts_view(
    connection: sa.Connection, judging: dict[str, Any], level: Level, *, bounded: bool
) -> list[dict[str, Any]]:
    """The verdicts of a finished judging that a level shows; none below ``tasks``.

    Args:
        connection: a connection.
        judging: its row.
        level: the level of feedback.
        bounded: whether the answer budget of each gold is applied.
    """
    if judging["state"] != JudgingState.DONE or not level.shows(Level.TASKS):
        return []
    rows: list[dict[str, Any]] = [
        {"task": row["task"], "sample": row["sample"], "case": row["case"]}
        | {"verdict": row["verdict"]}
        for row in shown_rows(connection, judging["id"], bounded=bounded)
    ]
    if level.shows(Level.VERDICTS):
        return rows
    accepted: dict[tuple[str, int], bool] = {}
    for row in rows:
        key = row["task"], row["sample"]
        accepted[key] = accepted.get(key, True) and row["verdict"] == Verdict.AC
    return [
        {"task": task, "sample": sample, "accepted": right}
        for (task, sample), right in accepted.items()
    ]


def is_finished(view: dict[str, Any]) -> bool:
    """Whether the judging of a submission has ended, as far as the viewer may know."""
    return view["state"] in FINISHED


# -- waiting ---------------------------------------------------------------------------------------


POLL_S = 0.2  # between two looks at the database for new events
MAX_WAITS = 200
"""How many long polls and streams one process serves at a time."""

MAX_WAITS_OF_ONE = 4
"""How many long polls and streams an account, or an address without a token, has at a time."""


class Waker:
    """Wakes the waiting requests of one process. Call its methods only on the event loop's thread.

    Args:
        database: the database with the events.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changes = database.changes()
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._task: asyncio.Task[None] | None = None
        self._seq: int | None = None
        self._counts: defaultdict[str, int] = defaultdict(int)

    @contextlib.contextmanager
    def waiting_place(self, who: str) -> Iterator[None]:
        """Counts a waiting request until the end of the block.

        Raises:
            Problem: 429, too many requests are waiting, of this caller or of all callers.
        """
        if self._counts[who] >= MAX_WAITS_OF_ONE or sum(self._counts.values()) >= MAX_WAITS:
            raise Problem(
                "too-many-requests",
                "Too many requests are waiting already.",
                headers={"Retry-After": "5"},
            )
        self._counts[who] += 1
        try:
            yield
        finally:
            self._counts[who] -= 1
            if not self._counts[who]:
                del self._counts[who]

    @contextlib.contextmanager
    def listening(self, key: str) -> Iterator[asyncio.Event]:
        """An event that is set on each change of an object; read the object after this call.

        Args:
            key: id of the object.
        """
        event = asyncio.Event()
        self._waiting[key].add(event)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._watch())
        try:
            yield event
        finally:
            self._waiting[key].discard(event)
            if not self._waiting[key]:
                del self._waiting[key]

    async def _watch(self) -> None:
        """Watches for changes as long as a request waits."""
        self._seq = None
        while self._waiting:
            try:
                objects = await run_in_threadpool(self._changed_objects)
            except JudgeError:
                objects = set(
                    self._waiting
                )  # the requests read the database themselves, and report the error
            for key in objects & set(self._waiting):
                for event in self._waiting[key]:
                    event.set()
            await asyncio.sleep(POLL_S)

    def _changed_objects(self) -> set[str]:
        happened = self._changes.happened()
        if self._seq is None:
            self._seq = self._database.last_event()
            return set(self._waiting)  # something may have happened before
        if not happened:
            return set()
        query = sa.select(t.event.c.seq, t.event.c.object, t.event.c.detail).where(
            t.event.c.seq > self._seq
        )
        objects = set()
        with self._database.reading() as connection:
            for row in connection.execute(query.order_by(t.event.c.seq).limit(5000)):
                self._seq = row.seq
                objects.add(row.object)
                objects.update(str(value) for value in (row.detail or {}).values())
        return objects


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Waits for an event and clears it; returns whether it was set in time."""
    try:
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    except TimeoutError:
        return False
    event.clear()
    return True
