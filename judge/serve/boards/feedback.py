"""How much feedback reveals about golds and hidden inputs, and how this is limited.

The score that is shown in a phase is rounded and climbs a ladder (A. Blum and M. Hardt, The Ladder,
ICML 2015). A budget limits how many different answers a team can test against each gold. This
module also computes how much each level reveals at most. benchmarks/feedback_attack.py measures
how well the limits work.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from judge.compare.cells.answer_range import prepare
from judge.core.records.cases import CaseRecord
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import JudgeError
from judge.serve.access.rights import split_level
from judge.serve.catalog import LoadedSuites, revision_of, suite_named
from judge.serve.context import Server
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.tables import Level
from judge.suites import Suite
from judge.workbook.reader import open_workbook

STEP = 0.005
"""Step of the scores that are shown: half a point."""

MIN_GAIN = 0.01
"""A new score is shown only if it exceeds the account's best shown score by at least this much."""

MAX_STEPS = 100
"""How many times the shown score of an account can change in a phase."""

ANSWERS_FOR_EACH_GOLD = 20
"""How many different answers a team may try for a case; further ones count as not accepted."""

SLOT_MINUTES = 5
"""Length of a slot in minutes; below the level ``verdicts``, times are rounded to slots."""

_ROUNDING_ERROR = 1e-9  # scores are sums of floats; both are shares from 0 to 1
_VERDICT_CODES = 10
"""How many verdicts a program can cause on purpose: AC, WA, NO, IW, NC, RE, TLE, MLE, OLE, SV."""


def slot(time: str) -> str:
    """The beginning of the slot that contains a time, such as ``2026-01-31T23:55:00Z``."""
    minute = int(time[14:16])
    return f"{time[:14]}{minute - minute % SLOT_MINUTES:02}:00Z"


def rounded(score: float) -> float:
    """Rounds a score from 0 to 1 to half points; half a step is rounded down."""
    return math.ceil(score / STEP - 0.5 - _ROUNDING_ERROR) * STEP


@dataclass(frozen=True, slots=True)
class Rung:
    """The position of an account on the ladder of a phase.

    Attributes:
        score: the best score that was shown, rounded; None before the first one.
        steps: how many times the shown score has moved.
    """

    score: float | None = None
    steps: int = 0

    def after(self, score: float) -> Rung:
        """The position after a submission: unchanged, or the new score if it is a point better.

        Args:
            score: the score of the submission, not rounded, from 0 to 1.
        """
        if self.score is not None and (
            self.steps >= MAX_STEPS or score + _ROUNDING_ERROR < self.score + MIN_GAIN
        ):
            return self
        return Rung(rounded(score), self.steps + 1)


def answer_of(record: CaseRecord) -> str | None:
    """A hash of the values that a submission left in the answer range of a case.

    Equal values have equal hashes, whatever else is in the file. If the record lists the
    differences from the gold, they identify the values; a typed answer is identified by its text.
    Two answers with the same first differences and the same number of differences count as one:
    neither is right, so the second reveals nothing about the gold that the first did not.

    Returns:
        Hexadecimal SHA-256; None if no answer was compared with the gold.
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
"""The hash that :func:`answer_of` returns for every accepted workbook."""


def within_budget(number: int | None) -> bool:
    """Whether an accepted verdict of an answer may be shown.

    Args:
        number: the answer's number among the team's different answers to the case, from 1; None if
            no answer was compared.
    """
    return number is None or number <= ANSWERS_FOR_EACH_GOLD


@dataclass(frozen=True, slots=True)
class Leak:
    """How much information a level reveals at most.

    Attributes:
        level: the feedback level.
        bounded: whether ladder and budget apply, as they do at ``score`` of a hidden split.
        per_submission: bits revealed by one submission.
        per_phase: bits revealed by all submissions in a phase.
    """

    level: Level
    bounded: bool
    per_submission: float
    per_phase: float


def leaks(tasks: int, cases: int, submissions: int) -> list[Leak]:
    """How much each level reveals at most about a split.

    Args:
        tasks: number of tasks of the split.
        cases: number of cases of the split.
        submissions: how many submissions a team can make in a phase.
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
    """How many different scores can be shown: half points, or solved tasks if those are fewer."""
    return min(round(1 / STEP), tasks) + 1


