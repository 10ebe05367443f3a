"""Disputes, and the decisions of reviewers, who do not see each other's findings.

An account disputes a verdict if it considers the suite wrong; all disputes of a case form one
suspect. The account can withdraw a dispute until a reviewer has opened it.

One reviewer decides, or, if the suite requires it, two who have to agree. A reviewer's finding
stays hidden from all others until the disputes are decided. Nobody decides about a dispute of their
own team, and no contestant of an open phase reviews its suite.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from judge.errors import UsageError
from judge.files.documents import utc_now
from judge.grading.keys import FileDigests
from judge.serve.access.rights import (
    Viewer,
    find,
    level_for,
    phase_state,
    require_suite_role,
    split_level,
)
from judge.serve.problems import Problem, not_found
from judge.serve.store import tables as t
from judge.serve.store.database import Transaction, all_rows, first_row
from judge.serve.store.tables import DisputeState, Level, PhaseState, SuiteRole, new_id
from judge.sessions.corrections import Signed, Typed, corrections_of, entries_of
from judge.suites.corrections import Correction
from judge.suites.suite import Suite
from judge.suspects.decisions import Decision, Finding, Suspicions, decision_of, merge_decisions
from judge.suspects.model import Audit, CaseFiles, Certainty, Suspect


@dataclass(frozen=True, slots=True)
class Group:
    """The disputes of one case that wait for a decision.

    Attributes:
        id: id of the suspect, which is the id of the first dispute.
        suite: row of their suite.
        disputes: rows of the disputes, oldest first.
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


UNDECIDED = (DisputeState.OPEN, DisputeState.SUSPECT)


def groups(connection: sa.Connection, viewer: Viewer) -> list[Group]:
    """The groups that wait for the decision of a reviewer, most certain first."""
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
        Problem: 404, there is no such dispute; 409, it is decided or withdrawn.
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
    if not any(undecided["id"] == dispute for undecided in rows):
        raise Problem("conflict", "The dispute has just been decided or withdrawn.")
    suite = first_row(connection, sa.select(t.suite).where(t.suite.c.id == row["suite"]))
    assert suite is not None, "a foreign key guarantees it"
    return Group(rows[0]["suspect"] or rows[0]["id"], suite, rows)


def require_reviewer(connection: sa.Connection, viewer: Viewer, group: Group) -> str:
    """Returns the viewer's account, if they may decide about a group.

    Raises:
        Problem: 401, 403 or 404.
    """
    if not viewer.reviews(group.suite["id"]):
        raise not_found()
    reviewer = require_suite_role(viewer, SuiteRole.REVIEWER, group.suite["id"])
    if any(row["account"] in viewer.teams for row in group.disputes):
        raise Problem("forbidden", "A dispute of your own team has to be decided by others.")
    now = str(connection.scalar(sa.select(t.Now())))
    phases = all_rows(connection, sa.select(t.phase).where(t.phase.c.suite == group.suite["id"]))
    is_open = [row["id"] for row in phases if phase_state(row, now) is PhaseState.OPEN]
    takes_part = connection.scalar(
        sa.select(sa.func.count()).where(
            t.submission.c.phase.in_(is_open), t.submission.c.account.in_(viewer.teams)
        )
    )
    if takes_part:
        raise Problem(
            "forbidden",
            "You take part in an open phase of this suite, so you cannot review the suite.",
        )
    return reviewer


def begin_review(transaction: Transaction, viewer: Viewer, dispute: str) -> Group:
    """Opens a group for a reviewer, who will see golds; each view is recorded as an event.

    Raises:
        Problem: see :func:`group_of` and :func:`require_reviewer`.
    """
    group = _locked_group(transaction, dispute)
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
    """The opinion of a reviewer.

    Attributes:
        finding: a fault, fine, or unclear.
        reason: what a reader sees in the question; public if the dispute is rejected.
        evidence: what the cells show; required for a fault.
        typed: for a fault, the correction as the reviewer typed it.
    """

    finding: Finding
    reason: str
    evidence: str = ""
    typed: Typed = field(default_factory=Typed)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of a group of disputes after a decision.

    Attributes:
        finding: the finding on which enough reviewers agree; None while they do not.
        reason: the reviewers' reason, for the public.
        corrections: the corrections that follow from a fault.
        decided: how many reviewers have decided.
        needed: how many have to agree.
        conflict: why there is no correction although the reviewers agree on a fault; otherwise
            empty.
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
    """Records the finding of a reviewer, which replaces their earlier one.

    Args:
        transaction: the transaction; the caller settles the group if the outcome has a finding.
        viewer: the reviewer.
        dispute: id of a dispute of the group.
        opinion: the reviewer's finding.
        suite: the suite as defined by its files, without corrections.

    Raises:
        Problem: see :func:`group_of` and :func:`require_reviewer`; 422, the opinion is incomplete
            or does not fit the task.
    """
    group = _locked_group(transaction, dispute)
    reviewer = require_reviewer(transaction.connection, viewer, group)
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
    # Reviews are blind: the event says that somebody decided, but not what.
    transaction.event("dispute.reviewed", group.id)
    return outcome_of(transaction.connection, group, suite)


