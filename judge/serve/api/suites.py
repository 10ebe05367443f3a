"""``/v1/suites`` and ``/v1/status``: the suites to submit to, and how busy the server is."""

from __future__ import annotations

import time
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from judge.serve.access.rights import (
    HIDDEN_SPLIT,
    find,
    in_lists,
    phase_state,
    require,
    split_level,
)
from judge.serve.api.limits import PRINTABLE, rate
from judge.serve.api.submissions import receive
from judge.serve.catalog import LoadedSuites, revision_of, revisions_of
from judge.serve.context import Caller, Server, ThisServer
from judge.serve.intake import (
    ARCHIVE,
    LIMITS,
    MAX_LINE_BYTES,
    MAX_LINES,
    add_uploaded_revision,
    may_upload,
    quota_left,
)
from judge.serve.problems import Problem, not_found
from judge.serve.queue.dispatcher import END_TICK_S, MAINTENANCE
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.folder import ReceivedBody
from judge.serve.store.tables import JudgingState, Scope
from judge.version import __version__

router = APIRouter(tags=["suites"])

SuiteName = Annotated[str, Path(max_length=80)]
TaskId = Annotated[str, Field(max_length=200, pattern=PRINTABLE)]
_OBJECT: dict[str, Any] = {"content": {"application/json": {"schema": {"type": "object"}}}}


