"""The sources of a gold: their answers, their independence from each other, and their vote.

A program that writes the gold's own formula into the workbook only repeats the gold: the program is
right exactly where the formula is right. All such sources together count as one source.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from judge.annotate.answers import MovedCell
from judge.core.records.cases import CaseComparison
from judge.core.submission import Submission
from judge.formulas.functions import PREFIX
from judge.formulas.lexer import Kind, tokens
from judge.formulas.shift import shape_of
from judge.workbook.cell import CellRange
from judge.workbook.reader import Workbook

FORMULA_DERIVATION = "formulas of the gold"
"""The derivation of the gold's formulas, and of every program that writes them."""

MAX_FORMULAS = 400
"""How many formulas of an answer are read to compare derivations."""


@dataclass(frozen=True, slots=True)
class Side:
    """A side in a vote: sources that give the same answer.

    Attributes:
        names: the sources.
        independent: how many of them are independent of each other.
    """

    names: tuple[str, ...]
    independent: int


_WORDS = (Kind.NAME, Kind.FUNCTION)

_LOGICAL = {"TRUE": "1", "FALSE": "0"}


def skeleton(formula: str) -> str:
    """A formula's functions, operators and constants, without its references.

    Two formulas have the same skeleton if they differ only in the size of their ranges, or in the
    way in which FALSE is written.
    """
    pieces = []
    words = iter(tokens(formula.removeprefix("=")))
    for token in words:
        bare = shape_of(token)
        if token.kind in _WORDS:
            bare = PREFIX.sub("", bare)
        elif token.kind is Kind.BRACKETS:
            bare = "".join(bare.split()).upper()
        pieces.append(_LOGICAL.get(bare, bare))
        if bare in _LOGICAL and token.kind is Kind.FUNCTION:
            # TRUE() means the same as TRUE: drops the brackets.
            next(word for word in words if word.kind is Kind.OPEN)
            next((word for word in words if word.kind is Kind.CLOSE), None)
    return "".join(pieces).replace("#:#", "#")


def skeletons(workbook: Workbook, ranges: Iterable[CellRange | None]) -> frozenset[str]:
    """The skeletons of the formulas in some ranges (:func:`skeleton`).

    Raises:
        WorkbookError: the ranges cannot be read.
    """
    skeletons_seen: set[str] = set()
    for area in ranges:
        if area is None:
            continue
        for cell in workbook.formula_cells(area)[:MAX_FORMULAS]:
            skeletons_seen.add(skeleton(cell.formula or ""))
    return frozenset(skeletons_seen)


def derivation_of_formulas(written: frozenset[str], gold: frozenset[str]) -> str:
    """The derivation of a program, from the formulas that it wrote; empty if it wrote none.

    Args:
        written: skeletons of the formulas in the program's answer.
        gold: skeletons of the gold's formulas.
    """
    if not written:
        return ""
    if written <= gold:
        return FORMULA_DERIVATION
    return "formulas " + " | ".join(sorted(written))


def derivation_of_program(submission: Submission) -> str:
    """The derivation of a program that writes values: its code without comments and layout.

    Programs with the same derivation are not independent of each other.
    """
    code = submission.code or ""
    try:
        return "program " + ast.dump(ast.parse(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "program " + code


def vote_line(sides: Sequence[Side]) -> str:
    """The vote in one line: ``2 (a, b) against 1 (formulas of the gold)``."""
    return " against ".join(f"{side.independent} ({', '.join(side.names)})" for side in sides)


FORMULAS = FORMULA_DERIVATION
SAME_VALUES = "gold of the case, whose values did not change"
CARRIED = "answer of the case, carried over"
OWN_SOURCES = frozenset({FORMULAS, SAME_VALUES, CARRIED})
"""Sources whose workbooks are golds that the judge itself makes."""

BY_HAND = "by hand"

MIN_AGREEING = 2
"""How many independent sources should agree on a gold. Sources are its formulas, each reference,
and the values that the annotator typed."""


@dataclass(frozen=True, slots=True)
class GoldSource:
    """The answer that one source gives.

    Attributes:
        name: :data:`FORMULAS`, or the name of a reference solution.
        problem: why it gives no answer, or empty.
        data: its workbook, if it has one.
        agrees: whether it agrees with the gold; None if it gives no answer.
        comparison: the cells where it disagrees with the gold, as the comparison records them.
        derivation: sources with the same derivation are not independent of each other.
    """

    name: str
    problem: str = ""
    data: bytes | None = None
    agrees: bool | None = None
    comparison: CaseComparison = field(default_factory=CaseComparison)
    derivation: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """An input with its gold.

    Attributes:
        input: the changed input workbook.
        gold: the gold workbook; None if no source gives an answer.
        sources: the answers of the sources; the source of the gold comes first.
        moved: cells of the answer whose value differs from the base case's gold.
        notes: lines for people.
        sides: the sources grouped by their answers; the side of the gold comes first.
        decided: the source whose side a person chose, or empty.
    """

    input: bytes
    gold: bytes | None
    sources: tuple[GoldSource, ...]
    moved: tuple[MovedCell, ...] = ()
    notes: tuple[str, ...] = ()
    sides: tuple[Side, ...] = ()
    decided: str = ""

    @property
    def problems(self) -> list[str]:
        """Why sources give no answer: lines with the name of a source and its problem."""
        return [f"{source.name}: {source.problem}" for source in self.sources if source.problem]

    @property
    def agreeing(self) -> tuple[str, ...]:
        """Names of the sources that agree with the gold."""
        return tuple(source.name for source in self.sources if source.agrees)

    @property
    def disagreeing(self) -> tuple[GoldSource, ...]:
        """The sources that disagree with the gold."""
        return tuple(source for source in self.sources if source.agrees is False)

    @property
    def independent(self) -> int:
        """How many independent sources agree with the gold."""
        return len({source.derivation or source.name for source in self.sources if source.agrees})

    @property
    def vote(self) -> str:
        """How the sources voted, in one line; empty if they agree."""
        return vote_line(self.sides) if len(self.sides) > 1 else ""

    @property
    def is_open(self) -> bool:
        """Whether the sources disagree and nobody has decided yet."""
        return len(self.sides) > 1 and not self.decided
