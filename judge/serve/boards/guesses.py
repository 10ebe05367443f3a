"""The answers of a suite's golds, as somebody who guesses would sort them: for ``admin leak``."""

from __future__ import annotations

from collections.abc import Iterator

from judge.compare.cells.answer_range import prepare
from judge.core.task import Task
from judge.errors import JudgeError
from judge.serve.boards.feedback import Guessable, guessable, small_number
from judge.suites import Suite
from judge.workbook.reader import open_workbook


def answers(suite: Suite) -> Iterator[tuple[str, tuple[object, ...]]]:
    """Task id and values of the first case's answer, of tasks whose answer is cells.

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
    """Task id -> answer, of the tasks whose answer is one cell with a whole number to 100."""
    found = {}
    for task, values in answers(suite):
        number = small_number(values[0]) if len(values) == 1 else None
        if number is not None:
            found[task] = number
    return found


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
            values.extend([None] * (size - len(cells)) if size <= _MOST_CELLS else ())
            if len(values) > _MOST_CELLS:
                break
    except JudgeError:
        return ()
    return tuple(values)


_MOST_CELLS = 1_000
