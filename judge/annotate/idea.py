"""Ideas for corner cases, and the material that mutators make them from.

A mutator changes the tables of an input, or the cells on which the answer depends.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from judge.annotate.casebook import CaseData
from judge.annotate.edit import Edited
from judge.annotate.edits import Edit, SetCell
from judge.annotate.support import Group, Reads, Support, find_groups, precedents
from judge.annotate.tables import Kind, Table, find_tables
from judge.compare.cells.answer_range import prepare
from judge.compare.cells.options import position_of
from judge.core.task import Task
from judge.errors import WorkbookError
from judge.formulas.lexer import texts_of
from judge.workbook.cell import CellRange, CellRef, CellValue
from judge.workbook.reader import Workbook

Values = Mapping[CellRef, CellValue]
"""The values of an answer."""

FROM_MODEL = "model"
"""The mutator name of ideas that a chat model proposed."""

REPEATS_KEYS = "it repeats or moves rows of a table in which keys are looked up"
"""A reason why correct solutions may differ: it is unclear which of several rows with a key
counts."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The material that mutators work on.

    Attributes:
        tables: the tables of the input, the longest first.
        sheets: names of the input's sheets.
        date_1904: whether the input counts days from 1904.
        has_dates: whether the input holds dates as constants.
        answer: the rectangles of the answer.
        named: sheets that the question or the answer position names.
        limits: numbers that occur in the question or in the gold's formulas.
        words: text that the question quotes or the gold's formulas compare with.
        groups: the constants on which the answer depends, by column; the most direct first.
        support: the cells on which the answer depends.
    """

    tables: tuple[Table, ...]
    sheets: tuple[str, ...]
    date_1904: bool
    has_dates: bool
    answer: tuple[CellRange, ...]
    named: frozenset[str]
    limits: tuple[float, ...] = ()
    words: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    support: Support = field(default_factory=Support)


@dataclass(frozen=True, slots=True)
class Twin:
    """A twin of an idea: another input, which has the same answer if a relation holds.

    Attributes:
        name: the name of this input, for people.
        edits: changes of the base case's input; if empty, the gold of the base case is the answer.
        word: the word of this input that corresponds to the idea's ``word``.
    """

    name: str
    edits: tuple[Edit, ...]
    word: str = ""


@dataclass(frozen=True, slots=True)
class CarriedAnswer:
    """The answer of an idea if a relation holds: the base case's answer, carried over.

    Attributes:
        answer: turns the values of the base case's answer into the values of the new answer.
        is_certain: whether the relation holds for every question that meets the idea's conditions,
            as for a renamed key. Otherwise, it has to be confirmed by the gold's formulas, or by
            the program, after a similar change at another row (``trial``).
        trial: edits that make a similar change elsewhere.
        trial_answer: turns the values of the base case's answer into those after ``trial``.
    """

    answer: Callable[[Values], Values]
    is_certain: bool = False
    trial: tuple[Edit, ...] = ()
    trial_answer: Callable[[Values], Values] = dict


@dataclass(frozen=True, slots=True)
class Idea:
    """An idea for a corner case: edits of an input, and what is known about its answer.

    Attributes:
        mutator: name of the mutator.
        title: one line for people.
        edits: the changes of the input.
        same_values: whether the edits change only how values are stored, and no value.
        disputed: why correct solutions may differ here, even if all sources agree; or empty.
        twins: other inputs; at least one of them has the same answer as this idea. If no source
            gives the answer, a program's answer to the idea is compared with its answers to them.
        relation: what follows if a program's answer differs from its answers to all twins.
        premise: a change that should not change the answer. This idea is not tested on programs
            whose answer does change.
        word: the word with which this idea replaces ``plain``; a twin may have another word there.
            Before answers are compared, these words are replaced by ``plain``.
        plain: the word of the base case.
        carried: the answer that follows from the base case's answer, if the idea is a relation.
    """

    mutator: str
    title: str
    edits: tuple[Edit, ...]
    same_values: bool = False
    disputed: str = ""
    twins: tuple[Twin, ...] = ()
    relation: str = ""
    premise: tuple[Edit, ...] = ()
    word: str = ""
    plain: str = ""
    carried: CarriedAnswer | None = None


Mutator = Callable[[Table, random.Random], "tuple[str, list[Edit]] | None"]
"""Returns a title and edits of one table; None if the mutator cannot be applied to it."""

MAX_TABLES = 2
"""How many tables of a workbook are changed; the longest ones are chosen."""


def subject_of(task: Task, base: CaseData, reads: Reads | None = None) -> Subject:
    """Collects the material that mutators work on.

    Args:
        task: the task.
        base: the case to change.
        reads: the cells of its input that accepted programs read, if known.

    Raises:
        WorkbookError, PositionError: the base case cannot be read.
    """
    before, gold = base.input_workbook, base.gold_workbook
    answer = prepare(
        task.checker,
        gold=gold,
        output=None,
    ).gold_ranges
    tables = find_tables(before, answer)
    support = Support(_precedents(gold, answer), reads or {})
    position, sheet = position_of(task.checker)
    text = f"{task.instruction}\n{position}\n{sheet or ''}".casefold()
    named = {name.casefold() for name in before.sheet_names if name.casefold() in text}
    named |= {area.sheet.casefold() for area in answer}
    return Subject(
        tables=tuple(table for table in tables if _is_data(table.sheet, before)),
        sheets=before.sheet_names,
        date_1904=before.facts.date_1904,
        has_dates=any(column.kind is Kind.DATE for table in tables for column in table.columns),
        answer=answer,
        named=frozenset(named),
        limits=_limits(task, gold, answer),
        words=_words(task, gold, answer),
        groups=tuple(find_groups(before, answer, support, tables)),
        support=support,
    )


def _precedents(gold: Workbook, answer: Sequence[CellRange]) -> tuple[CellRange, ...] | None:
    try:
        return precedents(gold, answer)
    except WorkbookError:
        return None


_NUMBER = re.compile(r"(?<![\w.$])(\d+(?:\.\d+)?)(%?)(?![\w:])(?!\.\d)")


def _limits(task: Task, gold: Workbook, answer: Sequence[CellRange]) -> tuple[float, ...]:
    """Numbers in the question and in the formulas of the answer, the largest first."""
    texts = [task.instruction, *_formulas(gold, answer)]
    numbers = {
        float(number) / (100 if percent else 1)
        for text in texts
        for number, percent in _NUMBER.findall(text)
    }
    plain = {
        int(number) if number.is_integer() else number for number in numbers if 0 < number < 10**9
    }
    return tuple(sorted(plain - {1}, reverse=True))


_QUOTED = re.compile(
    r"\"([^\"\n]{1,30})\"|\u201c([^\u201d\n]{1,30})\u201d|(?<!\w)'([^'\n]{1,30})'(?!\w)"
)

MAX_WORD_CHARS = 30


def _words(task: Task, gold: Workbook, answer: Sequence[CellRange]) -> tuple[str, ...]:
    """Text that the formulas of the answer compare with and that the question quotes."""
    compared = [text for formula in _formulas(gold, answer) for text in texts_of(formula)]
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(task.instruction)]
    words = (word.strip() for word in (*compared, *quoted))
    return tuple(
        dict.fromkeys(
            word
            for word in words
            if 0 < len(word) <= MAX_WORD_CHARS and any(map(str.isalpha, word)) and word[0] != "="
        )
    )


MAX_FORMULAS = 20


def _formulas(gold: Workbook, answer: Sequence[CellRange]) -> list[str]:
    formulas = {
        cell.formula for area in answer for cell in gold.formula_cells(area) if cell.formula
    }
    return sorted(formulas)[:MAX_FORMULAS]


def _is_data(sheet: str, workbook: Workbook) -> bool:
    return any(tab.name == sheet and tab.state == "visible" for tab in workbook.tabs)


# -- ideas that are tried together ----------------------------------------------------------------


MAX_TOGETHER = 12
"""How many ideas are tried in one workbook. Most ideas kill no program, so that all ideas in a
workbook can usually be rejected at once."""

MAX_EDITS_TOGETHER = 40
"""An idea with more edits than this is tried alone."""


@dataclass
class IdeasTogether:
    """Ideas that are tried in one workbook.

    Attributes:
        ideas: the ideas, which change different rows.
        is_prepared: whether ``edited`` and ``problem`` are set.
        edited: the input with all ideas applied; None if it cannot be made.
        problem: why it cannot be made, or empty.
    """

    ideas: tuple[Idea, ...]
    is_prepared: bool = False
    edited: Edited | None = None
    problem: str = ""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of all ideas."""
        return tuple(itertools.chain.from_iterable(idea.edits for idea in self.ideas))