@router.get("/suites", dependencies=[rate("read")])
def list_suites(caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The suites that are public, and the caller's own suites."""
    with server.database.reading() as connection:
        rows = all_rows(
            connection,
            sa.select(t.suite.c.id, t.suite.c.name, t.suite.c.title, t.suite.c.visibility)
            .where(in_lists(caller, t.suite))
            .order_by(t.suite.c.name),
        )
    return {"suites": rows}


@router.get("/suites/{suite}", dependencies=[rate("read")])
def get_suite(suite: SuiteName, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """A suite: its revision, splits with their feedback levels, and phases with quotas."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.suite, suite)
        revision = revision_of(connection, row["current_revision"])
        splits = all_rows(
            connection,
            sa.select(t.split.c.name, t.split.c.cases, t.split.c.tasks)
            .where(t.split.c.revision == revision["id"])
            .order_by(t.split.c.name),
        )
        now = str(connection.scalar(sa.select(t.Now())))
        phases = []
        for phase in all_rows(
            connection,
            sa.select(t.phase).where(t.phase.c.suite == row["id"]).order_by(t.phase.c.id),
        ):
            shown = {
                name: phase[name]
                for name in ("id", "name", "split", "opens", "closes", "per_day", "in_total")
            }
            shown["state"] = phase_state(phase, now).value
            if caller.account is not None:
                accounts = sorted(caller.teams)
                shown["left"] = {
                    account: quota_left(connection, phase, account) for account in accounts
                }
            phases.append(shown)
    return {
        "id": row["id"],
        "name": row["name"],
        "title": row["title"],
        "description": row["description"],
        "revision": _revision_view(revision),
        "splits": [
            {
                "name": split["name"],
                "cases": split["cases"],
                "tasks": len(split["tasks"]),
                "level": split_level(row, split["name"]).value,
            }
            for split in splits
        ],
        "phases": phases,
    }


@router.get("/suites/{suite}/revisions", dependencies=[rate("read")])
def list_revisions(suite: SuiteName, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The revisions of a suite, oldest first."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.suite, suite)
        rows = revisions_of(connection, row["id"])
    return {"revisions": [_revision_view(revision) for revision in rows]}


@router.put(
    "/suites/{suite}/revisions",
    status_code=201,
    dependencies=[rate("change")],
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {ARCHIVE: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
    responses={200: {"description": "There is a revision with this content.", **_OBJECT}},
)
async def put_revision(
    request: Request,
    response: Response,
    suite: SuiteName,
    caller: Caller,
    server: ThisServer,
    hidden: Annotated[list[TaskId] | None, Query(max_length=10_000)] = None,
    note: Annotated[str, Query(max_length=300, pattern=PRINTABLE)] = "",
) -> dict[str, Any]:
    """Adds a revision with the content of an archive to one's own suite, or makes a new suite.

    ``hidden`` names the tasks of the hidden split; without it, the hidden tasks of the previous
    revision stay hidden. A new revision takes effect when a rejudging with it is applied; the first
    one takes effect immediately.
    """
    require(caller, Scope.AUTHOR)
    may_upload(server, caller, suite)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != ARCHIVE:
        raise Problem("unsupported-type", f"Send {ARCHIVE}.")

    def accept(received: ReceivedBody, _: str) -> tuple[dict[str, Any], bool]:
        return add_uploaded_revision(server, caller, suite, received, hidden, note)

    revision, is_new = await receive(server, request, ARCHIVE, accept)
    if not is_new:
        response.status_code = 200
    return _revision_view(revision)


@router.get("/suites/{suite}/tasks/{task}", dependencies=[rate("read")])
def get_task(
    suite: SuiteName,
    task: Annotated[str, Path(max_length=200)],
    caller: Caller,
    server: ThisServer,
) -> dict[str, Any]:
    """A task of a public split: its question, without inputs and golds."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.suite, suite)
        revision = revision_of(connection, row["current_revision"])
        splits = all_rows(
            connection, sa.select(t.split).where(t.split.c.revision == revision["id"])
        )
    public = {name for split in splits if split["name"] != HIDDEN_SPLIT for name in split["tasks"]}
    if task not in public:
        raise not_found()
    suites: LoadedSuites = server.shared.setdefault("suites", LoadedSuites(server.folder))
    loaded = suites.suite(revision).task(task)
    return {
        "id": loaded.id,
        "question": loaded.question.instruction,
        "cases": len(loaded.cases),
        "answer": loaded.answer.value,
    }


@router.get("/status", dependencies=[rate("read")])
def status(server: ThisServer) -> dict[str, Any]:
    """How busy the server is, updated every 30 s, and its limits.

    Live numbers would show to the second when a judging of a hidden split ends.
    """
    slot = int(time.monotonic() // END_TICK_S)
    seen, view = server.shared.get("status", (None, {}))
    if seen != slot:
        view = _busy(server)
        server.shared["status"] = (slot, view)
    notice = server.setting(MAINTENANCE)
    return {
        "version": __version__,
        **view,
        "maintenance": None if notice is None else notice.get("message"),
        "limits": {"bytes": LIMITS, "line_bytes": MAX_LINE_BYTES, "lines": MAX_LINES},
    }


def _busy(server: Server) -> dict[str, Any]:
    """The number of judgings by state, and the dispatchers with their slots."""
    with server.database.reading() as connection:
        rows = connection.execute(
            sa.select(t.judging.c.state, sa.func.count().label("number"))
            .where(t.judging.c.state.in_((JudgingState.QUEUED, JudgingState.RUNNING)))
            .group_by(t.judging.c.state)
        )
        counts: dict[str, int] = {row.state: row.number for row in rows}
        dispatchers = all_rows(
            connection,
            sa.select(
                t.dispatcher.c.state,
                sa.func.count().label("number"),
                sa.func.sum(t.dispatcher.c.slots).label("slots"),
            ).group_by(t.dispatcher.c.state),
        )
    return {
        "queued": counts.get(JudgingState.QUEUED.value, 0),
        "running": counts.get(JudgingState.RUNNING.value, 0),
        "dispatchers": {
            row["state"]: {"number": row["number"], "slots": int(row["slots"])}
            for row in dispatchers
        },
    }


def _revision_view(revision: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": revision["id"],
        "number": revision["number"],
        "digest": f"sha256:{revision['digest']}",
        "corrections": revision["corrections"],
        "cases": revision["cases"],
        "created": revision["created"],
        "note": revision["note"],
    }
