"""Turns a fault on which reviewers agree into a new revision and the draft of a rejudging.

The correction is bound to the SHA-256 of the files, like every correction. The new revision has the
corrections of the previous revision, and the new one. All of this happens in the transaction of the
last reviewer's decision.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from judge.serve.access.rights import HIDDEN_SPLIT, Viewer
from judge.serve.catalog import NewSuite, add_revision, revision_of
from judge.serve.context import Server
from judge.serve.disputes.review import (
    Group,
    Opinion,
    Outcome,
    decide,
    group_of,
    require_reviewer,
    settle,
)
from judge.serve.problems import Problem
from judge.serve.queue.conditions import corrections_path, suite_path
from judge.serve.rejudging import states
from judge.serve.rejudging.service import RejudgingRequest, compute_cost, open_requested
from judge.serve.rejudging.states import Scope
from judge.serve.store import tables as t
from judge.serve.store.database import Transaction, first_row
from judge.serve.store.tables import DisputeState, RejudgingState
from judge.suites.corrections import (
    Correction,
    describe_corrections,
    load_corrections,
    write_corrections,
)
from judge.suites.suite import Suite, load_suite
from judge.suspects.decisions import Finding


@dataclass(frozen=True, slots=True)
class Settlement:
    """The outcome of a reviewer's decision.

    Attributes:
        decided: how many reviewers have decided.
        needed: how many have to agree.
        state: the new state of the disputes.
        revision: number of the new revision, if there is one.
        rejudging: id of the draft rejudging, if there is one.
        note: tells the reviewer why no correction was made although the reviewers agree.
    """

    decided: int
    needed: int
    state: DisputeState
    revision: int | None = None
    rejudging: str | None = None
    note: str = ""


def decide_and_settle(server: Server, viewer: Viewer, dispute: str, opinion: Opinion) -> Settlement:
    """Records a reviewer's decision, and settles the disputes if enough reviewers agree.

    Raises:
        Problem: see :func:`judge.serve.disputes.review.decide`.
        UsageError: the typed correction does not fit the task.
        JudgeError: the files of the suite are missing.
    """
    with server.database.reading() as connection:
        group = group_of(connection, dispute)
        require_reviewer(connection, viewer, group)
        revision = revision_of(connection, group.suite["current_revision"])
    suite = source_suite(server, revision)
    with server.database.writing(viewer.actor()) as transaction:
        outcome = decide(transaction, viewer, dispute, opinion, suite)
        group = group_of(transaction.connection, dispute)
        if outcome.finding is None:
            return Settlement(
                outcome.decided, outcome.needed, DisputeState.SUSPECT, note=outcome.conflict
            )
        settled = _follow(server, transaction, group, outcome, suite, str(viewer.account))
    if settled.rejudging is not None:
        compute_cost(server, settled.rejudging)
    return settled


def source_suite(server: Server, revision: dict[str, Any]) -> Suite:
    """The suite of a revision as its files define it, without corrections.

    Raises:
        JudgeError: its files are missing or broken.
    """
    return load_suite(suite_path(server.folder, revision))


def _follow(
    server: Server,
    transaction: Transaction,
    group: Group,
    outcome: Outcome,
    suite: Suite,
    reviewer: str,
) -> Settlement:
    if outcome.finding is not Finding.FAULT:
        state = settle(transaction, group, outcome)
        return Settlement(outcome.decided, outcome.needed, state)
    before = revision_of(transaction.connection, _latest_revision(transaction, group))
    correction = describe_corrections(outcome.corrections)
    revision = _corrected_revision(server, transaction, group, outcome.corrections, suite, before)
    state = settle(transaction, group, outcome, correction=correction)
    rejudging = _draft(transaction, group, revision, reviewer)
    return Settlement(outcome.decided, outcome.needed, state, revision["number"], rejudging)


def _latest_revision(transaction: Transaction, group: Group) -> str:
    """The revision to which the next correction is added: the newest one, applied or not."""
    newest = (
        sa.select(t.revision.c.id)
        .where(t.revision.c.suite == group.suite["id"])
        .order_by(t.revision.c.number.desc())
    )
    row = first_row(transaction.connection, newest)
    assert row is not None, "a suite has a revision"
    return str(row["id"])


def _corrected_revision(
    server: Server,
    transaction: Transaction,
    group: Group,
    new: Sequence[Correction],
    suite: Suite,
    before: dict[str, Any],
) -> dict[str, Any]:
    """Adds a revision with the corrections of the previous revision, and the new ones."""
    path = corrections_path(server.folder, before)
    existing = () if path is None else load_corrections(path)
    hidden = transaction.connection.scalar(
        sa.select(t.split.c.tasks).where(
            t.split.c.revision == before["id"], t.split.c.name == HIDDEN_SPLIT
        )
    )
    with tempfile.TemporaryDirectory(dir=server.folder.temporary()) as scratch:
        file = Path(scratch) / "corrections.yaml"
        write_corrections(file, suite.format, joined(existing, new))
        return add_revision(
            server,
            transaction,
            NewSuite(
                group.suite["name"],
                str(suite_path(server.folder, before)),
                group.suite["owner"],
                corrections=file,
                hidden=tuple(hidden or ()),
                note=f"case {group.case} of task {group.task} was disputed ({group.id})",
            ),
        )


def joined(existing: Iterable[Correction], new: Iterable[Correction]) -> list[Correction]:
    """Merges corrections with newer ones, which take precedence for the same cells and fields."""
    by_key = {correction.key: correction for correction in existing}
    for correction in new:
        earlier = by_key.get(correction.key)
        if earlier is not None and correction.field == "gold":
            cells = {cell.ref: cell for cell in (*earlier.cells, *correction.cells)}
            correction = replace(correction, cells=tuple(cells.values()))  # noqa: PLW2901
        by_key[correction.key] = correction
    return list(by_key.values())


def _draft(
    transaction: Transaction, group: Group, revision: dict[str, Any], reviewer: str
) -> str | None:
    """Opens a draft rejudging that settles the disputes; replaces a draft that was not started.

    Returns:
        Its id; None if a rejudging of the suite is running, so that an author has to open the next
        one later.
    """
    disputes = {str(row["id"]) for row in group.disputes}
    other = transaction.one(
        sa.select(t.rejudging).where(
            t.rejudging.c.suite == group.suite["id"], t.rejudging.c.state.in_(states.OPEN)
        )
    )
    if other is not None:
        if other["state"] != RejudgingState.DRAFT:
            return None
        named = sa.select(t.dispute.c.id).where(t.dispute.c.rejudging == other["id"])
        disputes.update(transaction.connection.scalars(named).all())
        states.cancel(transaction, other["id"], reviewer)
    waiting = sa.select(t.dispute.c.id).where(
        t.dispute.c.suite == group.suite["id"],
        t.dispute.c.state == DisputeState.ACCEPTED,
        t.dispute.c.rejudging.is_(None),
    )
    disputes.update(transaction.connection.scalars(waiting).all())
    suite = transaction.one(sa.select(t.suite).where(t.suite.c.id == group.suite["id"]))
    assert suite is not None, "a foreign key guarantees it"
    try:
        return open_requested(
            transaction,
            RejudgingRequest(
                suite,
                revision,
                Scope(),
                _reason(transaction.connection, disputes),
                reviewer,
                disputes=tuple(sorted(disputes)),
            ),
        )
    except Problem as problem:
        if (
            problem.name == "conflict"
        ):  # no dispatcher has run yet: an author opens the rejudging later
            return None
        raise


def _reason(connection: sa.Connection, disputes: set[str]) -> str:
    """The reason shown on the boards' pages: what is corrected, who found the fault, and when."""
    rows = connection.execute(
        sa.select(
            t.dispute.c.task,
            t.dispute.c.case,
            t.account.c.name,
            sa.func.substr(t.dispute.c.created, 1, 10).label("day"),
        )
        .join(t.account, t.account.c.id == t.dispute.c.account)
        .where(t.dispute.c.id.in_(disputes))
        .order_by(t.dispute.c.task, t.dispute.c.case, t.dispute.c.id)
    )
    by_case: dict[tuple[str, int], list[str]] = {}
    for row in rows:
        by_case.setdefault((row.task, row.case), []).append(f"{row.name}, {row.day}")
    return "; ".join(
        f"Case {case} of task {task} was corrected after a dispute by {' and '.join(finders)}"
        for (task, case), finders in by_case.items()
    )
