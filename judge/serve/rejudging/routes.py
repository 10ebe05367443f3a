"""``/v1/rejudgings``: open, look at the differences, apply or cancel."""

from __future__ import annotations

from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from judge.serve.access.rights import Viewer, find, require, require_suite_role, visible_to
from judge.serve.api.limits import Paging, rate
from judge.serve.boards.versions import boards_of
from judge.serve.catalog import revision_of, revisions_of
from judge.serve.context import Caller, Server, ThisServer
from judge.serve.problems import Problem
from judge.serve.rejudging import states
from judge.serve.rejudging.service import RejudgingRequest, advance, compute_cost, open_requested
from judge.serve.rejudging.states import ApplyRequest, Scope, ScopeKind
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.tables import RejudgingState, SuiteRole
from judge.serve.store.tables import Scope as TokenScope

router = APIRouter(tags=["rejudgings"])

_Id = Annotated[str, Path(max_length=80)]
_PLAIN = r"^[^\x00]*$"
_Ids = Annotated[
    list[Annotated[str, Field(max_length=200, pattern=_PLAIN)]], Field(max_length=1_000)
]
_MAX_CHANGED = 2**53  # the largest whole number that JSON clients represent exactly


class ScopeRequest(BaseModel):
    """What is judged again; see :class:`judge.serve.rejudging.states.Scope`."""

    model_config = ConfigDict(extra="forbid")

    of: ScopeKind = ScopeKind.ALL
    ids: _Ids = Field(default_factory=list)
    tasks: _Ids = Field(default_factory=list)
    afresh: bool = False


class NewRejudging(BaseModel):
    """A request to open a rejudging."""

    model_config = ConfigDict(extra="forbid")

    suite: Annotated[str, Field(max_length=80, pattern=_PLAIN)]
    reason: Annotated[str, Field(min_length=1, max_length=1_000, pattern=_PLAIN)]
    revision: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    scope: ScopeRequest = Field(default_factory=ScopeRequest)
    options: Annotated[dict[str, Any], Field(max_length=20)] | None = None


class Confirmation(BaseModel):
    """The number that is typed to apply a rejudging."""

    model_config = ConfigDict(extra="forbid")

    changed: Annotated[int, Field(ge=0, le=_MAX_CHANGED)]


