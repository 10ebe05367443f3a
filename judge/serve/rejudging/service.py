"""Rejudgings of a running server: opened with their cost, moved on, and applied.

What takes time (loading suites, comparing verdicts) is done outside of transactions; the state
machine then takes the result only if nothing has happened since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from judge.serve.boards.versions import compare_boards
from judge.serve.catalog import LoadedSuites, revision_of
from judge.serve.context import Server
from judge.serve.problems import Problem
from judge.serve.queue.conditions import checked_options, ensure_conditions, environment_of
from judge.serve.rejudging import machine
from judge.serve.rejudging.cost import Change, change_between, cost_of
from judge.serve.rejudging.diff import diff_of
from judge.serve.rejudging.machine import Opening, Scope
from judge.serve.store import tables as t
from judge.serve.store.database import Actor, Transaction, all_rows, first_row
from judge.serve.store.words import RejudgingState

_ACTOR = Actor("rejudging")
_OF_RUNS = ("limits", "sandbox")
"""Parts of conditions that the key of a run depends on."""
_OF_COMPARISONS = ("profile", "style", "checker", "recalc")
"""Parts that the key of a comparison depends on, besides the suite."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A rejudging that somebody asks for.

    Attributes:
        suite: the row of the suite.
        revision: the row of the revision to judge by.
        scope: what is judged again.
        reason: for the boards' pages.
        opened_by: id of the account.
        options: options of judging that replace those of the suite; None for the suite's own.
        disputes: ids of the accepted disputes that it settles.
    """

    suite: Mapping[str, Any]
    revision: dict[str, Any]
    scope: Scope
    reason: str
    opened_by: str
    options: Mapping[str, Any] | None = None
    disputes: tuple[str, ...] = ()


def open_asked(transaction: Transaction, asked: Asked) -> str:
    """Makes a draft; :func:`reckon` says what it will cost.

    Returns:
        Its id.

    Raises:
        Problem: 409 or 422, see :func:`judge.serve.rejudging.machine.open_rejudging`.
        UsageError: an option is not one.
    """
    environment = environment_of(transaction.connection)
    if environment is None:
        raise Problem("conflict", "No dispatcher has been started on this server yet.")
    options = asked.suite["options"]
    if asked.options is not None:
        options = checked_options(dict(asked.options))
    conditions = ensure_conditions(transaction, asked.revision, options, environment)
    return machine.open_rejudging(
        transaction,
        Opening(
            asked.suite["id"],
            conditions,
            asked.scope,
            asked.reason,
            asked.opened_by,
            asked.disputes,
            None if asked.options is None else options,
        ),
    )


def reckon(server: Server, rejudging: str) -> dict[str, Any]:
    """Says what a draft will cost, and records it.

    Returns:
        See :func:`judge.serve.rejudging.cost.cost_of`.

    Raises:
        JudgeError: the files of a revision are gone.
    """
    with server.database.reading() as connection:
        row = _row(connection, rejudging)
        target = _conditions(connection, row["conditions"])
        scope = Scope.of_document(row["scope"])
        used = connection.scalars(
            machine.in_scope(row["suite"], scope)
            .order_by(None)
            .with_only_columns(t.judging.c.conditions)
            .distinct()
        ).all()
        befores = [_conditions(connection, digest) for digest in sorted(used)]
    suites = loaded_suites(server)
    changes = {before["digest"]: _change(suites, before, target) for before in befores}
    with server.database.reading() as connection:
        cost = cost_of(connection, row["suite"], scope, changes)
    with server.database.writing(_ACTOR) as transaction:
        transaction.execute(
            sa.update(t.rejudging)
            .where(t.rejudging.c.id == rejudging, t.rejudging.c.state == RejudgingState.DRAFT)
            .values(diff={"cost": cost})
        )
    return cost


def _change(suites: LoadedSuites, before: Mapping[str, Any], target: Mapping[str, Any]) -> Change:
    old, new = before["document"], target["document"]
    return change_between(
        suites.suite(before["revision"]),
        suites.suite(target["revision"]),
        runs=any(old.get(name) != new.get(name) for name in _OF_RUNS),
        comparisons=any(old.get(name) != new.get(name) for name in _OF_COMPARISONS),
    )


def _conditions(connection: sa.Connection, digest: str) -> dict[str, Any]:
    row = first_row(connection, sa.select(t.conditions).where(t.conditions.c.digest == digest))
    assert row is not None, "a foreign key names it"
    return {**row, "revision": revision_of(connection, row["revision"])}


def loaded_suites(server: Server) -> LoadedSuites:
    """The suites that this process has loaded."""
    suites: LoadedSuites = server.shared.setdefault("suites", LoadedSuites(server.folder))
    return suites


def advance(server: Server) -> int:
    """Moves every open rejudging on as far as it can go: costs, late submissions, differences.

    Returns:
        How many have become ready.
    """
    with server.database.reading() as connection:
        rows = all_rows(
            connection, sa.select(t.rejudging).where(t.rejudging.c.state.in_(machine.OPEN))
        )
    ready = 0
    for row in rows:
        if row["state"] == RejudgingState.DRAFT:
            if row["diff"] is None:
                reckon(server, row["id"])
            continue
        with server.database.writing(_ACTOR) as transaction:
            machine.take_late(transaction, row["id"])
        with server.database.reading() as connection:
            row = _row(connection, row["id"])  # noqa: PLW2901  as it is now
            complete = machine.progress_of(connection, row["id"]).is_complete
            if row["state"] != RejudgingState.RUNNING or not complete:
                continue
            diff = diff_of(connection, row, compare_boards)
        with server.database.writing(_ACTOR) as transaction:
            ready += machine.make_ready(transaction, row["id"], diff, diff["members"])
    return ready


def _row(connection: sa.Connection, rejudging: str) -> dict[str, Any]:
    row = first_row(connection, sa.select(t.rejudging).where(t.rejudging.c.id == rejudging))
    assert row is not None, "the caller has seen it"
    return row
