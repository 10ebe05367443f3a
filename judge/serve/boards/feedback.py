"""What feedback gives away about golds and hidden inputs, and what bounds it. Pure.

The score that is shown in a phase is rounded and climbs a ladder (A. Blum and M. Hardt, The Ladder,
ICML 2015); of each gold, a team learns by a budget of different answers; and what each level tells
at most is computed. benchmarks/feedback_attack.py shows how far that goes.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judge.core.records.cases import CaseRecord
from judge.core.verdict import Verdict
from judge.serve.store.words import Level

STEP = 0.005
"""Scores are shown in half points."""

MIN_GAIN = 0.01
"""The ladder moves when a score is at least one point above the account's best shown one."""

MAX_STEPS = 100
"""How often it can move in a phase."""

ANSWERS_FOR_EACH_GOLD = 20
"""After so many different answers of a team for a case, further ones count as not accepted."""

SLOT_MINUTES = 5
"""Below the level of verdicts, times of judgings are those of their slot."""

_NOTHING = 1e-9
_VERDICT_CODES = 10
"""Verdicts that a program can choose at run time: AC, WA, NO, IW, NC, RE, TLE, MLE, OLE, SV."""


def slot(time: str) -> str:
    """The beginning of the slot in which something ended, as ``2026-01-31T23:55:00Z``."""
    minute = int(time[14:16])
    return f"{time[:14]}{minute - minute % SLOT_MINUTES:02}:00Z"


def rounded(score: float) -> float:
    """A score in steps of half a point, both from 0 to 1; halves of a step round down."""
    return math.ceil(score / STEP - 0.5 - _NOTHING) * STEP


@dataclass(frozen=True, slots=True)
class Rung:
    """What an account has been shown of its scores in a phase.

    Attributes:
        score: the best score that was shown, rounded; None before the first.
        steps: how often it has moved.
    """

    score: float | None = None
    steps: int = 0

    def after(self, score: float) -> Rung:
        """The ladder after a submission: the same, or the new score if it is a point better.

        Args:
            score: not rounded, from 0 to 1.
        """
        if self.score is not None and (
            self.steps >= MAX_STEPS or score + _NOTHING < self.score + MIN_GAIN
        ):
            return self
        return Rung(rounded(score), self.steps + 1)


def answer_of(record: CaseRecord) -> str | None:
    """A hash of the values that a submission left in the answer range of a case.

    Equal values have equal hashes, whatever else is in the file. Where the record names the
    differences from the gold, these say what the values are; a typed answer is its own text. Two
    answers with the same first differences and the same number of them count as one: neither can
    be right, so they tell nothing about the gold that the first did not.

    Returns:
        Hexadecimal SHA-256; None where no answer was compared with the gold.
    """
    if record["verdict"] not in {Verdict.AC, Verdict.WA}:
        return None
    run, comparison = record.get("run", {}), record.get("comparison", {})
    compared: object
    if "answer" in run:
        compared = ["typed", run["answer"]]
    elif record["verdict"] == Verdict.AC:
        compared = ["accepted"]
    elif comparison.get("differences"):
        compared = [
            comparison["differences"],
            comparison.get("differing_cells"),
            comparison.get("difference_counts"),
        ]
    else:
        compared = ["file", run.get("output_sha256")]
    return _hashed(compared)


def _hashed(compared: object) -> str:
    return hashlib.sha256(json.dumps(compared, sort_keys=True).encode()).hexdigest()


ACCEPTED = _hashed(["accepted"])
"""What :func:`answer_of` gives for every accepted workbook."""


def within_budget(place: int | None) -> bool:
    """Whether the verdict of an answer counts for what is shown.

    Args:
        place: the answer's place among the different answers of the team for the case, from 1; None
            if no answer was compared.
    """
    return place is None or place <= ANSWERS_FOR_EACH_GOLD


def shown_verdicts(
    verdicts: Mapping[tuple[str, int, int], Verdict],
    places: Mapping[tuple[str, int, int], int | None],
) -> dict[tuple[str, int, int], Verdict]:
    """The verdicts that count for what is shown: beyond the budget, accepted ones do not.

    Args:
        verdicts: (task, sample, case) -> verdict.
        places: the same -> place of the answer, see :func:`within_budget`.
    """
    return {
        key: verdict if verdict is not Verdict.AC or within_budget(places.get(key)) else Verdict.WA
        for key, verdict in verdicts.items()
    }


@dataclass(frozen=True, slots=True)
class Leak:
    """What a level tells at most.

    Attributes:
        level: the feedback level.
        bounded: whether ladder and budget are on, which they are at ``score`` of a hidden split.
        one: bits in one submission.
        phase: bits in all submissions of a phase.
    """

    level: Level
    bounded: bool
    one: float
    phase: float


def leaks(tasks: int, cases: int, submissions: int) -> list[Leak]:
    """What each level tells at most about a split.

    Args:
        tasks: the tasks of the split.
        cases: the cases of the split.
        submissions: that a team can make in a phase.
    """
    rows = [
        Leak(Level.NONE, True, 0.0, 0.0),
        Leak(Level.SCORE, True, math.log2(_scores(tasks)), ladder_bits(submissions, tasks)),
    ]
    for level, bits in (
        (Level.SCORE, math.log2(cases + 1)),
        (Level.TASKS, float(tasks)),
        (Level.VERDICTS, cases * math.log2(_VERDICT_CODES)),
    ):
        rows.append(Leak(level, False, bits, bits * submissions))
    return rows


def _scores(tasks: int) -> int:
    """How many scores can be shown: half points, or numbers of solved tasks if those are fewer."""
    return min(round(1 / STEP), tasks) + 1


def ladder_bits(submissions: int, tasks: int) -> float:
    """Bits in all that the ladder can say in a phase.

    The logarithm of the number of its histories: at which submissions it moved, at most
    :data:`MAX_STEPS` times, and to which scores, each at least a point (two steps) above the last;
    rounding can take half a point of that, so one step is what is counted.
    """
    scores = _scores(tasks)
    histories = sum(
        math.comb(submissions, moves) * math.comb(scores, moves)
        for moves in range(min(MAX_STEPS, submissions, scores) + 1)
    )
    return math.log2(histories)


def gold_bits() -> float:
    """Bits about one gold: which of the answers within the budget was right, or none."""
    return math.log2(ANSWERS_FOR_EACH_GOLD + 1)


@dataclass(frozen=True, slots=True)
class Guessable:
    """Golds that can be guessed, counted by their answers on the first case of each task.

    Attributes:
        one_cell: answers of one cell.
        whole: those that are a whole number from 0 to 100.
        few: answers of at most ten cells with at most two different values.
    """

    one_cell: int
    whole: int
    few: int


def guessable(answers: Iterable[tuple[object, ...]]) -> Guessable:
    """Counts the answers that can be guessed.

    Args:
        answers: the values of the cells of each answer.
    """
    one = whole = few = 0
    for values in answers:
        one += len(values) == 1
        whole += len(values) == 1 and small_number(values[0]) is not None
        few += 0 < len(values) <= 10 and len({repr(value) for value in values}) <= 2
    return Guessable(one, whole, few)


def small_number(value: object) -> int | None:
    """A whole number from 0 to 100; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value <= 100 and value == int(value) else None
