"""Reviewers decide about the disputes of a case, blind to each other.

As many reviewers as the suite wants have to agree: two where it says so, otherwise one. What one
of them found stays hidden from all others until the disputes are decided. Nobody decides about a
dispute of a team of their own, and no contestant of an open phase reviews its suite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from judge.errors import UsageError
from judge.files.documents import utc_now
from judge.grading.keys import FileDigests
from judge.review.corrections import Signed, Typed, corrections_of, entries_of
from judge.review.session import merge_decisions
from judge.serve.access.rights import Viewer, phase_state, require_suite_role
from judge.serve.disputes.disputes import SIGN, UNDECIDED, suspect_of
from judge.serve.problems import Problem, not_found
from judge.serve.store import tables as t
from judge.serve.store.database import Transaction, all_rows, first_row
from judge.serve.store.ids import new_id
from judge.serve.store.words import DisputeState, PhaseState, SuiteRole
from judge.suites.corrections import Correction
from judge.suites.suite import Suite
from judge.suspects.decisions import Decision, Finding, Suspicions, decision_of
from judge.suspects.model import Audit, CaseFiles


@dataclass(frozen=True, slots=True)
class Group:
    """The disputes of one case that wait for a decision.

    Attributes:
        id: of the suspect that they are; the id of the first dispute.
        suite: the row of their suite.
        disputes: their rows, the first of all first.
    """

    id: str
    suite: Mapping[str, Any]
    disputes: Sequence[Mapping[str, Any]]

    @property
    def task(self) -> str:
        """The task that they are about."""
        return str(self.disputes[0]["task"])

    @property
    def case(self) -> int:
        """The case that they are about."""
        return int(self.disputes[0]["case"])


def groups(connection: sa.Connection, viewer: Viewer) -> list[Group]:
    """What waits for the decision of a reviewer, the surest suspects first."""
    waiting: list[Group] = []
    for suite in all_rows(
        connection,
        sa.select(t.suite).where(t.suite.c.id.in_(viewer.reviewed)).order_by(t.suite.c.name),
    ):
        by_case: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for row in all_rows(
            connection,
            sa.select(t.dispute)
            .where(t.dispute.c.suite == suite["id"], t.dispute.c.state.in_(UNDECIDED))
            .order_by(t.dispute.c.id),
        ):
            by_case.setdefault((row["task"], row["case"]), []).append(row)
        waiting += [
            Group(rows[0]["suspect"] or rows[0]["id"], suite, rows) for rows in by_case.values()
        ]
    return sorted(waiting, key=lambda group: (suspect_of(group.disputes).certainty.rank, group.id))


def group_of(connection: sa.Connection, dispute: str) -> Group:
    """The group that a dispute belongs to.

    Raises:
        Problem: 404, there is none; 409, it is decided or withdrawn.
    """
    row = first_row(connection, sa.select(t.dispute).where(t.dispute.c.id == dispute))
    if row is None:
        raise not_found()
    if row["state"] not in UNDECIDED:
        raise Problem("conflict", f"The dispute is {row['state']}.")
    rows = all_rows(
        connection,
        sa.select(t.dispute)
        .where(
            t.dispute.c.suite == row["suite"],
            t.dispute.c.task == row["task"],
            t.dispute.c.case == row["case"],
            t.dispute.c.state.in_(UNDECIDED),
        )
        .order_by(t.dispute.c.id),
    )
    suite = first_row(connection, sa.select(t.suite).where(t.suite.c.id == row["suite"]))
    assert suite is not None, "a foreign key names it"
    return Group(rows[0]["suspect"] or rows[0]["id"], suite, rows)


def require_reviewer(connection: sa.Connection, viewer: Viewer, group: Group) -> str:
    """The account of somebody who may decide about a group.

    Raises:
        Problem: 401, 403 or 404.
    """
    if not viewer.reviews(group.suite["id"]):
        raise not_found()
    reviewer = require_suite_role(viewer, SuiteRole.REVIEWER, group.suite["id"])
    if any(row["account"] in viewer.teams for row in group.disputes):
        raise Problem("forbidden", "A dispute of one's own team is decided by others.")
    now = str(connection.scalar(sa.select(t.Now())))
    phases = all_rows(connection, sa.select(t.phase).where(t.phase.c.suite == group.suite["id"]))
    is_open = [row["id"] for row in phases if phase_state(row, now) is PhaseState.OPEN]
    takes_part = connection.scalar(
        sa.select(sa.func.count()).where(
            t.submission.c.phase.in_(is_open), t.submission.c.account.in_(viewer.teams)
        )
    )
    if takes_part:
        raise Problem("forbidden", "Who takes part in an open phase cannot review its suite.")
    return reviewer


def begin_review(transaction: Transaction, viewer: Viewer, dispute: str) -> Group:
    """Opens a group for a reviewer, who is about to see golds; each view is an event.

    Raises:
        Problem: as :func:`group_of` and :func:`require_reviewer`.
    """
    group = group_of(transaction.connection, dispute)
    require_reviewer(transaction.connection, viewer, group)
    for row in group.disputes:
        if row["state"] == DisputeState.OPEN:
            transaction.event(
                "dispute.suspect", row["id"], before=DisputeState.OPEN, after=DisputeState.SUSPECT
            )
    transaction.execute(
        sa.update(t.dispute)
        .where(t.dispute.c.id.in_([row["id"] for row in group.disputes]))
        .values(state=DisputeState.SUSPECT, suspect=group.id)
    )
    transaction.event("gold.viewed", group.id, detail={"task": group.task, "case": group.case})
    return group_of(transaction.connection, dispute)


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a reviewer found.

    Attributes:
        finding: a fault, fine, or unclear.
        reason: what a reader sees in the question; public if the dispute is rejected.
        evidence: what the cells show; needed for a fault.
        typed: for a fault, what is right.
    """

    finding: Finding
    reason: str
    evidence: str = ""
    typed: Typed = field(default_factory=Typed)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a group is after a decision.

    Attributes:
        finding: what enough reviewers agree on; None while they do not.
        reason: theirs, for the public.
        corrections: what follows from a fault.
        decided: how many reviewers have decided.
        needed: how many have to agree.
        conflict: why a fault on which they agree has no correction; empty otherwise.
    """

    finding: Finding | None
    reason: str
    corrections: tuple[Correction, ...]
    decided: int
    needed: int
    conflict: str = ""


def decide(
    transaction: Transaction, viewer: Viewer, dispute: str, opinion: Opinion, suite: Suite
) -> Outcome:
    """Records what a reviewer found; it replaces what they found before.

    Args:
        transaction: the transaction; the caller settles the group if the outcome says so.
        viewer: the reviewer.
        dispute: one of the group.
        opinion: what they found.
        suite: the suite as its files are, without corrections.

    Raises:
        Problem: as :func:`group_of` and :func:`require_reviewer`; 422, something does not fit.
    """
    group = group_of(transaction.connection, dispute)
    reviewer = require_reviewer(transaction.connection, viewer, group)
    _lock_suite(transaction, group)
    decision = _decision(group, viewer.name, opinion, suite)
    leader = group.disputes[0]["id"]
    transaction.execute(
        sa.delete(t.decision).where(
            t.decision.c.dispute.in_([row["id"] for row in group.disputes]),
            t.decision.c.reviewer == reviewer,
        )
    )
    transaction.execute(
        sa.insert(t.decision).values(
            id=new_id("dec"),
            dispute=leader,
            reviewer=reviewer,
            decision=opinion.finding,
            reason=decision.reason,
            correction=dict(decision.to_json()),
        )
    )
    # Blind: the event says that somebody decided, and not what.
    transaction.event("dispute.reviewed", group.id)
    return outcome_of(transaction.connection, group, suite)


def _lock_suite(transaction: Transaction, group: Group) -> None:
    """Two reviewers who decide at the same time do it one after the other."""
    transaction.execute(
        sa.select(t.suite.c.id).where(t.suite.c.id == group.suite["id"]).with_for_update()
    )


def _decision(group: Group, by: str, opinion: Opinion, suite: Suite) -> Decision:
    reason, evidence = " ".join(opinion.reason.split()), " ".join(opinion.evidence.split())
    if not reason:
        raise UsageError("why? Say what a reader sees in the question.")
    if opinion.finding is Finding.FAULT and not evidence:
        raise UsageError("what do the cells show? A fault needs both reasons.")
    files = case_files(suite, group.task)
    at = utc_now()
    entries: tuple[Mapping[str, object], ...] = ()
    if opinion.finding is Finding.FAULT:
        signed = Signed(by, at, reason, evidence, SIGN)
        task = suite.task(group.task)
        entries = entries_of(corrections_of(task, files, opinion.typed, signed, suite.format))
    key = (group.task, group.case, SIGN)
    return Decision(key, opinion.finding, by, at, reason, evidence, files, entries)


def case_files(suite: Suite, task: str) -> tuple[CaseFiles, ...]:
    """The files of a task's cases by their hashes, to which corrections are bound."""
    digests = FileDigests()
    files = []
    for case in suite.task(task).cases:
        gold = case.golds[0].path if case.golds else None
        files.append(
            CaseFiles(
                task,
                case.number,
                digests.of(case.inputs[0].path) if case.inputs else None,
                None if gold is None else digests.of(gold),
            )
        )
    return tuple(files)


