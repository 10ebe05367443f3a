"""``/v1/disputes`` and ``/v1/review``: open, list, withdraw and decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import sqlalchemy as sa
from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from judge.serve.access.rights import Viewer, find, require, visible_to
from judge.serve.api.limits import Paging, rate
from judge.serve.context import Caller, Server, ThisServer
from judge.serve.disputes.correcting import Settlement, decide_and_settle
from judge.serve.disputes.review import (
    MAX_TEXT,
    Claim,
    DisputeKind,
    Group,
    Opinion,
    dispute_view,
    groups,
    open_dispute,
    suspect_of,
    withdraw,
)
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.tables import DisputeState, Scope
from judge.sessions.corrections import Typed
from judge.suspects.decisions import Finding

router = APIRouter(tags=["disputes"])

_Id = Annotated[str, Path(max_length=80)]
_PLAIN = r"^[^\x00]*$"
"""Text that every database can store."""
_Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT, pattern=_PLAIN)]
_MoreText = Annotated[str, Field(max_length=MAX_TEXT, pattern=_PLAIN)]
_MAX_CASE = 1_000_000  # far above the number of cases of any task
_MAX_CORRECTED = 1_000  # cases that one decision corrects


class NewDispute(BaseModel):
    """A dispute to open: about a submission's verdict, or about a task of a public split."""

    model_config = ConfigDict(extra="forbid")

    submission: Annotated[str, Field(max_length=31, pattern=_PLAIN)] | None = None
    suite: Annotated[str, Field(max_length=80, pattern=_PLAIN)] | None = None
    task: Annotated[str, Field(min_length=1, max_length=200, pattern=_PLAIN)]
    case: Annotated[int, Field(ge=1, le=_MAX_CASE)] = 1
    kind: DisputeKind
    claim: _Text
    evidence: _MoreText = ""


class NewDecision(BaseModel):
    """A reviewer's finding; for a fault, also what is right instead."""

    model_config = ConfigDict(extra="forbid")

    finding: Finding
    reason: _Text
    evidence: _MoreText = ""
    cells: Annotated[
        dict[str, Annotated[str, Field(max_length=20_000, pattern=_PLAIN)]], Field(max_length=100)
    ] = Field(default_factory=dict)
    position: Annotated[str, Field(max_length=1_000, pattern=_PLAIN)] = ""
    style: Annotated[str, Field(max_length=200, pattern=_PLAIN)] = ""
    left_out: Annotated[
        list[Annotated[int, Field(ge=1, le=_MAX_CASE)]], Field(max_length=_MAX_CORRECTED)
    ] = Field(default_factory=list)
    task_left_out: bool = False

    def opinion(self) -> Opinion:
        """The opinion, converted for :mod:`judge.serve.disputes.review`."""
        cells = {int(case): text for case, text in self.cells.items() if case.isdecimal()}
        typed = Typed(cells, self.position, self.style, tuple(self.left_out), self.task_left_out)
        return Opinion(self.finding, self.reason, self.evidence, typed)


