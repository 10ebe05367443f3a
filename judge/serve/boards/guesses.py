"""How easily the answers of a suite's golds can be guessed: for ``admin leak``."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from judge.compare.cells.answer_range import prepare
from judge.core.task import Task
from judge.errors import JudgeError
from judge.serve.access.rights import split_level
from judge.serve.boards.feedback import Guessable, gold_bits, guessable, leaks, small_number
from judge.serve.catalog import LoadedSuites, revision_of, suite_named
from judge.serve.context import Server
from judge.serve.store import tables as t
from judge.serve.store.database import all_rows
from judge.serve.store.words import Level
from judge.suites import Suite
from judge.workbook.reader import open_workbook


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
                f"  {leak.level}{how}: at most {leak.one:,.1f} bits in a submission, "
                f"{leak.phase:,.0f} in {submissions}"
            )
        counts = count_guessable(chosen)
        lines.append(
            f"  golds that can be guessed: {counts.one_cell} of one cell, {counts.whole} of them "
            f"whole numbers from 0 to 100; {counts.few} of at most ten cells with two values"
        )
    lines.append(f"one gold, by the budget: at most {gold_bits():.1f} bits in a phase")
    return lines


_MAX_CELLS = 1_000


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