def grouped(ideas: Sequence[Idea]) -> Iterator[tuple[Idea, ...]]:
    """Groups ideas that can be tried in one workbook, because no two change the same row.

    An idea joins the first group in which its rows are free, so groups are in the order of their
    first ideas. The ideas of a chat model are few, and stay alone: other changes can hide that a
    program fails.
    """
    groups: list[tuple[list[Idea], set[tuple[str, int]]]] = []
    for idea in ideas:
        own = set() if idea.mutator == FROM_MODEL else _rows_of(idea)
        fitting = (
            (group, rows)
            for group, rows in groups
            if own
            and rows
            and not own & rows
            and len(group) < MAX_TOGETHER
            and group[0].same_values == idea.same_values
        )
        group, rows = next(fitting, (None, None))
        if group is None or rows is None:
            groups.append(([idea], own))
        else:
            group.append(idea)
            rows |= own
    for group, _ in groups:
        yield tuple(group)


def split_up(
    ideas: tuple[Idea, ...], differing: Collection[tuple[str, int]]
) -> list[IdeasTogether]:
    """Splits ideas that together make a program fail into parts to try again.

    Ideas that change a row where the program differs are tried one by one, the others together.
    If that does not split them, each half is tried.
    """
    suspected = [idea for idea in ideas if _rows_of(idea) & frozenset(differing)]
    others = tuple(idea for idea in ideas if idea not in suspected)
    if suspected and others:
        return [*(IdeasTogether((idea,)) for idea in suspected), IdeasTogether(others)]
    half = (len(ideas) + 1) // 2
    return [IdeasTogether(ideas[:half]), IdeasTogether(ideas[half:])]


def _rows_of(idea: Idea) -> set[tuple[str, int]]:
    """The rows that an idea changes; empty if it cannot be tried with others."""
    if idea.twins or idea.carried or len(idea.edits) > MAX_EDITS_TOGETHER:
        return set()
    rows: set[tuple[str, int]] = set()
    for edit in idea.edits:
        if not isinstance(edit, SetCell):
            return set()
        rows.add((edit.ref.sheet, edit.ref.row))
    return rows