def _locked_group(transaction: Transaction, dispute: str) -> Group:
    """The group of a dispute, locked against withdrawals and decisions until the transaction ends.

    Raises:
        Problem: see :func:`group_of`.
    """
    group = group_of(transaction.connection, dispute)
    # The suite's lock makes its reviewers take turns; the disputes' locks prevent withdrawals.
    transaction.execute(
        sa.select(t.suite.c.id).where(t.suite.c.id == group.suite["id"]).with_for_update()
    )
    ids = [row["id"] for row in group.disputes]
    transaction.execute(
        sa.select(t.dispute.c.id)
        .where(t.dispute.c.id.in_(ids))
        .order_by(t.dispute.c.id)
        .with_for_update()
    )
    return group_of(transaction.connection, dispute)


SIGN = "dispute"
"""Name of the sign of suspects that people reported; see :mod:`judge.suspects`."""


def _decision(group: Group, by: str, opinion: Opinion, suite: Suite) -> Decision:
    reason, evidence = " ".join(opinion.reason.split()), " ".join(opinion.evidence.split())
    if not reason:
        raise UsageError("a reason is missing: say what a reader sees in the question.")
    if opinion.finding is Finding.FAULT and not evidence:
        raise UsageError("the evidence is missing: for a fault, also say what the cells show.")
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
    """The SHA-256 of the files of a task's cases, to which corrections are bound."""
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
    """The outcome on which the reviewers of a group agree, if they do."""
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
        reason = "\n".join(
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
        outcome: the outcome on which the reviewers agree.
        correction: for a fault, the corrections in the form of a file of corrections.

    Returns:
        The new state of the disputes.
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


MAX_OPEN = 5
"""How many disputes of one account may wait for a decision at a time."""

MAX_TEXT = 4_000
"""Longest claim, evidence or reviewer's reason, in characters."""


STEPS_IF_ACCEPTED = {
    DisputeState.OPEN: "disputed",
    DisputeState.SUSPECT: "with reviewers",
    DisputeState.ACCEPTED: "suite corrected",
    DisputeState.CORRECTED: "all judged again",
}
"""The states that a dispute goes through if reviewers agree with it."""


class DisputeKind(enum.StrEnum):
    """What is wrong, according to a dispute."""

    GOLD = "gold"
    """The gold is not what the question asks for."""
    QUESTION = "question"
    """The question can be read in more than one way."""
    RULE = "rule"
    """The comparison counts something that the question does not ask for."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The content of a new dispute.

    Attributes:
        task: id of the task.
        case: number of the case.
        kind: what is wrong.
        claim: what would be right instead.
        evidence: why; may be empty.
        submission: id of the submission whose verdict is disputed; None to dispute a task of a
            public split.
        suite: name or id of the suite, if no submission is given.
    """

    task: str
    case: int
    kind: DisputeKind
    claim: str
    evidence: str = ""
    submission: str | None = None
    suite: str | None = None


def open_dispute(transaction: Transaction, viewer: Viewer, account: str, claim: Claim) -> str:
    """Records a dispute.

    Args:
        transaction: the transaction.
        viewer: the caller.
        account: id of the caller's account.
        claim: the content of the dispute.

    Returns:
        Its id.

    Raises:
        Problem: 404, they may not see the verdict; 409, they have already disputed the case; 422,
            golds are not shown at this level; 429, too many of their disputes are undecided.
    """
    suite, level, owner = _seen(transaction.connection, viewer, claim)
    account = owner or account
    if claim.kind is DisputeKind.GOLD and not level.shows(Level.CELLS):
        raise Problem(
            "invalid",
            "The gold of this task is not shown, so a dispute is about its question or its rule.",
        )
    transaction.execute(
        sa.select(t.account.c.id).where(t.account.c.id == account).with_for_update()
    )
    _check_limits(transaction.connection, account, suite["id"], claim)
    dispute = new_id("dis")
    transaction.execute(
        sa.insert(t.dispute).values(
            id=dispute,
            suite=suite["id"],
            account=account,
            submission=claim.submission,
            task=claim.task,
            case=claim.case,
            kind=claim.kind,
            claim=claim.claim,
            evidence=claim.evidence,
            state=DisputeState.OPEN,
        )
    )
    transaction.event(
        "dispute.opened", dispute, after=DisputeState.OPEN, detail={"suite": suite["id"]}
    )
    return dispute


def level_of_disputed(connection: sa.Connection, viewer: Viewer, claim: Claim) -> Level:
    """The level at which the viewer sees a case that they may dispute.

    Raises:
        Problem: 404, they may not see its verdict.
    """
    return _seen(connection, viewer, claim)[1]


def _seen(
    connection: sa.Connection, viewer: Viewer, claim: Claim
) -> tuple[dict[str, Any], Level, str | None]:
    """The suite of a disputed case, the level at which it is shown, and the submission.

    Raises:
        Problem: 404, the viewer may not see the case.
    """
    if claim.submission is not None:
        submission = find(connection, viewer, t.submission, claim.submission)
        phase = _row(connection, t.phase, submission["phase"])
        suite = _row(connection, t.suite, phase["suite"])
        now = str(connection.scalar(sa.select(t.Now())))
        level = level_for(viewer, suite, phase, phase_state(phase, now))
        judged = connection.scalar(
            sa.select(sa.func.count()).where(
                t.verdict.c.judging == submission["current_judging"],
                t.verdict.c.task == claim.task,
                t.verdict.c.case == claim.case,
            )
        )
        if not judged or not level.shows(Level.TASKS):
            raise not_found()
        return suite, level, submission["account"]
    if claim.suite is None:
        raise Problem("invalid", "Name the submission, or the suite.")
    suite = find(connection, viewer, t.suite, claim.suite)
    for split in all_rows(
        connection,
        sa.select(t.split.c.name, t.split.c.tasks).where(
            t.split.c.revision == suite["current_revision"]
        ),
    ):
        level = split_level(suite, split["name"])
        if claim.task in split["tasks"] and level.shows(Level.TASKS):
            return suite, level, None
    raise not_found()


def _row(connection: sa.Connection, table: sa.Table, row: str) -> dict[str, Any]:
    read = first_row(connection, sa.select(table).where(table.c.id == row))
    assert read is not None, "a foreign key guarantees it"
    return read


def _check_limits(connection: sa.Connection, account: str, suite: str, claim: Claim) -> None:
    waiting = connection.scalar(
        sa.select(sa.func.count()).where(
            t.dispute.c.account == account, t.dispute.c.state.in_(UNDECIDED)
        )
    )
    same = first_row(
        connection,
        sa.select(t.dispute.c.id).where(
            t.dispute.c.account == account,
            t.dispute.c.suite == suite,
            t.dispute.c.task == claim.task,
            t.dispute.c.case == claim.case,
            t.dispute.c.state != DisputeState.WITHDRAWN,
        ),
    )
    if same is not None:
        raise Problem("conflict", f"This account has disputed the case already: {same['id']}.")
    if (waiting or 0) >= MAX_OPEN:
        raise Problem(
            "quota-exceeded", f"{MAX_OPEN} disputes of this account wait for a decision already."
        )


def withdraw(transaction: Transaction, viewer: Viewer, dispute: str) -> None:
    """Withdraws a dispute.

    Raises:
        Problem: 403, it belongs to another account; 409, a reviewer has opened it.
    """
    row = find(transaction.connection, viewer, t.dispute, dispute)
    if row["account"] not in viewer.teams:
        raise Problem("forbidden", "Only the account that opened the dispute can take it back.")
    changed = transaction.execute(
        sa.update(t.dispute)
        .where(t.dispute.c.id == dispute, t.dispute.c.state == DisputeState.OPEN)
        .values(state=DisputeState.WITHDRAWN)
    )
    if changed.rowcount != 1:
        raise Problem("conflict", "A reviewer has opened it, or it is decided.")
    transaction.event(
        "dispute.withdrawn", dispute, before=DisputeState.OPEN, after=DisputeState.WITHDRAWN
    )


def certainty_of(teams: int) -> Certainty:
    """Returns the certainty of a suspect by the number of accounts that dispute it."""
    if teams >= 4:
        return Certainty.SURE
    return Certainty.LIKELY if teams > 1 else Certainty.POSSIBLE


def suspect_of(disputes: Sequence[Mapping[str, Any]]) -> Suspect:
    """Makes a suspect, as in :mod:`judge.suspects`, from the disputes of one case.

    Args:
        disputes: rows of the disputes, at least one, oldest first.
    """
    first = disputes[0]
    teams = len({row["account"] for row in disputes})
    kinds = sorted({str(row["kind"]) for row in disputes})
    who = f"{teams} {'account disputes' if teams == 1 else 'accounts dispute'} it"
    return Suspect(
        task=first["task"],
        case=first["case"],
        sign=SIGN,
        certainty=certainty_of(teams),
        summary=f"{who} ({', '.join(kinds)}): {first['claim']}"[:300],
        why=str(first["evidence"] or first["claim"])[:300],
    )


_SHOWN = ("id", "created", "task", "case", "kind", "claim", "evidence", "state", "rejudging")


def dispute_view(
    viewer: Viewer, row: Mapping[str, Any], suite: str, accounts: Mapping[str, str]
) -> dict[str, Any]:
    """A dispute as the API and the pages show it; without its correction, which contains golds.

    Args:
        viewer: the viewer.
        row: row of the dispute, which they may see.
        suite: name of its suite.
        accounts: names of accounts by id.
    """
    document = {name: row[name] for name in _SHOWN}
    decided = row["state"] not in {*UNDECIDED, DisputeState.WITHDRAWN}
    return {
        **document,
        "suite": suite,
        "account": accounts.get(row["account"]),
        "own": row["account"] in viewer.teams,
        "submission": row["submission"] if row["account"] in viewer.teams else None,
        "reason": row["reason"] if decided else None,
        "corrected": bool(row["correction"]),
    }