@router.post("/rejudgings", status_code=201, dependencies=[rate("change")])
def post_rejudging(new: NewRejudging, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """Opens the draft of a rejudging, and computes its cost."""
    require(caller, TokenScope.AUTHOR)
    with server.database.reading() as connection:
        suite = find(connection, caller, t.suite, new.suite)
        account = require_suite_role(caller, SuiteRole.AUTHOR, suite["id"])
        revision = revision_of(connection, suite["current_revision"])
        if new.revision is not None:
            numbered = {row["number"]: row for row in revisions_of(connection, suite["id"])}
            if new.revision not in numbered:
                raise Problem("invalid", f"The suite has no revision {new.revision}.")
            revision = numbered[new.revision]
    scope = Scope(new.scope.of, tuple(new.scope.ids), tuple(new.scope.tasks), new.scope.afresh)
    with server.database.writing(caller.actor()) as transaction:
        rejudging = open_requested(
            transaction, RejudgingRequest(suite, revision, scope, new.reason, account, new.options)
        )
    cost = compute_cost(server, rejudging)
    return {"id": rejudging, "state": RejudgingState.DRAFT, "cost": cost}


@router.get("/rejudgings", dependencies=[rate("read")])
def get_rejudgings(caller: Caller, server: ThisServer, page: Paging) -> dict[str, Any]:
    """Rejudgings, newest first."""
    last = page.since("rejudgings") or ""
    rows = visible_rejudgings(server, caller, limit=page.limit + 1, before=last)
    return {"rejudgings": page.cut("rejudgings", rows, "id")}


def visible_rejudgings(
    server: Server, viewer: Viewer, *, limit: int, before: str = ""
) -> list[dict[str, Any]]:
    """The rejudgings that the viewer may see, newest first."""
    statement = (
        sa.select(
            t.rejudging.c.id,
            t.rejudging.c.created,
            t.rejudging.c.reason,
            t.rejudging.c.state,
            t.suite.c.name.label("suite"),
        )
        .join(t.suite, t.suite.c.id == t.rejudging.c.suite)
        .where(visible_to(viewer, t.rejudging))
        .order_by(t.rejudging.c.id.desc())
        .limit(limit)
    )
    if before:
        statement = statement.where(t.rejudging.c.id < before)
    with server.database.reading() as connection:
        return all_rows(connection, statement)


@router.get("/rejudgings/{rejudging}", dependencies=[rate("read")])
def get_rejudging(rejudging: _Id, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """One rejudging: its state, cost and progress."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.rejudging, rejudging)
        return rejudging_view(connection, caller, row)


def rejudging_view(
    connection: sa.Connection, viewer: Viewer, row: dict[str, Any]
) -> dict[str, Any]:
    """A rejudging as the API and the pages show it; only authors see more than state and reason."""
    suite = connection.scalar(sa.select(t.suite.c.name).where(t.suite.c.id == row["suite"]))
    document: dict[str, Any] = {
        name: row[name] for name in ("id", "created", "reason", "state", "decided", "conditions")
    }
    document["suite"] = suite
    document["disputes"] = list(
        connection.scalars(sa.select(t.dispute.c.id).where(t.dispute.c.rejudging == row["id"]))
    )
    if not viewer.authors(row["suite"]):
        return document
    progress = states.progress_of(connection, row["id"])
    diff = row["diff"] or {}
    return {
        **document,
        "scope": row["scope"],
        "cost": diff.get("cost"),
        "members": progress.members,
        "done": progress.done,
        "failed": list(progress.failed),
        "changed": diff.get("changed"),
        "outside": diff.get("outside"),
    }


@router.get("/rejudgings/{rejudging}/diff", dependencies=[rate("read")])
def get_diff(rejudging: _Id, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """What applying a rejudging would change, unexpected changes first; only for authors."""
    row = _authored(server, caller, rejudging)
    if row["state"] not in {RejudgingState.READY, RejudgingState.APPLIED}:
        raise Problem("conflict", f"The rejudging is {row['state']}: it has no differences yet.")
    return {name: value for name, value in row["diff"].items() if name != "cost"}


def _authored(server: Server, viewer: Viewer, rejudging: str) -> dict[str, Any]:
    with server.database.reading() as connection:
        row = find(connection, viewer, t.rejudging, rejudging)
    require_suite_role(viewer, SuiteRole.AUTHOR, row["suite"])
    return row


@router.post("/rejudgings/{rejudging}:start", dependencies=[rate("change")])
def post_start(rejudging: _Id, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """Starts to judge the members of a draft."""
    return act(server, caller, rejudging, "start")


@router.post("/rejudgings/{rejudging}:retry", dependencies=[rate("change")])
def post_retry(rejudging: _Id, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """Queues the failed members again."""
    return act(server, caller, rejudging, "retry")


@router.post("/rejudgings/{rejudging}:cancel", dependencies=[rate("change")])
def post_cancel(rejudging: _Id, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """Cancels a rejudging; its judgings are kept, and nothing else changes."""
    return act(server, caller, rejudging, "cancel")


def act(server: Server, viewer: Viewer, rejudging: str, name: str) -> dict[str, Any]:
    """Starts, retries or cancels a rejudging, for the API and the pages.

    Raises:
        Problem: 401, 403, 404, or 409 in another state.
    """
    row = _authored(server, viewer, rejudging)
    with server.database.writing(viewer.actor()) as transaction:
        if name == "start":
            states.start(transaction, rejudging)
        elif name == "retry":
            states.retry_failed(transaction, rejudging)
        else:
            states.cancel(transaction, rejudging, str(viewer.account))
    if name == "start":
        advance(server)
    with server.database.reading() as connection:
        return rejudging_view(connection, viewer, find(connection, viewer, t.rejudging, row["id"]))


@router.post("/rejudgings/{rejudging}:apply", dependencies=[rate("change")])
def post_apply(
    rejudging: _Id, typed: Confirmation, caller: Caller, server: ThisServer, response: Response
) -> dict[str, Any]:
    """Makes a rejudging's judgings current; ``changed`` is the number of verdicts that change."""
    response.headers["Cache-Control"] = "no-store"
    return apply(server, caller, rejudging, typed.changed)


def apply(server: Server, viewer: Viewer, rejudging: str, changed: int) -> dict[str, Any]:
    """Applies a rejudging, for the API and the pages.

    Raises:
        Problem: 401, 403, 404; 409 if it is not ready, or new submissions have been made.
    """
    row = _authored(server, viewer, rejudging)
    with server.database.reading() as connection:
        suite = find(connection, viewer, t.suite, row["suite"])
    applying = ApplyRequest(str(viewer.account), changed, bool(suite["two_reviewers"]))
    with server.database.writing(viewer.actor()) as transaction:
        late = states.apply(transaction, rejudging, applying, boards_of(server).new_version)
    if late:
        raise Problem("conflict", f"{late} submissions were made meanwhile; they are judged first.")
    with server.database.reading() as connection:
        return rejudging_view(connection, viewer, find(connection, viewer, t.rejudging, rejudging))