def outcome_of(connection: sa.Connection, group: Group, suite: Suite) -> Outcome:
    """What the reviewers of a group agree on."""
    needed = 2 if group.suite["two_reviewers"] else 1
    rows = all_rows(
        connection,
        sa.select(t.decision)
        .where(t.decision.c.dispute.in_([row["id"] for row in group.disputes]))
        .order_by(t.decision.c.id),
    )
    decisions = [decision_of(row["correction"]) for row in rows]
    for finding in Finding:
        agreeing = [decision for decision in decisions if decision.finding is finding]
        if len(agreeing) < needed:
            continue
        reason = " / ".join(
            dict.fromkeys(f"{decision.reason} ({decision.by})" for decision in agreeing)
        )
        corrections: tuple[Correction, ...] = ()
        if finding is Finding.FAULT:
            suspicions = Suspicions(_audit(group, suite), tuple(agreeing))
            merged = merge_decisions(suspicions, suite.format)
            if merged.conflicts or not merged.corrections:
                conflict = "; ".join(merged.conflicts) or "no correction follows"
                return Outcome(None, "", (), len(rows), needed, conflict)
            corrections = merged.corrections
        return Outcome(finding, reason, corrections, len(rows), needed)
    return Outcome(None, "", (), len(rows), needed)


def _audit(group: Group, suite: Suite) -> Audit:
    files = case_files(suite, group.task)
    suspect = suspect_of(group.disputes)
    return Audit(
        suite=suite.name,
        format=suite.format,
        digest=suite.digest,
        tasks=1,
        cases=len(files),
        suspects=(suspect,),
        files=files,
        signs=(),
    )


def settle(
    transaction: Transaction,
    group: Group,
    outcome: Outcome,
    *,
    correction: Sequence[Mapping[str, object]] | None = None,
) -> DisputeState:
    """Ends the disputes of a group on which the reviewers agree.

    Args:
        transaction: the one that recorded the last decision.
        group: the disputes.
        outcome: what the reviewers agree on.
        correction: for a fault, the corrections, as a file of corrections has them.

    Returns:
        The state of the disputes now.
    """
    is_fault = outcome.finding is Finding.FAULT
    state = DisputeState.ACCEPTED if is_fault else DisputeState.REJECTED
    for row in group.disputes:
        transaction.execute(
            sa.update(t.dispute)
            .where(t.dispute.c.id == row["id"])
            .values(
                state=state,
                suspect=group.id,
                reason=outcome.reason,
                correction=None if correction is None else [dict(entry) for entry in correction],
            )
        )
        transaction.event(
            "dispute.decided",
            row["id"],
            before=row["state"],
            after=state,
            detail={"account": row["account"], "suite": row["suite"]},
        )
    return state
