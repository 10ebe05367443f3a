"""Submissions as their owners read them: lists, waiting, verdicts, report, cancel, events."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Header, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, StreamingResponse

from judge.errors import JudgeError
from judge.report.html import report_html
from judge.serve.access.rights import Viewer, find, require, visible_to
from judge.serve.api.limits import (
    Cursor,
    Limit,
    cursor_text,
    cursor_value,
    entity_tag,
    matches,
    next_link,
    rate,
    required_version,
    who,
)
from judge.serve.api.views import is_finished, seen, submission_view, verdicts_view
from judge.serve.boards.telling import is_bounded_for
from judge.serve.boards.versions import boards_of
from judge.serve.context import Caller, Server, ThisServer
from judge.serve.problems import Problem, not_found
from judge.serve.queue.conditions import suite_place
from judge.serve.queue.leases import cancel
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows, first_row
from judge.serve.store.words import FINISHED, JudgingState, Level, Scope
from judge.serve.waking import Waker, wait_for

router = APIRouter(tags=["submissions"])

MAX_WAIT_S = 60
_COMMENT_S = 15.0
_STREAM_S = 3600.0
_VARY = {"Vary": "Authorization", "Cache-Control": "private, no-cache"}

SubmissionId = Annotated[str, Path(max_length=40)]
_FIELDS = frozenset(
    {"id", "state", "version", "phase", "account", "kind", "created", "cases", "scores", "links"}
)


@router.get("/submissions", dependencies=[rate("read")])
def list_submissions(
    request: Request,
    response: Response,
    caller: Caller,
    server: ThisServer,
    phase: Annotated[str | None, Query(max_length=80)] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    fields: Annotated[str | None, Query(max_length=200)] = None,
) -> dict[str, Any]:
    """The submissions that the caller sees, the newest first."""
    require(caller, Scope.READ)
    chosen = _chosen(fields)
    with server.database.reading() as connection:
        query = sa.select(t.submission).where(visible_to(caller, t.submission))
        if phase is not None:
            row = find(connection, caller, t.phase, phase)
            query = query.where(t.submission.c.phase == row["id"])
        if cursor is not None:
            query = query.where(t.submission.c.seq < cursor_value(server, cursor))
        rows = all_rows(connection, query.order_by(t.submission.c.seq.desc()).limit(limit + 1))
        views = [submission_view(connection, caller, row) for row in rows[:limit]]
    if len(rows) > limit:
        following = cursor_text(server, rows[limit - 1]["seq"])
        response.headers["Link"] = next_link(request.url, following)
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
    """One submission; with ``wait``, as soon as its version is not that of ``If-None-Match``."""
    require(caller, Scope.READ)
    view = await run_in_threadpool(_view, server, caller, submission)
    if wait and matches(if_none_match, _tag(view)) and not is_finished(view):
        waker = waker_of(server)
        deadline = time.monotonic() + wait
        with waker.seat(who(caller)), waker.listening(submission) as event:
            while matches(if_none_match, _tag(view)):
                left = deadline - time.monotonic()
                if left <= 0 or await request.is_disconnected():
                    break
                if await wait_for(event, min(left, 5.0)):
                    view = await run_in_threadpool(_view, server, caller, submission)
    headers = {"ETag": _tag(view), **_VARY}
    if matches(if_none_match, _tag(view)):
        return Response(status_code=304, headers=headers)
    return JSONResponse(view, headers=headers)


@router.get("/submissions/{submission}/verdicts", dependencies=[rate("read")])
def get_verdicts(submission: SubmissionId, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The verdicts of a submission as far as the feedback level tells them."""
    require(caller, Scope.READ)
    with server.database.reading() as connection:
        row = find(connection, caller, t.submission, submission)
        judging, level, phase = seen(connection, caller, row)
        bounded = is_bounded_for(connection, caller, phase)
        verdicts = verdicts_view(connection, judging, level, bounded=bounded)
    return {"id": row["id"], "level": level.value, "verdicts": verdicts}


@router.get(
    "/submissions/{submission}/report",
    dependencies=[rate("read")],
    response_class=HTMLResponse,
)
def get_report(submission: SubmissionId, caller: Caller, server: ThisServer) -> Response:
    """The report of a submission with cells, where the feedback level shows them."""
    require(caller, Scope.READ)
    with server.database.reading() as connection:
        row = find(connection, caller, t.submission, submission)
        judging, level, _ = seen(connection, caller, row)
        if judging["state"] != JudgingState.DONE:
            raise Problem("conflict", "The submission has not been judged.")
        if not level.shows(Level.CELLS):
            raise Problem("forbidden", f"The feedback level of this phase is {level}.")
        revision = _revision(connection, judging)
    try:
        place = suite_place(server.folder, revision)
        text = report_html(server.folder.results(judging["id"]), dataset=place)
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
    """Ends the judging of one's own submission, at once or after the case under way."""
    require(caller, Scope.SUBMIT)
    expected = required_version(if_match)
    with server.database.writing(caller.actor()) as transaction:
        row = own_row(transaction.connection, caller, submission, expected)
        if (
            row["current_judging"] is None
            or cancel(transaction, row["current_judging"]) in FINISHED
        ):
            raise Problem("conflict", "The judging has ended.")
    view = _view(server, caller, submission)
    return JSONResponse(view, headers={"ETag": _tag(view), **_VARY})


