"""The states of a rejudging: draft, running, ready, and applied or cancelled.

A rejudging is a set of members. Each is a submission with a second judging, under the conditions
that the rejudging names. Nothing visible changes until the rejudging is applied. Then everything
changes in one transaction: the current judging of every member, the suite's revision and options,
and each board, which gets one new version. If the process is killed, all of this has happened or
nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from judge.errors import UsageError
from judge.serve.problems import Problem
from judge.serve.queue.conditions import ensure_conditions
from judge.serve.queue.leases import cancel_all, enqueue
from judge.serve.store import tables as t
from judge.serve.store.database import Transaction, all_rows, first_row
from judge.serve.store.tables import FINISHED, DisputeState, JudgingState, RejudgingState, new_id

OPEN = (RejudgingState.DRAFT, RejudgingState.RUNNING, RejudgingState.READY)
"""States of a rejudging in which no other rejudging of its suite can be opened."""


class ScopeKind(enum.StrEnum):
    """Which submissions to a suite are judged again."""

    ALL = "all"
    PHASE = "phase"
    BOARD = "board"
    SUBMISSIONS = "submissions"
    HOLDER = "holder"
    """Submissions whose current judging was done by one of the named dispatchers."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is judged again.

    Attributes:
        of: which submissions are judged again.
        ids: ids of phases, boards or submissions, or names of dispatchers; empty for all.
        tasks: tasks whose cases are judged again even if nothing that they depend on has changed;
            for all other cases, the record is copied if both of its keys are unchanged.
        afresh: whether every case is judged from scratch, for example after a dispatcher's fault.
    """

    of: ScopeKind = ScopeKind.ALL
    ids: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    afresh: bool = False

    def __post_init__(self) -> None:
        if (self.of is ScopeKind.ALL) == bool(self.ids):
            raise UsageError(
                f"the scope {self.of} "
                + (
                    "takes no ids"
                    if self.of is ScopeKind.ALL
                    else "needs ids of what to judge again"
                )
            )

    def document(self) -> dict[str, Any]:
        """The column ``scope``."""
        return {
            "of": self.of.value,
            "ids": list(self.ids),
            "tasks": list(self.tasks),
            "afresh": self.afresh,
        }

    @staticmethod
    def of_document(document: Mapping[str, Any]) -> Scope:
        """Reads a scope from the column of a row."""
        return Scope(
            ScopeKind(document["of"]),
            tuple(document["ids"]),
            tuple(document["tasks"]),
            bool(document["afresh"]),
        )

    def judges_afresh(self, task: str) -> bool:
        """Whether no record of a task is copied."""
        return self.afresh or task in self.tasks


@dataclass(frozen=True, slots=True)
class Opening:
    """A rejudging to be opened.

    Attributes:
        suite: id of the suite.
        conditions: digest of the conditions to judge under.
        scope: what is judged again.
        reason: the reason, shown on the boards' pages.
        opened_by: id of the account that opens it; its judgings use the turns of this account.
        disputes: ids of the accepted disputes that it settles.
        options: options of judging that the suite gets when this is applied; None to keep its own.
    """

    suite: str
    conditions: str
    scope: Scope
    reason: str
    opened_by: str
    disputes: Sequence[str] = ()
    options: Mapping[str, Any] | None = None


def open_rejudging(transaction: Transaction, opening: Opening) -> str:
    """Makes a draft; nothing is judged yet.

    Returns:
        Its id.

    Raises:
        Problem: 409, the suite has an open rejudging; 422, only a part of the submissions would get
            new conditions, so that boards would have results that cannot be compared.
    """
    _lock(transaction, t.suite, opening.suite)
    other = first_row(
        transaction.connection,
        sa.select(t.rejudging.c.id).where(
            t.rejudging.c.suite == opening.suite, t.rejudging.c.state.in_(OPEN)
        ),
    )
    if other is not None:
        raise Problem("conflict", f"The suite has an open rejudging, {other['id']}.")
    _check_scope(transaction, opening)
    rejudging = new_id("rej")
    document = opening.scope.document()
    if opening.options is not None:
        document["options"] = dict(opening.options)
    transaction.execute(
        sa.insert(t.rejudging).values(
            id=rejudging,
            suite=opening.suite,
            reason=opening.reason,
            scope=document,
            conditions=opening.conditions,
            state=RejudgingState.DRAFT,
            opened_by=opening.opened_by,
        )
    )
    if opening.disputes:
        transaction.execute(
            sa.update(t.dispute)
            .where(t.dispute.c.id.in_(opening.disputes))
            .values(rejudging=rejudging)
        )
    transaction.event(
        "rejudging.opened",
        rejudging,
        after=RejudgingState.DRAFT,
        detail={"suite": opening.suite, "disputes": list(opening.disputes)},
    )
    return rejudging


def _check_scope(transaction: Transaction, opening: Opening) -> None:
    """Checks that conditions change only if all submissions to the suite are judged again."""
    if opening.scope.of is ScopeKind.ALL:
        return
    rows = all_rows(transaction.connection, in_scope(opening.suite, opening.scope))
    others = sum(
        row["conditions"] != target_of(transaction, opening.conditions, row["options"])
        for row in rows
    )
    if others:
        raise Problem(
            "invalid",
            f"{others} submissions of this scope were judged under other conditions. Only a "
            "rejudging of all submissions to a suite changes the conditions of its boards.",
        )


def in_scope(suite: str, scope: Scope) -> sa.Select[Any]:
    """The submissions of a scope, with their current judging and the options of their phase.

    Leaves out submissions that were withdrawn, or cancelled before they were judged.
    """
    statement = (
        sa.select(
            t.submission.c.id,
            t.submission.c.seq,
            t.submission.c.current_judging,
            t.judging.c.conditions,
            t.judging.c.cases,
            t.phase.c.options,
        )
        .join(t.phase, t.phase.c.id == t.submission.c.phase)
        .join(t.judging, t.judging.c.id == t.submission.c.current_judging)
        .where(
            t.phase.c.suite == suite,
            t.submission.c.withdrawn.is_(None),
            t.judging.c.state != JudgingState.CANCELLED,
        )
        .order_by(t.submission.c.seq)
    )
    match scope.of:
        case ScopeKind.PHASE:
            return statement.where(t.submission.c.phase.in_(scope.ids))
        case ScopeKind.BOARD:
            phases = sa.select(t.board.c.phase).where(t.board.c.id.in_(scope.ids))
            return statement.where(t.submission.c.phase.in_(phases))
        case ScopeKind.SUBMISSIONS:
            return statement.where(t.submission.c.id.in_(scope.ids))
        case ScopeKind.HOLDER:
            return statement.where(t.judging.c.holder.in_(scope.ids))
        case ScopeKind.ALL:
            return statement


def start(transaction: Transaction, rejudging: str) -> None:
    """Starts to judge every submission of a draft under its conditions.

    Raises:
        Problem: 409, it is not a draft.
    """
    row = _locked(transaction, rejudging)
    _require_state(row, RejudgingState.DRAFT)
    add_members(transaction, row)
    _move(transaction, row, RejudgingState.RUNNING)


def add_late_members(transaction: Transaction, rejudging: str) -> int:
    """Adds submissions made after a rejudging started; if it was ready, it is running again.

    Returns:
        How many submissions were added.
    """
    row = _locked(transaction, rejudging)
    if row["state"] not in {RejudgingState.RUNNING, RejudgingState.READY}:
        return 0
    late = add_members(transaction, row)
    if late and row["state"] == RejudgingState.READY:
        _move(transaction, row, RejudgingState.RUNNING)
    return late


def add_members(transaction: Transaction, row: Mapping[str, Any]) -> int:
    """Adds the submissions of the scope that are not members yet, and queues their judgings.

    Args:
        transaction: the transaction in which the rejudging's row is locked.
        row: the rejudging's row.

    Returns:
        How many submissions were added.
    """
    scope = Scope.of_document(row["scope"])
    members = sa.select(t.rejudging_member.c.submission).where(
        t.rejudging_member.c.rejudging == row["id"]
    )
    late = all_rows(
        transaction.connection,
        in_scope(row["suite"], scope).where(t.submission.c.id.not_in(members)),
    )
    for submission in late:
        judging = _queue(transaction, row, submission)
        transaction.execute(
            sa.insert(t.rejudging_member).values(
                rejudging=row["id"], submission=submission["id"], judging=judging
            )
        )
    return len(late)


def _queue(transaction: Transaction, row: Mapping[str, Any], submission: Mapping[str, Any]) -> str:
    """Queues a judging of a member; it uses a turn of the account that opened the rejudging."""
    return enqueue(
        transaction,
        submission=submission["id"],
        account=row["opened_by"],
        conditions=target_of(transaction, row["conditions"], submission["options"]),
        cases=submission["cases"],
        rejudging=row["id"],
    )


def target_of(transaction: Transaction, conditions: str, phase: Mapping[str, Any]) -> str:
    """The digest of a rejudging's conditions, adapted to the options of a phase.

    Args:
        transaction: the transaction in which the conditions are recorded if they are new.
        conditions: digest of the rejudging's conditions.
        phase: the options of the phase.
    """
    if not phase:
        return conditions
    row = transaction.one(sa.select(t.conditions).where(t.conditions.c.digest == conditions))
    assert row is not None, "a foreign key guarantees it"
    revision = transaction.one(sa.select(t.revision).where(t.revision.c.id == row["revision"]))
    assert revision is not None, "a foreign key guarantees it"
    document = row["document"]
    environment = {
        "sandbox": document["sandbox"],
        "engines": document["recalc"]["engines"],
        "judge_version": document["judge_version"],
    }
    options = {**document["options"], **phase}
    return ensure_conditions(transaction, revision, options, environment)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a rejudging.

    Attributes:
        members: how many members it has.
        done: how many are finished; this includes members whose judging failed both before and
            now, and those that were withdrawn or cancelled meanwhile.
        judged: how many have a judging that would count.
        failed: ids of the submissions that were judged before but failed now.
    """

    members: int
    done: int
    judged: int
    failed: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every member is judged."""
        return self.done == self.members


def progress_of(connection: sa.Connection, rejudging: str) -> Progress:
    """Counts the members of a rejudging by progress."""
    before = t.judging.alias("before")
    rows = connection.execute(
        sa.select(
            t.rejudging_member.c.submission,
            t.judging.c.state,
            before.c.state.label("state_before"),
            t.submission.c.withdrawn,
        )
        .join(t.judging, t.judging.c.id == t.rejudging_member.c.judging)
        .join(t.submission, t.submission.c.id == t.rejudging_member.c.submission)
        .join(before, before.c.id == t.submission.c.current_judging)
        .where(t.rejudging_member.c.rejudging == rejudging)
        .order_by(t.submission.c.seq)
    ).all()
    done = judged = 0
    failed = []
    for row in rows:
        hopeless = row.state_before in FINISHED and row.state_before != JudgingState.DONE
        left = row.withdrawn is not None or row.state_before == JudgingState.CANCELLED
        judged += row.state == JudgingState.DONE and row.state_before != JudgingState.CANCELLED
        if row.state == JudgingState.DONE or (row.state in FINISHED and (hopeless or left)):
            done += 1
        elif row.state in FINISHED:
            failed.append(row.submission)
    return Progress(len(rows), done, judged, tuple(failed))


def retry_failed(transaction: Transaction, rejudging: str) -> int:
    """Queues the failed members again.

    Returns:
        How many there were.

    Raises:
        Problem: 409, the rejudging is not running.
    """
    row = _locked(transaction, rejudging)
    _require_state(row, RejudgingState.RUNNING)
    failed = progress_of(transaction.connection, rejudging).failed
    for submission in all_rows(
        transaction.connection,
        sa.select(t.submission.c.id, t.judging.c.cases, t.phase.c.options)
        .join(t.phase, t.phase.c.id == t.submission.c.phase)
        .join(t.judging, t.judging.c.id == t.submission.c.current_judging)
        .where(t.submission.c.id.in_(failed)),
    ):
        judging = _queue(transaction, row, submission)
        transaction.execute(
            sa.update(t.rejudging_member)
            .where(
                t.rejudging_member.c.rejudging == rejudging,
                t.rejudging_member.c.submission == submission["id"],
            )
            .values(judging=judging)
        )
    return len(failed)


def make_ready(
    transaction: Transaction, rejudging: str, diff: Mapping[str, Any], members: int
) -> bool:
    """Makes a rejudging ready and stores its diff, unless something has changed since.

    Args:
        transaction: the transaction.
        rejudging: id of the rejudging.
        diff: what it would change, see :mod:`judge.serve.rejudging.service`.
        members: how many members the diff covers: those with a judging that would count.

    Returns:
        Whether it is ready.
    """
    row = _locked(transaction, rejudging)
    if row["state"] != RejudgingState.RUNNING or add_members(transaction, row):
        return False
    progress = progress_of(transaction.connection, rejudging)
    if not progress.is_complete or progress.judged != members:
        return False
    transaction.execute(
        sa.update(t.rejudging)
        .where(t.rejudging.c.id == rejudging)
        .values(diff={**(row["diff"] or {}), **diff})
    )
    _move(transaction, row, RejudgingState.READY)
    return True


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """A request to apply a rejudging.

    Attributes:
        account: id of the account of the person who applies it.
        changed: the number of changed verdicts, which the person types to confirm.
        another_person: whether the person who opened it, and the reviewers of its disputes, may not
            apply it.
    """

    account: str
    changed: int
    another_person: bool = False


NewVersion = Callable[[Transaction, Mapping[str, Any], str], object]
"""Makes a new version of a board; called with its row and the reason."""


def apply(
    transaction: Transaction, rejudging: str, applying: ApplyRequest, new_version: NewVersion
) -> int:
    """Makes the judgings of a rejudging the current ones, either all or none.

    Returns:
        0 if it is applied; otherwise the number of submissions made since then: these are judged
        first, and nothing else has changed.

    Raises:
        Problem: 409, it is not ready, this person may not apply it, or the number is wrong.
    """
    row = _locked(transaction, rejudging)
    _require_state(row, RejudgingState.READY)
    # Submissions take these locks in the same order, as they read the suite's revision.
    _lock(transaction, t.account, row["opened_by"])
    _lock(transaction, t.suite, row["suite"])
    if late := add_members(transaction, row):
        _move(transaction, row, RejudgingState.RUNNING)
        return late
    if not progress_of(transaction.connection, rejudging).is_complete:
        raise Problem("conflict", "Some members of the rejudging have not been judged.")
    if applying.another_person and applying.account in _correctors(transaction, row):
        raise Problem(
            "conflict",
            "In this suite, nobody who opened it or decided its disputes may apply it.",
        )
    changed = row["diff"]["changed"]
    if applying.changed != changed:
        raise Problem(
            "conflict",
            f"You typed {applying.changed}, but the rejudging changes a different number of "
            "verdicts. Look at the differences again.",
        )
    _exchange(transaction, row)
    _update_suite(transaction, row)
    _move(transaction, row, RejudgingState.APPLIED, applying.account)
    _settle_disputes(transaction, row)
    _renew_boards(transaction, row, new_version)
    return 0


def _correctors(transaction: Transaction, row: Mapping[str, Any]) -> set[str]:
    reviewers = transaction.connection.scalars(
        sa.select(t.decision.c.reviewer)
        .join(t.dispute, t.dispute.c.id == t.decision.c.dispute)
        .where(t.dispute.c.rejudging == row["id"])
    )
    return {row["opened_by"], *reviewers}


def _exchange(transaction: Transaction, row: Mapping[str, Any]) -> None:
    """Makes the judgings of the members the current ones.

    Leaves out members that have been cancelled, as they do not count in the quota any more.
    """
    of_this = t.rejudging_member.c.rejudging == row["id"]
    of_all = sa.select(t.rejudging_member.c.submission).where(of_this)
    transaction.execute(  # after this, nobody can cancel or withdraw one of them
        sa.select(t.submission.c.id)
        .where(t.submission.c.id.in_(of_all))
        .order_by(t.submission.c.id)
        .with_for_update()
    )
    done = sa.select(t.judging.c.id).where(t.judging.c.state == JudgingState.DONE)
    cancelled = (
        sa.select(t.submission.c.id)
        .join(t.judging, t.judging.c.id == t.submission.c.current_judging)
        .where(t.submission.c.id.in_(of_all), t.judging.c.state == JudgingState.CANCELLED)
    )
    is_done = sa.and_(
        t.rejudging_member.c.judging.in_(done.where(t.judging.c.rejudging == row["id"])),
        t.rejudging_member.c.submission.not_in(cancelled),
    )
    current = (
        sa.select(t.submission.c.current_judging)
        .where(t.submission.c.id == t.rejudging_member.c.submission)
        .scalar_subquery()
    )
    transaction.execute(
        sa.update(t.rejudging_member).where(of_this, is_done).values(before=current)
    )
    of_member = t.rejudging_member.c.submission == t.submission.c.id
    new = sa.select(t.rejudging_member.c.judging).where(of_this, of_member).scalar_subquery()
    members = sa.select(t.rejudging_member.c.submission).where(of_this, is_done)
    transaction.execute(
        sa.update(t.submission)
        .where(t.submission.c.id.in_(members))
        .values(current_judging=new, version=t.submission.c.version + 1)
    )


def _update_suite(transaction: Transaction, row: Mapping[str, Any]) -> None:
    if Scope.of_document(row["scope"]).of is not ScopeKind.ALL:
        return
    revision = transaction.connection.scalar(
        sa.select(t.conditions.c.revision).where(t.conditions.c.digest == row["conditions"])
    )
    values: dict[str, Any] = {"current_revision": revision}
    if "options" in row["scope"]:
        values["options"] = row["scope"]["options"]
    transaction.execute(sa.update(t.suite).where(t.suite.c.id == row["suite"]).values(values))


def _settle_disputes(transaction: Transaction, row: Mapping[str, Any]) -> None:
    disputes = all_rows(
        transaction.connection,
        sa.select(t.dispute.c.id, t.dispute.c.account).where(
            t.dispute.c.rejudging == row["id"], t.dispute.c.state == DisputeState.ACCEPTED
        ),
    )
    for dispute in disputes:
        transaction.execute(
            sa.update(t.dispute)
            .where(t.dispute.c.id == dispute["id"])
            .values(state=DisputeState.CORRECTED)
        )
        transaction.event(
            "dispute.corrected",
            dispute["id"],
            before=DisputeState.ACCEPTED,
            after=DisputeState.CORRECTED,
            detail={"account": dispute["account"], "rejudging": row["id"]},
        )


def _renew_boards(
    transaction: Transaction, row: Mapping[str, Any], new_version: NewVersion
) -> None:
    """Makes one new version of each board that shows a member."""
    phases = (
        sa.select(t.submission.c.phase)
        .join(t.rejudging_member, t.rejudging_member.c.submission == t.submission.c.id)
        .where(t.rejudging_member.c.rejudging == row["id"])
    )
    boards = (
        sa.select(t.board, t.phase.c.options)
        .join(t.phase, t.phase.c.id == t.board.c.phase)
        .where(t.board.c.suite == row["suite"])
        .order_by(t.board.c.id)
        .with_for_update(of=t.board)
    )
    if Scope.of_document(row["scope"]).of is not ScopeKind.ALL:
        boards = boards.where(t.board.c.phase.in_(phases))
    for board in all_rows(transaction.connection, boards):
        target = target_of(transaction, row["conditions"], board.pop("options"))
        transaction.execute(
            sa.update(t.board).where(t.board.c.id == board["id"]).values(conditions=target)
        )
        board["conditions"] = target
        new_version(transaction, board, f"{row['reason']} ({row['id']})")


def cancel(transaction: Transaction, rejudging: str, account: str) -> None:
    """Ends a rejudging; its judgings are kept, and nothing else changes.

    Raises:
        Problem: 409, it is applied or cancelled already.
    """
    row = _locked(transaction, rejudging)
    _require_state(row, *OPEN)
    cancel_all(transaction, rejudging, row["opened_by"])
    transaction.execute(
        sa.update(t.dispute).where(t.dispute.c.rejudging == rejudging).values(rejudging=None)
    )
    _move(transaction, row, RejudgingState.CANCELLED, account)


def _lock(transaction: Transaction, table: sa.Table, row: str) -> None:
    transaction.execute(sa.select(table.c.id).where(table.c.id == row).with_for_update())


def _locked(transaction: Transaction, rejudging: str) -> dict[str, Any]:
    row = transaction.one(
        sa.select(t.rejudging).where(t.rejudging.c.id == rejudging).with_for_update()
    )
    if row is None:
        raise Problem("not-found")
    return row


def _require_state(row: Mapping[str, Any], *states: RejudgingState) -> None:
    if row["state"] not in states:
        raise Problem("conflict", f"The rejudging is {row['state']}.")


def _move(
    transaction: Transaction,
    row: Mapping[str, Any],
    state: RejudgingState,
    decided_by: str | None = None,
) -> None:
    values: dict[str, Any] = {"state": state}
    if decided_by is not None:
        values |= {"decided_by": decided_by, "decided": t.Now()}
    transaction.execute(sa.update(t.rejudging).where(t.rejudging.c.id == row["id"]).values(values))
    transaction.event(
        f"rejudging.{state}",
        row["id"],
        before=row["state"],
        after=state,
        detail={"suite": row["suite"]},
    )
