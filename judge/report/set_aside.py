"""Scores with suspected cases set aside: what is left of the verdicts of a task. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from judge.core.records.runs import RunDocument
from judge.core.verdict import Verdict
from judge.suspects.model import Certainty
from judge.suspects.standing import Standing, Suspicions

LEVELS = {
    Certainty.SURE: "without sure suspects",
    Certainty.LIKELY: "without sure and likely suspects",
    Certainty.POSSIBLE: "without any suspects",
}
"""Which suspects are set aside, from the fewest to all, and what that is called."""


def suspicions_of_run(suspicions: Suspicions | None, run: RunDocument) -> Suspicions | None:
    """The suspects of a run, of which those that it was judged with corrections of are settled."""
    if suspicions is None:
        return None
    suite = run.get("suite")
    corrections = None if suite is None else suite.get("corrections")
    return suspicions.with_corrections(corrections or ())


def cases_left(
    suspicions: Suspicions, task_id: str, cases: Sequence[int], least: Certainty
) -> list[int]:
    """Places in a task's cases that are not set aside.

    Args:
        suspicions: the suspects.
        task_id: the task.
        cases: the numbers of its cases, in order.
        least: suspects that are this sure or surer are set aside.
    """
    return [
        place
        for place, number in enumerate(cases)
        if not suspicions.is_set_aside(task_id, number, least)
    ]


def count_set_aside(before: Sequence[Verdict | None], after: Sequence[Verdict | None]) -> int:
    """How many scored cases were set aside."""
    return _scored(before) - _scored(after)


def _scored(verdicts: Sequence[Verdict | None]) -> int:
    return sum(verdict is not None and verdict.is_scored for verdict in verdicts)


def count_standings(suspicions: Suspicions, tasks: Sequence[str]) -> dict[str, int]:
    """Standing -> suspects about some tasks, in the order of the standings; none are left out."""
    chosen = set(tasks)
    counts = Counter(point.standing for point in suspicions.points if point.suspect.task in chosen)
    return {standing.value: counts[standing] for standing in Standing if counts[standing]}
