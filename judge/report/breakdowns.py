"""The ways that a report divides its tasks into groups, each with its rule. Pure."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from judge.report.shapes import MIN_COLUMNS, MIN_ROWS, MIN_SHARE, WorkbookShape


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """The facts about a task that decide to which part of each division it belongs.

    Attributes:
        instruction_type: the instruction type, in the benchmark's words.
        shape: the shape of the first case's input; None if it is not known.
        input_bytes: size of the same workbook.
        answer_cells: number of cells in the answer range of the first case.
        groups: name of a division -> the task's group, as given by the suite.
        rounds: rounds of the conversation that produced the solution.
        has_workbook: whether the answer is a file; only then do the rows and columns of the input
            matter.
        aspects: the aspects of the answer that are judged, if the checker names them.
    """

    instruction_type: str
    shape: WorkbookShape | None = None
    input_bytes: int | None = None
    answer_cells: int | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    rounds: int | None = None
    has_workbook: bool = True
    aspects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A part: its key in data, its name for people and, if there is one, its share in the paper."""

    key: str
    label: str
    paper_share: float | None = None


@dataclass(frozen=True, slots=True)
class Division:
    """One way of dividing tasks.

    Attributes:
        key: its name in data.
        label: its name for people.
        rule: which tasks are in which part, in a sentence or two.
        parts: all parts, in the order in which they are shown.
        part_of: returns the key of the part that a task is in, or None if that is unknown.
        from_paper: whether it is one of the four pairs of the paper's Table 3, which are shown
            even if they are empty.
    """

    key: str
    label: str
    rule: str
    parts: tuple[Part, ...]
    part_of: Callable[[TaskFacts], str | None]
    from_paper: bool = False


_FIRST = "The input workbook of the task's first case decides."

ROWS = Division(
    key="rows",
    label="Rows",
    rule="Rows from the first to the last one with a value, on the tallest sheet. " + _FIRST,
    parts=(
        Part("rows_up_to_50", "≤ 50 rows", 0.7519),
        Part("rows_over_50", "> 50 rows"),
    ),
    part_of=lambda task: _of_shape(
        task, lambda shape: "rows_up_to_50" if shape.rows <= 50 else "rows_over_50"
    ),
    from_paper=True,
)
COLUMNS = Division(
    key="columns",
    label="Columns",
    rule="Columns from the first to the last one with a value, on the widest sheet. " + _FIRST,
    parts=(
        Part("columns_up_to_10", "≤ 10 columns", 0.6553),
        Part("columns_over_10", "> 10 columns"),
    ),
    part_of=lambda task: _of_shape(
        task, lambda shape: "columns_up_to_10" if shape.columns <= 10 else "columns_over_10"
    ),
    from_paper=True,
)
TABLES = Division(
    key="tables",
    label="Tables",
    rule=f"A table is a region bounded by blank rows and columns. It has at least {MIN_ROWS} rows "
    f"and {MIN_COLUMNS} columns, and at least {MIN_SHARE:.0%} of the filled cells of the "
    "workbook's largest table. The tables of all sheets count. " + _FIRST,
    parts=(
        Part("single_table", "single table", 0.6290),
        Part("multiple_tables", "multiple tables"),
    ),
    part_of=lambda task: _of_shape(
        task, lambda shape: "single_table" if shape.tables <= 1 else "multiple_tables"
    ),
    from_paper=True,
)
LAYOUT = Division(
    key="layout",
    label="Layout",
    rule="Relational if the first row of the largest table has text above every column, and the "
    "table has no merged cell; otherwise, or without a table, non-standard. " + _FIRST,
    parts=(
        Part("relational", "relational table", 0.5554),
        Part("non_standard", "non-standard table"),
    ),
    part_of=lambda task: _of_shape(
        task, lambda shape: "relational" if shape.is_relational else "non_standard"
    ),
    from_paper=True,
)
INSTRUCTION_TYPE = Division(
    key="instruction_type",
    label="Instruction type",
    rule="As the suite says.",
    parts=(),
    part_of=lambda task: task.instruction_type,
)

_ANSWER_CELLS = (
    (1, "1 cell"),
    (10, "2-10 cells"),
    (100, "11-100 cells"),
    (1_000, "101-1,000 cells"),
)
_WORKBOOK_BYTES = ((10_000, "≤ 10 kB"), (20_000, "10-20 kB"), (100_000, "20-100 kB"))

ANSWER_CELLS = Division(
    key="answer_cells",
    label="Answer range",
    rule="Cells of the answer range of the task's first case.",
    parts=(
        *(Part(f"cells_up_to_{limit}", label) for limit, label in _ANSWER_CELLS),
        Part("cells_over_1000", "> 1,000 cells"),
    ),
    part_of=lambda task: _step(task.answer_cells, _ANSWER_CELLS, "cells"),
)
WORKBOOK_BYTES = Division(
    key="workbook_bytes",
    label="Workbook size",
    rule="Size of the file. " + _FIRST,
    parts=(
        *(Part(f"bytes_up_to_{limit}", label) for limit, label in _WORKBOOK_BYTES),
        Part("bytes_over_100000", "> 100 kB"),
    ),
    part_of=lambda task: _step(task.input_bytes, _WORKBOOK_BYTES, "bytes"),
)