@router.post("/submissions/{submission}:withdraw", dependencies=[rate("change")])
def withdraw_submission(
    submission: SubmissionId,
    caller: Caller,
    server: ThisServer,
    if_match: Annotated[str | None, Header(max_length=200)] = None,
) -> Response:
    """Takes one's own submission off the boards; nothing is deleted, and no turn given back."""
    require(caller, Scope.SUBMIT)
    expected = required_version(if_match)
    with server.database.writing(caller.actor()) as transaction:
        row = own_row(transaction.connection, caller, submission, expected)
        if row["withdrawn"] is not None:
            raise Problem("conflict", "It is withdrawn already.")
        transaction.execute(
            sa.update(t.submission)
            .where(t.submission.c.id == row["id"])
            .values(withdrawn=t.Now(), version=t.submission.c.version + 1)
        )
        transaction.event("submission.withdrawn", row["id"], after="withdrawn")
        boards_of(server).renew(transaction, row["phase"], "a submission was withdrawn")
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
    return event_stream(
        request, server, caller, view["id"], last_event_id, ends_with="submission.judged"
    )


def event_stream(
    request: Request,
    server: Server,
    caller: Viewer,
    of: str,
    last_event_id: str | None,
    *,
    ends_with: str | None = None,
) -> StreamingResponse:
    """Events about an object that the caller may see, as server-sent events.

    Args:
        request: ends the stream when its client is gone.
        server: this one.
        caller: who listens.
        of: the object's id.
        last_event_id: the header; events after it are sent.
        ends_with: the kind of event after which the stream ends with ``end``.
    """
    waker = waker_of(server)
    seat = waker.seat(who(caller))
    seat.__enter__()
    after = int(last_event_id) if last_event_id and last_event_id.isdecimal() else 0

    async def lines() -> AsyncIterator[str]:
        nonlocal after
        deadline = time.monotonic() + _STREAM_S
        with waker.listening(of) as event:
            while time.monotonic() < deadline and not await request.is_disconnected():
                for row in await run_in_threadpool(_news_of, server, of, after):
                    after = row["seq"]
                    data = json.dumps({"kind": row["kind"], "state": row["after"]})
                    yield f"id: {after}\nevent: {row['kind']}\ndata: {data}\n\n"
                    if row["kind"] == ends_with:
                        yield "event: end\ndata: {}\n\n"
                        return
                if not await wait_for(event, _COMMENT_S):
                    yield ": still here\n\n"

    async def seated() -> AsyncIterator[str]:
        try:
            async for line in lines():
                yield line
        finally:
            seat.__exit__(None, None, None)

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(seated(), media_type="text/event-stream", headers=headers)


def waker_of(server: Server) -> Waker:
    """What the requests of this process wait with."""
    waker: Waker = server.shared.setdefault("waker", Waker(server.database))
    return waker


def own_row(
    connection: sa.Connection, caller: Viewer, submission: str, expected: str
) -> dict[str, Any]:
    """The row of a submission that the caller may change, at the version that they have seen.

    Raises:
        Problem: 404, 403 for those who only see it, or 412.
    """
    row = find(connection, caller, t.submission, submission)
    if row["account"] not in caller.teams:
        raise Problem("forbidden", "Only the team that submitted it may do this.")
    view = submission_view(connection, caller, row)
    if not matches(expected, _tag(view)):
        raise Problem("precondition-failed", headers={"ETag": _tag(view)})
    return row


def _news_of(server: Server, of: str, after: int) -> list[dict[str, Any]]:
    with server.database.reading() as connection:
        judgings = sa.select(t.judging.c.id).where(
            t.judging.c.submission == of, t.judging.c.rejudging.is_(None)
        )
        query = sa.select(t.event.c.seq, t.event.c.kind, t.event.c.after).where(
            t.event.c.seq > after, (t.event.c.object == of) | t.event.c.object.in_(judgings)
        )
        return all_rows(connection, query.order_by(t.event.c.seq).limit(500))


def _view(server: Server, caller: Viewer, submission: str) -> dict[str, Any]:
    with server.database.reading() as connection:
        row = find(connection, caller, t.submission, submission)
        return submission_view(connection, caller, row)


def _tag(view: dict[str, Any]) -> str:
    return entity_tag(view["version"], view["level"])


def _revision(connection: sa.Connection, judging: dict[str, Any]) -> dict[str, Any]:
    row = first_row(
        connection,
        sa.select(t.revision)
        .join(t.conditions, t.conditions.c.revision == t.revision.c.id)
        .where(t.conditions.c.digest == judging["conditions"]),
    )
    assert row is not None, "conditions name a revision"
    return row


def _chosen(fields: str | None) -> frozenset[str] | None:
    if fields is None:
        return None
    chosen = frozenset(fields.split(","))
    if not chosen <= _FIELDS:
        raise Problem("invalid", f"`fields` takes {', '.join(sorted(_FIELDS))}.")
    return chosen
