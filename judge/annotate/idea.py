"""What mutators work on, and what they give."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from judge.annotate.edits import Edit
from judge.annotate.support import Group, Support
from judge.annotate.tables import Table
from judge.workbook.cell import CellRange


@dataclass(frozen=True, slots=True)
class Subject:
    """What mutators work on.

    Attributes:
        tables: the tables of the input, the longest first.
        sheets: names of its sheets.
        date_1904: its date system.
        has_dates: whether it holds dates as constants.
        answer: the rectangles of the answer.
        named: sheets that the question or the answer position names.
        limits: numbers that the question or the gold's formulas name.
        words: text that the question quotes or the gold's formulas compare with.
        groups: the constants on which the answer depends, column by column, the nearest first.
        support: which cells the answer depends on.
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
    """Another input with the answer that an idea has to have, if a relation holds.

    Attributes:
        name: which input it is, for people.
        edits: what it changes of the base case's input; without any, the gold of the base case is
            the answer.
        word: text that is in place of the idea's word in this input.
    """

    name: str
    edits: tuple[Edit, ...]
    word: str = ""


@dataclass(frozen=True, slots=True)
class Idea:
    """A corner case as edits of an input.

    Attributes:
        mutator: name of the mutator.
        title: one line for people.
        edits: what to change.
        same_values: whether only the way in which values are stored changes, and no value.
        disputed: why right solutions may differ here, whatever the sources say; or empty.
        twins: inputs of which at least one has the same answer as this idea; programs are compared
            with themselves on these if no source says what the answer is.
        relation: what it means if a program's answer is that of none of the twins.
        premise: a change after which a program has to give the gold of the base case, or the
            relation does not hold for it.
        word: text that the twins have another one for.
        plain: the text of the base case that both are in place of.
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


Mutator = Callable[[Table, random.Random], "tuple[str, list[Edit]] | None"]
"""Gives a title and edits of one table, or None where there is nothing to work on."""

MAX_TABLES = 2
"""Tables of a workbook that are changed: the longest."""
