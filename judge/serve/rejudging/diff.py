"""What applying a rejudging would change, for people to look at before they do it.

What nobody expected comes first: verdicts that change outside the cases that the suite's change is
about. After a correction of one case there must be none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, TypedDict

import sqlalchemy as sa

from judge.serve.rejudging.cost import CaseName, corrected_cases
from judge.serve.store import tables as t
from judge.serve.store.words import JudgingState

MAX_LISTED = 5_000
"""Changed verdicts that are listed; all of them are counted."""

_NONE = "none"


class ChangedVerdict(TypedDict):
    """A case whose verdict changes."""

    submission: str
    task: str
    sample: int
    case: int
    before: str
    after: str
    outside: bool


class ChangedScore(TypedDict):
    """A submission whose scores change."""

    submission: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Diff(TypedDict):
    """What a rejudging would change.

    ``changed`` and ``outside`` count verdicts; ``transitions`` says how many change from what to
    what (``WA → AC``); ``work`` says what was done with the cases: ``copied``, ``compared`` and
    ``run``; ``boards`` has the entries and pairs of each board before and after.
    """

    members: int
    cases: int
    changed: int
    outside: int
    transitions: dict[str, int]
    verdicts: list[ChangedVerdict]
    scores: list[ChangedScore]
    work: dict[str, int]
    boards: list[dict[str, Any]]


BoardDiff = Callable[[sa.Connection, Mapping[str, str]], list[dict[str, Any]]]
"""From the judging of each member, by submission, to the boards before and after."""


def diff_of(connection: sa.Connection, row: Mapping[str, Any], boards: BoardDiff) -> Diff:
    """What applying a rejudging would change.

    Args:
        connection: a connection that sees one state of the database.
        row: the rejudging's row; all of its members are judged.
        boards: compares boards.
    """
    corrected = corrected_cases(row["diff"])
    verdicts: list[ChangedVerdict] = []
    scores: list[ChangedScore] = []
    transitions: Counter[str] = Counter()
    work = {"copied": 0, "compared": 0, "run": 0}
    cases = 0
    members = _members(connection, row["id"])
    for member in members:
        before = _verdicts(connection, member["judging_before"])
        after = _verdicts(connection, member["judging"])
        cases += len(after)
        for name, now in after.items():
            was = before.get(name)
            work[_work(was, now)] += 1
            if was is not None and was["verdict"] == now["verdict"]:
                continue
            verdicts.append(_changed(member["submission"], name, was, now, corrected))
        verdicts.extend(
            _changed(member["submission"], name, before[name], None, corrected)
            for name in before.keys() - after.keys()
        )
        if member["scores_before"] != member["scores"]:
            scores.append(
                {
                    "submission": member["submission"],
                    "before": member["scores_before"],
                    "after": member["scores"],
                }
            )
    transitions.update(f"{change['before']} → {change['after']}" for change in verdicts)
    order = {member["submission"]: place for place, member in enumerate(members)}

    def place(change: ChangedVerdict) -> tuple[bool, str, int, int, int]:
        submission = order[change["submission"]]
        return not change["outside"], change["task"], change["case"], submission, change["sample"]

    verdicts.sort(key=place)
    return {
        "members": len(members),
        "cases": cases,
        "changed": len(verdicts),
        "outside": sum(change["outside"] for change in verdicts),
        "transitions": dict(transitions.most_common()),
        "verdicts": verdicts[:MAX_LISTED],
        "scores": scores,
        "work": work,
        "boards": boards(connection, {row["submission"]: row["judging"] for row in members}),
    }


def _members(connection: sa.Connection, rejudging: str) -> list[Mapping[str, Any]]:
    before = t.judging.alias("before")
    statement = (
        sa.select(
            t.rejudging_member.c.submission,
            t.rejudging_member.c.judging,
            t.submission.c.current_judging.label("judging_before"),
            t.judging.c.scores,
            before.c.scores.label("scores_before"),
        )
        .join(t.submission, t.submission.c.id == t.rejudging_member.c.submission)
        .join(t.judging, t.judging.c.id == t.rejudging_member.c.judging)
        .join(before, before.c.id == t.submission.c.current_judging)
        .where(
            t.rejudging_member.c.rejudging == rejudging,
            t.judging.c.state == JudgingState.DONE,
        )
        .order_by(t.submission.c.seq)
    )
    return [dict(row) for row in connection.execute(statement).mappings()]


_Name = tuple[str, int, int]


def _verdicts(connection: sa.Connection, judging: str) -> dict[_Name, Mapping[str, Any]]:
    statement = sa.select(
        t.verdict.c.task,
        t.verdict.c.sample,
        t.verdict.c.case,
        t.verdict.c.verdict,
        t.verdict.c.run_key,
        t.verdict.c.comparison_key,
    ).where(t.verdict.c.judging == judging)
    rows = connection.execute(statement).mappings()
    return {(row["task"], row["sample"], row["case"]): dict(row) for row in rows}


def _work(was: Mapping[str, Any] | None, now: Mapping[str, Any]) -> str:
    if was is None or was["run_key"] != now["run_key"]:
        return "run"
    return "copied" if was["comparison_key"] == now["comparison_key"] else "compared"


def _changed(
    submission: str,
    name: _Name,
    was: Mapping[str, Any] | None,
    now: Mapping[str, Any] | None,
    corrected: frozenset[CaseName],
) -> ChangedVerdict:
    task, sample, case = name
    return {
        "submission": submission,
        "task": task,
        "sample": sample,
        "case": case,
        "before": _NONE if was is None else was["verdict"],
        "after": _NONE if now is None else now["verdict"],
        "outside": (task, case) not in corrected,
    }