@router.post("/disputes", status_code=201, dependencies=[rate("change")])
def post_dispute(dispute: NewDispute, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """Disputes a verdict, a question or a rule."""
    account = require(caller, Scope.DISPUTE)
    claim = Claim(**dispute.model_dump())
    with server.database.writing(caller.actor()) as transaction:
        opened = open_dispute(transaction, caller, account, claim)
    return {"id": opened, "state": DisputeState.OPEN}


@router.get("/disputes", dependencies=[rate("read")])
def get_disputes(
    caller: Caller,
    server: ThisServer,
    page: Paging,
    state: DisputeState | None = None,
) -> dict[str, Any]:
    """The caller's own disputes and all decided ones, newest first."""
    last = page.since("disputes") or ""
    rows = visible_disputes(server, caller, state=state, limit=page.limit + 1, before=last)
    return {"disputes": page.cut("disputes", rows, "id")}


@router.get("/disputes/{dispute}", dependencies=[rate("read")])
def get_dispute(dispute: _Id, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """One dispute."""
    with server.database.reading() as connection:
        row = find(connection, caller, t.dispute, dispute)
        return _shown(connection, caller, [row])[0]


def visible_disputes(
    server: Server, viewer: Viewer, *, state: DisputeState | None, limit: int, before: str = ""
) -> list[dict[str, Any]]:
    """The disputes that the viewer may see, newest first."""
    statement = sa.select(t.dispute).where(visible_to(viewer, t.dispute))
    if state is not None:
        statement = statement.where(t.dispute.c.state == state)
    if before:
        statement = statement.where(t.dispute.c.id < before)
    with server.database.reading() as connection:
        rows = all_rows(connection, statement.order_by(t.dispute.c.id.desc()).limit(limit))
        return _shown(connection, viewer, rows)


def _shown(
    connection: sa.Connection, viewer: Viewer, rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    accounts = _names(connection, t.account, {row["account"] for row in rows})
    suites = _names(connection, t.suite, {row["suite"] for row in rows})
    return [dispute_view(viewer, row, suites[row["suite"]], accounts) for row in rows]


def _names(connection: sa.Connection, table: sa.Table, ids: set[str]) -> dict[str, str]:
    rows = connection.execute(sa.select(table.c.id, table.c.name).where(table.c.id.in_(ids)))
    return {row.id: row.name for row in rows}


@router.post("/disputes/{dispute}:withdraw", status_code=200, dependencies=[rate("change")])
def post_withdraw(dispute: _Id, caller: Caller, server: ThisServer) -> dict[str, Any]:
    """Withdraws one's own dispute; possible until a reviewer has opened it."""
    require(caller, Scope.DISPUTE)
    with server.database.writing(caller.actor()) as transaction:
        withdraw(transaction, caller, dispute)
    return {"id": dispute, "state": DisputeState.WITHDRAWN}


@router.get("/review", dependencies=[rate("read")])
def get_review(caller: Caller, server: ThisServer) -> dict[str, Any]:
    """The cases that wait for the caller's decision, without the findings of others."""
    reviewer = require(caller, Scope.REVIEW)
    with server.database.reading() as connection:
        return {
            "suspects": [
                group_view(connection, group, reviewer) for group in groups(connection, caller)
            ]
        }


def group_view(connection: sa.Connection, group: Group, reviewer: str) -> dict[str, Any]:
    """A suspect as reviewers see it in lists."""
    suspect = suspect_of(group.disputes)
    mine = connection.scalar(
        sa.select(t.decision.c.decision).where(
            t.decision.c.dispute.in_([row["id"] for row in group.disputes]),
            t.decision.c.reviewer == reviewer,
        )
    )
    return {
        "dispute": group.disputes[0]["id"],
        "suite": group.suite["name"],
        "task": group.task,
        "case": group.case,
        "certainty": suspect.certainty,
        "summary": suspect.summary,
        "claims": [
            {name: row[name] for name in ("id", "kind", "claim", "evidence", "created")}
            for row in group.disputes
        ],
        "mine": mine,
    }


@router.post("/disputes/{dispute}:decide", dependencies=[rate("change")])
def post_decision(
    dispute: _Id, decision: NewDecision, caller: Caller, server: ThisServer
) -> dict[str, Any]:
    """Decides about a dispute and all others of the same case, as a reviewer of its suite."""
    require(caller, Scope.REVIEW)
    with server.database.reading() as connection:
        find(connection, caller, t.dispute, dispute)
    return settlement_view(decide_and_settle(server, caller, dispute, decision.opinion()))


def settlement_view(settled: Settlement) -> dict[str, Any]:
    """The outcome of a decision, as the API returns it."""
    return {
        "state": settled.state,
        "decided": settled.decided,
        "needed": settled.needed,
        "revision": settled.revision,
        "rejudging": settled.rejudging,
        "note": settled.note,
    }
