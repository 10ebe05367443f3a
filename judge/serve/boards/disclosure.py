"""Records what a team has seen in a phase: its ladder, and its answers to each case.

Both are written in the transaction that ends a judging: otherwise, a crash could reveal more
answers than the budget allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa

from judge.core.verdict import Verdict
from judge.grading.store import CASES_FILE, RunDirectory
from judge.serve.access.rights import HIDDEN_SPLIT, Viewer, phase_state, split_level
from judge.serve.boards.feedback import Rung, answer_of, within_budget
from judge.serve.boards.results import scored
from judge.serve.catalog import split_of
from judge.serve.store import tables as t
from judge.serve.store.database import Transaction, all_rows, first_row, row_of
from judge.serve.store.tables import JudgingState, Level, PhaseState

_Key = tuple[str, int, int]
_ABOUT = (
    sa.select(t.judging.c.conditions, t.submission.c.account, t.submission.c.phase)
    .join(t.submission, t.submission.c.id == t.judging.c.submission)
    .where(t.judging.c.id == sa.bindparam("judging"))
)


def record_shown(
    transaction: Transaction, judging: str, results: Path, *, first: bool = True
) -> None:
    """Records what a judging shows to its team; nothing if a public split shows verdicts.

    Args:
        transaction: the transaction that ends the judging, with its verdicts already written.
        judging: id of the judging.
        results: results directory of the judging.
        first: whether this is the first judging of the submission; the judgings of a rejudging show
            nothing until the rejudging is applied.
    """
    connection = transaction.connection
    row = dict(connection.execute(_ABOUT, {"judging": judging}).mappings().one())
    phase = row_of(connection, t.phase, row["phase"])
    suite = row_of(connection, t.suite, phase["suite"])
    if not is_bounded(suite, phase):
        return
    _note_answers(transaction, judging, row, _answers(results))
    if first and split_level(suite, phase["split"]) is Level.SCORE:
        _climb(transaction, row["account"], phase, row["conditions"], judging)


def is_bounded(suite: dict[str, Any], phase: Mapping[str, Any]) -> bool:
    """Whether a budget limits a team's answers to each case until the phase is published."""
    hidden = phase["split"] == HIDDEN_SPLIT
    return hidden or not split_level(suite, phase["split"]).shows(Level.VERDICTS)


def is_bounded_for(connection: sa.Connection, viewer: Viewer, phase: Mapping[str, Any]) -> bool:
    """Whether the budget applies to a viewer; it does not for authors or in a published phase."""
    suite = row_of(connection, t.suite, phase["suite"])
    now = connection.execute(sa.select(t.Now())).scalar_one()
    published = phase_state(dict(phase), now) is PhaseState.PUBLISHED
    return is_bounded(suite, phase) and not (published or viewer.authors(suite["id"]))


def _answers(results: Path) -> dict[_Key, str]:
    """(task, sample, case) -> hash of the answer, from the last record of each case."""
    answers: dict[_Key, str] = {}
    with RunDirectory(results) as store:
        for record in store.read_records(CASES_FILE):
            case: Any = record
            key = (str(case["task"]), int(case["sample"]), int(case["case"]))
            answer = answer_of(case)
            if answer is None:
                answers.pop(key, None)
            else:
                answers[key] = answer
    return answers


def _note_answers(
    transaction: Transaction, judging: str, row: Mapping[str, Any], answers: Mapping[_Key, str]
) -> None:
    of_team = sa.and_(
        t.answer_seen.c.account == row["account"], t.answer_seen.c.phase == row["phase"]
    )
    seen: dict[tuple[str, int], dict[str, int]] = {}
    for earlier in all_rows(transaction.connection, sa.select(t.answer_seen).where(of_team)):
        seen.setdefault((earlier["task"], earlier["case"]), {})[earlier["answer"]] = earlier[
            "place"
        ]
    new: list[dict[str, Any]] = []
    beyond: list[dict[str, Any]] = []
    verdicts = _verdicts(transaction.connection, judging)
    for (task, sample, case), answer in sorted(answers.items()):
        numbers = seen.setdefault((task, case), {})
        if answer not in numbers:
            numbers[answer] = len(numbers) + 1
            new.append(
                {
                    "account": row["account"],
                    "phase": row["phase"],
                    "task": task,
                    "case": case,
                    "answer": answer,
                    "place": numbers[answer],
                }
            )
        accepted = verdicts.get((task, sample, case)) == Verdict.AC
        if accepted and not within_budget(numbers[answer]):
            beyond.append({"judging": judging, "task": task, "sample": sample, "case": case})
    if new:
        transaction.execute(sa.insert(t.answer_seen), new)
    if beyond:
        transaction.execute(sa.insert(t.beyond_budget), beyond)


def _verdicts(connection: sa.Connection, judging: str) -> dict[_Key, str]:
    rows = verdicts_of(connection, judging)
    return {(row["task"], row["sample"], row["case"]): row["verdict"] for row in rows}