def divisions_for(tasks: Sequence[TaskFacts], *, of_paper: bool) -> tuple[Division, ...]:
    """The ways to divide these tasks into groups; those of the paper come first.

    Tasks are divided by the suite's own groups and by rounds if the suite and the run have them,
    and by the contents of the workbook if the suite's answers are files.

    Args:
        tasks: the facts about each task.
        of_paper: whether Table 3 of the SpreadsheetBench paper lists the subsets of this suite.
            Tasks of other suites are divided in the same way, without the paper's shares.
    """
    about_files = any(task.has_workbook for task in tasks)
    paper = (ROWS, COLUMNS, TABLES, LAYOUT)
    pairs = paper if of_paper else tuple(map(_without_paper, paper))
    fixed = (*pairs, ANSWER_CELLS, WORKBOOK_BYTES) if about_files else ()
    rounds = _rounds(tasks)
    return (
        *fixed,
        *_groups(tasks),
        *aspect_divisions([task.aspects for task in tasks]),
        *(() if rounds is None else (rounds,)),
    )


def _without_paper(division: Division) -> Division:
    """Adapts a division of the paper's table to a suite on which the paper does not report."""
    parts = tuple(replace(part, paper_share=None) for part in division.parts)
    return replace(division, parts=parts, from_paper=False)


def aspect_divisions(tasks: Sequence[Sequence[str]]) -> tuple[Division, ...]:
    """One division for each aspect that is judged in some tasks but not in others.

    Args:
        tasks: the aspects of each task.
    """
    named = sorted({aspect for aspects in tasks for aspect in aspects})
    return tuple(
        Division(
            key=f"aspect_{aspect}",
            label=f"Judged by {aspect}",
            rule=f"“With” means that some rule of the task checks {aspect}.",
            parts=(Part("with", f"with {aspect}"), Part("without", f"without {aspect}")),
            part_of=functools.partial(_aspect_of, aspect=aspect),
        )
        for aspect in named
        if not all(aspect in aspects for aspects in tasks)
    )


def _aspect_of(task: TaskFacts, *, aspect: str) -> str | None:
    return "with" if aspect in task.aspects else "without"


_GROUP_LABELS = {"category": "Manipulation category", "actions": "Difficulty"}
_GROUP_RULES = {
    "actions": "By the number of actions that the suite's authors give: easy up to 5, "
    "medium up to 15, otherwise hard.",
    "feasible": "Tasks that cannot be done are solved by saying so.",
}
_ORDERED = ("easy", "medium", "hard")
"""The groups that have a fixed order; other groups are sorted by name."""


def _groups(tasks: Sequence[TaskFacts]) -> Iterable[Division]:
    """The divisions that the suite itself defines."""
    for key in sorted({name for task in tasks for name in task.groups}):
        names = sorted({task.groups[key] for task in tasks if key in task.groups}, key=_sort_key)
        yield Division(
            key=key,
            label=_GROUP_LABELS.get(key, key.replace("_", " ").capitalize()),
            rule=_GROUP_RULES.get(key, "As the suite says."),
            parts=tuple(Part(name, name) for name in names),
            part_of=functools.partial(_group_of, key=key),
        )


def _sort_key(name: str) -> tuple[int, str]:
    """Sorts the groups of a division."""
    return (_ORDERED.index(name) if name in _ORDERED else -1, name)


def _group_of(task: TaskFacts, *, key: str) -> str | None:
    return task.groups.get(key)


def _rounds(tasks: Iterable[TaskFacts]) -> Division | None:
    rounds = sorted({task.rounds for task in tasks if task.rounds is not None})
    if not rounds or rounds == [1]:
        return None
    return Division(
        key="rounds",
        label="Rounds",
        rule="Rounds of the conversation that ended in the solution (of the first sample).",
        parts=tuple(
            Part(f"rounds_{count}", f"{count} round{'s' if count > 1 else ''}") for count in rounds
        ),
        part_of=lambda task: None if task.rounds is None else f"rounds_{task.rounds}",
    )


def _of_shape(task: TaskFacts, part: Callable[[WorkbookShape], str]) -> str | None:
    return None if task.shape is None else part(task.shape)


def _step(value: int | None, steps: Sequence[tuple[int, str]], name: str) -> str | None:
    if value is None:
        return None
    for limit, _ in steps:
        if value <= limit:
            return f"{name}_up_to_{limit}"
    return f"{name}_over_{steps[-1][0]}"