def ladder_bits(submissions: int, tasks: int) -> float:
    """How many bits the ladder reveals at most in a phase.

    It is the logarithm of the number of possible histories. A history says at which submissions the
    ladder moved (at most :data:`MAX_STEPS` times), and to which scores. Each score is at least a
    point (two steps) above the previous one. Because rounding can take away half a point, only one
    step is assumed.
    """
    scores = _scores(tasks)
    histories = sum(
        math.comb(submissions, moves) * math.comb(scores, moves)
        for moves in range(min(MAX_STEPS, submissions, scores) + 1)
    )
    return math.log2(histories)


def gold_bits() -> float:
    """How many bits a budget reveals about a gold: which of the answers was right, if any."""
    return math.log2(ANSWERS_FOR_EACH_GOLD + 1)


@dataclass(frozen=True, slots=True)
class Guessable:
    """How many golds can be guessed, judging by the answer of each task's first case.

    Attributes:
        one_cell: number of answers that are one cell.
        whole: how many of these are a whole number from 0 to 100.
        few: number of answers of at most ten cells with at most two different values.
    """

    one_cell: int
    whole: int
    few: int


def guessable(answers: Iterable[tuple[object, ...]]) -> Guessable:
    """Counts the answers that can be guessed.

    Args:
        answers: for each answer, the values of its cells.
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


def answers(suite: Suite) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Yields task id and values of the first case's answer, for tasks whose answer is cells.

    Tasks whose gold or position cannot be read are left out.
    """
    for task in suite.tasks:
        values = _values(task)
        if values:
            yield task.id, values


def count_guessable(suite: Suite) -> Guessable:
    """Counts the golds that can be guessed."""
    return guessable(values for _, values in answers(suite))


def whole_numbers(suite: Suite) -> dict[str, int]:
    """Task id -> answer, for tasks whose answer is one cell with a whole number from 0 to 100."""
    numbers = {}
    for task, values in answers(suite):
        number = small_number(values[0]) if len(values) == 1 else None
        if number is not None:
            numbers[task] = number
    return numbers


def leak_lines(server: Server, name: str, submissions: int) -> list[str]:
    """Yields the lines that ``judge serve admin leak`` prints.

    Args:
        server: the server.
        name: the name of a suite.
        submissions: how many submissions a team makes in a phase.

    Raises:
        UsageError: there is no such suite.
    """
    with server.database.reading() as connection:
        row = suite_named(connection, name)
        revision = revision_of(connection, row["current_revision"])
        splits = all_rows(
            connection,
            sa.select(t.split).where(t.split.c.revision == revision["id"]).order_by(t.split.c.name),
        )
    suite = LoadedSuites(server.folder).suite(revision)
    lines = []
    for split in splits:
        chosen = suite.select(split["tasks"])
        level = split_level(row, split["name"])
        lines.append(
            f"{split['name']}: {len(split['tasks'])} tasks, {split['cases']} cases, level {level}"
        )
        for leak in leaks(len(split["tasks"]), split["cases"], submissions):
            how = " with ladder and budget" if leak.bounded and leak.level is Level.SCORE else ""
            how = " exact" if not leak.bounded and leak.level is Level.SCORE else how
            lines.append(
                f"  {leak.level}{how}: at most {leak.per_submission:,.1f} bits in a submission, "
                f"{leak.per_phase:,.0f} in {submissions}"
            )
        counts = count_guessable(chosen)
        lines.append(
            f"  golds that can be guessed: {counts.one_cell} of one cell, {counts.whole} of them "
            f"whole numbers from 0 to 100; {counts.few} of at most ten cells with two values"
        )
    lines.append(
        f"through the answer budget, one gold can leak at most {gold_bits():.1f} bits in a phase"
    )
    return lines


_MAX_CELLS = 1_000  # of an answer; larger answers cannot be guessed


def _values(task: Task) -> tuple[object, ...]:
    if not task.cases or not task.cases[0].golds or task.cases[0].golds[0].path is None:
        return ()
    try:
        workbook = open_workbook(task.cases[0].golds[0].path)
        plan = prepare(task.checker, gold=workbook, output=None)
        values: list[object] = []
        for area in plan.gold_ranges:
            cells = workbook.cells(area)
            size = (area.max_row - area.min_row + 1) * (area.max_column - area.min_column + 1)
            values.extend(cell.value for cell in cells.values())
            values.extend([None] * (size - len(cells)) if size <= _MAX_CELLS else ())
            if len(values) > _MAX_CELLS:
                break
    except JudgeError:
        return ()
    return tuple(values)
