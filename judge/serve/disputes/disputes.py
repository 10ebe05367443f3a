"""Disputes: somebody says that a verdict is wrong because the suite is.

Disputes of one case are one suspect, which reviewers decide (:mod:`judge.serve.disputes.review`).
The account can take it back until a reviewer has opened it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from judge.serve.access.rights import Viewer, find, level_for, phase_state, split_level
from judge.serve.problems import Problem, not_found
from judge.serve.store import tables as t
from judge.serve.store.database import Transaction, all_rows, first_row
from judge.serve.store.ids import new_id
from judge.serve.store.words import DisputeState, Level
from judge.suspects.model import Certainty, Suspect

MAX_OPEN = 5
"""Disputes of one account that may wait for a decision at a time."""

MAX_TEXT = 4_000
"""Characters of a claim, of evidence, and of a reviewer's reason."""

SIGN = "dispute"
"""The sign of a suspect that people made; see :mod:`judge.suspects`."""

UNDECIDED = (DisputeState.OPEN, DisputeState.SUSPECT)


class DisputeKind(enum.StrEnum):
    """What is wrong, by a dispute."""

    GOLD = "gold"
    """The gold is not what the question asks for."""
    QUESTION = "question"
    """The question can be read in more than one way."""
    RULE = "rule"
    """The comparison counts what the question does not ask for."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What somebody disputes.

    Attributes:
        task: id of the task.
        case: number of the case.
        kind: what is wrong.
        claim: what is right instead.
        evidence: why; can be empty.
        submission: id of the submission whose verdict it is; None for a task of a public split.
        suite: name or id of the suite, without a submission.
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
        viewer: who disputes.
        account: their account's id.
        claim: what they say.

    Returns:
        Its id.

    Raises:
        Problem: 404, they do not see the verdict; 409, they have disputed the case; 422, golds are
            not shown at this level; 429, too many of theirs wait for a decision.
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


def _seen(
    connection: sa.Connection, viewer: Viewer, claim: Claim
) -> tuple[dict[str, Any], Level, str | None]:
    """The suite of a case, how much of it is shown, and whose submission it is about.

    Raises:
        Problem: 404, the case is not one that the viewer sees.
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
    assert read is not None, "a foreign key names it"
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
    """Takes a dispute back.

    Raises:
        Problem: 403, it is another account's; 409, a reviewer has opened it.
    """
    row = find(transaction.connection, viewer, t.dispute, dispute)
    if row["account"] not in viewer.teams:
        raise Problem("forbidden", "Only the account that disputes can take it back.")
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
    """How sure a suspicion of so many accounts is."""
    if teams >= 4:
        return Certainty.SURE
    return Certainty.LIKELY if teams > 1 else Certainty.POSSIBLE


def suspect_of(disputes: Sequence[Mapping[str, Any]]) -> Suspect:
    """The disputes of one case as a suspect of the house.

    Args:
        disputes: their rows, at least one, the first of all first.
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


def shown(
    viewer: Viewer, row: Mapping[str, Any], suite: str, accounts: Mapping[str, str]
) -> dict[str, Any]:
    """A dispute as the API and the pages show it; a correction never leaves, since it has golds.

    Args:
        viewer: who looks.
        row: the dispute, which they may see.
        suite: the name of its suite.
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