_VERDICTS = (
    sa.select(*t.OF_VERDICT)
    .where(t.verdict.c.judging == sa.bindparam("judging"))
    .order_by(t.verdict.c.task, t.verdict.c.sample, t.verdict.c.case)
)


def verdicts_of(connection: sa.Connection, judging: str) -> list[t.VerdictRow]:
    """All verdicts of a judging by task, sample and case, including those that are withheld."""
    rows = connection.execute(_VERDICTS, {"judging": judging}).mappings()
    return cast("list[t.VerdictRow]", [dict(row) for row in rows])


def shown_rows(connection: sa.Connection, judging: str, *, bounded: bool) -> list[t.VerdictRow]:
    """The verdicts of a judging by task, sample and case.

    Args:
        connection: a connection.
        judging: its id.
        bounded: whether accepted cases beyond the budget are shown as wrong.
    """
    verdicts = verdicts_of(connection, judging)
    if bounded:
        beyond = {
            (row["task"], row["sample"], row["case"])
            for row in all_rows(
                connection, sa.select(t.beyond_budget).where(t.beyond_budget.c.judging == judging)
            )
        }
        for verdict in verdicts:
            if (verdict["task"], verdict["sample"], verdict["case"]) in beyond:
                verdict["verdict"], verdict["earned"] = Verdict.WA.value, None
    return verdicts


# -- the ladder -----------------------------------------------------------------------------------


def last_shown(
    connection: sa.Connection, account: str, phase: Mapping[str, Any], conditions: str
) -> dict[str, Any] | None:
    """The ``submission`` and ``score`` shown last to an account in a phase under these conditions.

    Under the conditions of a rejudging, nothing has been shown yet: the ladder is climbed again
    with the account's submissions in their order.
    """
    row = _row(connection, account, phase, conditions)
    if row is not None:
        return row
    return _climbed(connection, account, phase, conditions)


def _climbed(
    connection: sa.Connection,
    account: str,
    phase: Mapping[str, Any],
    conditions: str,
    *,
    without: str = "",
) -> dict[str, Any] | None:
    rung, of = Rung(), None
    for judging in _judged(connection, account, phase, conditions):
        if judging["id"] == without:
            continue
        after = rung.after(_score(connection, judging["id"], phase, conditions))
        if after is not rung:
            rung, of = after, judging["submission"]
    return None if of is None else {"submission": of, "score": rung.score, "steps": rung.steps}


def _row(
    connection: sa.Connection, account: str, phase: Mapping[str, Any], conditions: str
) -> dict[str, Any] | None:
    return first_row(
        connection,
        sa.select(t.shown_score.c.submission, t.shown_score.c.score, t.shown_score.c.steps).where(
            t.shown_score.c.account == account,
            t.shown_score.c.phase == phase["id"],
            t.shown_score.c.conditions == conditions,
        ),
    )


def _judged(
    connection: sa.Connection, account: str, phase: Mapping[str, Any], conditions: str
) -> Sequence[dict[str, Any]]:
    return all_rows(
        connection,
        sa.select(t.judging.c.id, t.judging.c.submission)
        .join(t.submission, t.submission.c.current_judging == t.judging.c.id)
        .where(
            t.submission.c.account == account,
            t.submission.c.phase == phase["id"],
            t.judging.c.conditions == conditions,
            t.judging.c.state == JudgingState.DONE,
        )
        .order_by(t.submission.c.seq),
    )


def _climb(
    transaction: Transaction,
    account: str,
    phase: Mapping[str, Any],
    conditions: str,
    judging: str,
) -> None:
    connection = transaction.connection
    row = _row(connection, account, phase, conditions)
    # After a rejudging, the earlier steps are climbed again, without the judging that just ended.
    last = row or _climbed(connection, account, phase, conditions, without=judging)
    before = Rung() if last is None else Rung(last["score"], last["steps"])
    after = before.after(_score(connection, judging, phase, conditions))
    submission = connection.execute(
        sa.select(t.judging.c.submission).where(t.judging.c.id == judging)
    ).scalar_one()
    if after is before and last is not None:
        submission = last["submission"]
    values = {"submission": submission, "score": after.score, "steps": after.steps}
    if row is None:
        transaction.execute(
            sa.insert(t.shown_score).values(
                account=account, phase=phase["id"], conditions=conditions, **values
            )
        )
        return
    transaction.execute(
        sa.update(t.shown_score)
        .where(
            t.shown_score.c.account == account,
            t.shown_score.c.phase == phase["id"],
            t.shown_score.c.conditions == conditions,
        )
        .values(**values)
    )


def _score(
    connection: sa.Connection, judging: str, phase: Mapping[str, Any], conditions: str
) -> float:
    """The hard score of a judging on its split, from 0 to 1, by the verdicts that count."""
    revision = connection.execute(
        sa.select(t.conditions.c.revision).where(t.conditions.c.digest == conditions)
    ).scalar_one()
    tasks = split_of(connection, revision, phase["split"])["tasks"]
    hard = scored(shown_rows(connection, judging, bounded=True), tasks).means.hard
    return sum(sorted(hard.values())) / len(hard) if hard else 0.0
