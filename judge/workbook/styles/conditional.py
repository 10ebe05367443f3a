"""Conditional formats as text: which rules apply to which cells, and whether two sets are the same.

A range is cut into rectangles so that the same rules apply to all cells of a rectangle. Two rules
that read the same in the first and in the last cell of a rectangle read the same in all of it, so
that text is compared once per rectangle, however many cells it has. If the text of rules differs,
:mod:`judge.compare.cells.conditional_formats` determines what they show.

Conditions are also written as formulas that do not depend on their cell. Source: ECMA-376 part 1,
18.3.1.10 and 18.18.12, and the formulas that [MS-XLSB] gives for the kinds of rules.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from judge.errors import WorkbookError
from judge.formulas.lexer import MAX_FORMULA_LENGTH, Kind, Token, outside_text, tokens
from judge.formulas.shift import shift_formula
from judge.workbook.address import Window, cell_name
from judge.workbook.sheets.sheet_tail import ConditionalRule
from judge.workbook.styles.style_sheet import (
    ConditionalStyle,
    StyleSheet,
    colours_agree,
    fills_agree,
    resolve_colour,
)

AGGREGATES = {"duplicateValues", "uniqueValues", "top10", "aboveAverage", "colorScale"}
"""Kinds of rules that depend on all cells of their range."""

UNDRAWN = {"dataBar", "iconSet"}
"""Kinds of rules that change no fill, font or number format."""

_COMPARISONS = {
    "equal": "{cell}=({0})",
    "notEqual": "{cell}<>({0})",
    "greaterThan": "{cell}>({0})",
    "greaterThanOrEqual": "{cell}>=({0})",
    "lessThan": "{cell}<({0})",
    "lessThanOrEqual": "{cell}<=({0})",
    # The two bounds may be in either order.
    "between": "OR(AND({cell}>=({0}),{cell}<=({1})),AND({cell}>=({1}),{cell}<=({0})))",
    "notBetween": "NOT(OR(AND({cell}>=({0}),{cell}<=({1})),AND({cell}>=({1}),{cell}<=({0}))))",
}

_TEXTS = {
    "containsText": "NOT(ISERROR(SEARCH({text},{cell})))",
    "notContainsText": "ISERROR(SEARCH({text},{cell}))",
    "beginsWith": "LEFT({cell},LEN({text}))={text}",
    "endsWith": "RIGHT({cell},LEN({text}))={text}",
    "containsBlanks": "LEN(TRIM({cell}))=0",
    "notContainsBlanks": "LEN(TRIM({cell}))>0",
    "containsErrors": "ISERROR({cell})",
    "notContainsErrors": "NOT(ISERROR({cell}))",
}


@dataclass(frozen=True)
class RuleFormula:
    """The condition of a rule as a formula, written for the first cell of the rule's ranges.

    Attributes:
        text: the formula without a leading ``=``; empty if there is none.
        row, column: the cell for which it is written.
        reason: why there is no formula.
    """

    text: str
    row: int
    column: int
    reason: str = ""

    def at(self, row: int, column: int) -> str | None:
        """The formula shifted to a cell; None if a reference would leave the sheet."""
        rows = row - self.row if self._depends_on_row else 0
        columns = column - self.column if self._depends_on_column else 0
        cached = self._shifted.get((rows, columns))
        if cached is None:
            cached = self._shifted[rows, columns] = shift_formula(self.text, rows, columns)
        return None if "#REF!" in cached and "#REF!" not in self.text else cached

    @cached_property
    def _shifted(self) -> dict[tuple[int, int], str]:
        return {}

    @cached_property
    def _depends_on_row(self) -> bool:
        return shift_formula(self.text, 1, 0) != self.text

    @cached_property
    def _depends_on_column(self) -> bool:
        return shift_formula(self.text, 0, 1) != self.text


def origin_of(rule: ConditionalRule) -> tuple[int, int]:
    """Row and column of the cell for which the formulas of a rule are written."""
    return (
        min(window.min_row for window in rule.windows),
        min(window.min_column for window in rule.windows),
    )


def rule_formula(rule: ConditionalRule) -> RuleFormula:
    """The condition of a rule that depends on one cell, as a formula."""
    row, column = origin_of(rule)
    cell = cell_name(row, column)
    terms = dict(rule.terms)
    formulas = [formula.strip().removeprefix("=") for formula in rule.formulas]
    text = ""
    if rule.kind == "expression" or (rule.kind in {*_TEXTS, "timePeriod"} and formulas):
        text = formulas[0] if formulas else ""
    elif rule.kind == "cellIs":
        shape = _COMPARISONS.get(terms.get("operator", ""), "")
        if shape and len(formulas) >= (2 if "{1}" in shape else 1):
            text = _filled(shape, cell, formulas)
    elif rule.kind in _TEXTS and ("text" in terms or "{text}" not in _TEXTS[rule.kind]):
        quoted = '"' + terms.get("text", "").replace('"', '""') + '"'
        text = _TEXTS[rule.kind].replace("{text}", quoted).replace("{cell}", cell)
    elif rule.kind == "timePeriod":
        return RuleFormula(
            "", row, column, "a condition depends on the day on which it is evaluated"
        )
    if not text:
        return RuleFormula("", row, column, f"a rule of the kind {rule.kind!r} without a condition")
    if len(text) > MAX_FORMULA_LENGTH:
        return RuleFormula("", row, column, "a condition longer than Excel takes")
    return RuleFormula(_without_place(text, cell), row, column)


def _filled(shape: str, cell: str, formulas: list[str]) -> str:
    pieces = {"{cell}": cell, "{0}": formulas[0], "{1}": formulas[-1]}
    return re.sub(r"\{\w+\}", lambda match: pieces[match[0]], shape)


def _without_place(formula: str, cell: str) -> str:
    """Turns ``ROW()`` into ``ROW(B2)``, since the formula is computed in a different cell."""
    words = tokens(formula)
    pieces = []
    asks = filled = False
    for index, token in enumerate(words):
        if token.kind is Kind.SPACE:
            pieces.append("" if filled else token.text)
            continue
        pieces.append(token.text)
        filled = token.kind is Kind.OPEN and asks and _closes(words[index + 1 : index + 3])
        if filled:
            pieces.append(cell)
        asks = token.kind is Kind.FUNCTION and token.text.upper() in ("ROW", "COLUMN")
    return "".join(pieces)


def _closes(words: Sequence[Token]) -> bool:
    kinds = [token.kind for token in words if token.kind is not Kind.SPACE]
    return kinds[:1] == [Kind.CLOSE]


_IDLE = re.compile(r"[\s$]+")


def canonical(formula: str) -> str:
    """Upper-cases a condition; drops spaces and dollar signs, which do not matter in one cell."""
    return outside_text(formula, lambda text: _IDLE.sub("", text).upper())


def canonical_reader(
    rule: ConditionalRule, on_read: Callable[[], None]
) -> Callable[[int, int], tuple[str, ...]]:
    """Shifts the formulas of a rule to a cell, in order to compare them as text.

    Args:
        rule: the rule.
        on_read: called before the text of the rule is read.
    """
    top, left = origin_of(rule)
    cached: dict[tuple[int, int], tuple[str, ...]] = {}

    def read(row: int, column: int) -> tuple[str, ...]:
        offset = (row - top, column - left)
        if offset not in cached:
            on_read()
            cached[offset] = tuple(
                text if len(text) > MAX_FORMULA_LENGTH else canonical(shift_formula(text, *offset))
                for text in rule.formulas
            )
        return cached[offset]

    return read


CONDITIONAL_ATTRIBUTES = ("fill", "font_color", "bold", "italic", "underline", "number_format")
"""Style attributes that conditional formats can change."""

_MAX_WORK = 3_000_000
_READING_WORK = 20
_CHARS_PER_WORK = 1


class RuleWork:
    """Limits the cost of comparing the rules of a range, which a hostile file could make huge."""

    def __init__(self) -> None:
        self._left = _MAX_WORK

    def take(self, count: int) -> None:
        """Counts steps.

        Raises:
            WorkbookError: there are too many steps.
        """
        self._left -= count
        if self._left < 0:
            raise WorkbookError("the range holds too many conditional formats to compare")


class StyledRule:
    """A rule of a conditional format with its look.

    Args:
        rule: the rule.
        styles: the workbook's looks.
        work: counts the steps.
    """

    def __init__(self, rule: ConditionalRule, styles: StyleSheet, work: RuleWork) -> None:
        self.rule = rule
        self.look = ConditionalStyle()
        if rule.style is not None and rule.style < len(styles.conditional):
            self.look = styles.conditional[rule.style]
        self._read = canonical_reader(rule, self._count_reading)
        self._work = work
        self._cost = _READING_WORK + sum(map(len, rule.formulas)) // _CHARS_PER_WORK
        self._formula: RuleFormula | None = None
        self._drawn = tuple(
            (name, resolve_colour(dict(attributes), styles.palette))
            if name == "color"
            else (name, attributes)
            for name, attributes in rule.drawn
        )

    def _count_reading(self) -> None:
        self._work.take(self._cost)

    @property
    def is_scale(self) -> bool:
        """Whether it is a colour scale."""
        return self.rule.kind == "colorScale"

    @property
    def formula(self) -> RuleFormula:
        """Its condition as a formula."""
        if self._formula is None:
            self._formula = rule_formula(self.rule)
        return self._formula

    def sets(self, name: str) -> bool:
        """Whether it can change an attribute."""
        return getattr(self.look, name) is not None or (self.is_scale and name == "fill")

    def condition(self, row: int, column: int, *, with_ranges: bool) -> tuple[object, ...]:
        """The condition as text, shifted to a cell.

        Args:
            row: its row.
            column: its column.
            with_ranges: whether the text includes the ranges of a rule that depends on all their
                cells.
        """
        self._work.take(1)
        rule = self.rule
        traits: tuple[object, ...] = (rule.kind, rule.terms, self._drawn, self._read(row, column))
        if rule.kind in AGGREGATES and (with_ranges or self.is_scale):
            traits += (tuple(sorted(rule.windows)),)
        return traits


def effective_rules(
    rules: Iterable[ConditionalRule], styles: StyleSheet, names: Sequence[str], work: RuleWork
) -> list[StyledRule]:
    """The rules that matter for some attributes, in order; empty if no rule sets one of these."""
    styled = [StyledRule(rule, styles, work) for rule in rules if rule.windows]
    deciding = [rule for rule in styled if rule.rule.stops or any(map(rule.sets, names))]
    if not any(rule.sets(name) for rule in deciding for name in names):
        return []
    return sorted(deciding, key=lambda rule: rule.rule.priority)


# -- rectangles -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Segment:
    """A rectangle in which the same rules apply to every cell.

    Attributes:
        window: the rectangle, as the gold has it.
        rows_down: by how many rows the output has the cells lower.
        gold, output: the rules of both sides, in their order.
    """

    window: Window
    rows_down: int
    gold: tuple[StyledRule, ...]
    output: tuple[StyledRule, ...]


_Piece = tuple[Window, int, int]
"""A rectangle of a rule: its window, its side (0 is the gold), and the rule's index on that
side."""


def segments(
    window: Window,
    gold: Sequence[StyledRule],
    output: Sequence[StyledRule],
    moved_rows: Mapping[int, int],
    work: RuleWork,
) -> Iterator[Segment]:
    """The rectangles of a window to which at least one rule applies.

    Args:
        window: the rectangle that is compared.
        gold: the rules of the gold.
        output: the rules of the output.
        moved_rows: row of the gold -> row in which the output has it, if rows were moved.
        work: counts the steps.

    Raises:
        WorkbookError: there are too many rules.
    """
    sides = (gold, output)
    pieces: list[_Piece] = [
        (window, side, index)
        for side, rules in enumerate(sides)
        for index, rule in enumerate(rules)
        for window in rule.rule.windows
    ]
    bands = (
        _moved_bands(window, pieces, moved_rows, work)
        if moved_rows
        else _bands(window, pieces, work)
    )
    for first, last, down, active in bands:
        for left, right, members in _columns(window, active, work):
            styled = [
                tuple(
                    sides[side][index] for index in sorted({p for _, s, p in members if s == side})
                )
                for side in (0, 1)
            ]
            yield Segment(Window(first, left, last, right), down, styled[0], styled[1])


def _bands(
    window: Window, pieces: Sequence[_Piece], work: RuleWork
) -> Iterator[tuple[int, int, int, list[_Piece]]]:
    """Runs of rows with the same rectangles."""
    begins: dict[int, list[int]] = defaultdict(list)
    ends: dict[int, list[int]] = defaultdict(list)
    for index, (area, _, _) in enumerate(pieces):
        first, last = max(area.min_row, window.min_row), min(area.max_row, window.max_row)
        if first <= last and area.min_column <= window.max_column:
            begins[first].append(index)
            ends[last + 1].append(index)
    active: dict[int, None] = {}
    cuts = sorted(begins.keys() | ends.keys())
    for row, following in pairwise(cuts):
        for index in ends.get(row, ()):
            del active[index]
        active.update(dict.fromkeys(begins.get(row, ())))
        work.take(1 + len(active))
        if active:
            yield row, following - 1, 0, [pieces[index] for index in active]


def _moved_bands(
    window: Window, pieces: Sequence[_Piece], moved_rows: Mapping[int, int], work: RuleWork
) -> Iterator[tuple[int, int, int, list[_Piece]]]:
    """Treats each row separately, with the rules at its position in the output."""
    for row in range(window.min_row, window.max_row + 1):
        work.take(1 + len(pieces))
        position_pair = (row, moved_rows.get(row, row))
        active = [
            (window, side, index)
            for window, side, index in pieces
            if window.min_row <= position_pair[side] <= window.max_row
        ]
        if active:
            yield row, row, position_pair[1] - row, active


def _columns(
    window: Window, active: Sequence[_Piece], work: RuleWork
) -> Iterator[tuple[int, int, list[_Piece]]]:
    cuts = {window.min_column, window.max_column + 1}
    for area, _, _ in active:
        cuts |= {area.min_column, area.max_column + 1}
    inside = sorted(cut for cut in cuts if window.min_column <= cut <= window.max_column + 1)
    for left, following in pairwise(inside):
        work.take(1 + len(active))
        members = [
            member for member in active if member[0].min_column <= left <= member[0].max_column
        ]
        if members:
            yield left, following - 1, members


# -- text -----------------------------------------------------------------------------------------


def same_effective_rules(name: str, segment: Segment) -> bool:
    """Whether the rules that matter for an attribute are the same, and in the same order."""
    first = [rule for rule in segment.gold if rule.sets(name) or rule.rule.stops]
    second = [rule for rule in segment.output if rule.sets(name) or rule.rule.stops]
    return len(first) == len(second) and all(
        left.rule.stops == right.rule.stops and _same(name, left, right, segment, with_ranges=True)
        for left, right in zip(first, second, strict=True)
    )


def same_rules(name: str, segment: Segment) -> bool:
    """Whether both sides have the same rules for an attribute, in any order.

    This is used if the result of the rules cannot be determined.
    """
    first = [rule for rule in segment.gold if rule.sets(name)]
    second = [rule for rule in segment.output if rule.sets(name)]
    if len(first) != len(second):
        return False
    unmatched: dict[object, list[object]] = defaultdict(list)
    for rule in second:
        condition = _conditions(rule, segment, segment.rows_down, with_ranges=False)
        unmatched[condition].append(getattr(rule.look, name))
    for rule in first:
        look = getattr(rule.look, name)
        looks = unmatched[_conditions(rule, segment, 0, with_ranges=False)]
        index = next((at for at, other in enumerate(looks) if looks_agree(name, look, other)), None)
        if index is None:
            return False
        del looks[index]
    return True


def _same(
    name: str, first: StyledRule, second: StyledRule, segment: Segment, *, with_ranges: bool
) -> bool:
    return looks_agree(name, getattr(first.look, name), getattr(second.look, name)) and (
        _conditions(first, segment, 0, with_ranges=with_ranges)
        == _conditions(second, segment, segment.rows_down, with_ranges=with_ranges)
    )


def _conditions(
    rule: StyledRule, segment: Segment, rows_down: int, *, with_ranges: bool
) -> tuple[object, object]:
    """The condition of a rule in the first and in the last cell of a rectangle."""
    window = segment.window
    return (
        rule.condition(window.min_row + rows_down, window.min_column, with_ranges=with_ranges),
        rule.condition(window.max_row + rows_down, window.max_column, with_ranges=with_ranges),
    )


def looks_agree(name: str, first: object, second: object) -> bool:
    """Whether two rules set an attribute to the same value; None if a rule does not set it."""
    if first is None or second is None:
        return first is second
    if name == "fill":
        return fills_agree(first, second)  # type: ignore[arg-type]
    if name == "font_color":
        return colours_agree(first, second)  # type: ignore[arg-type]
    return first == second
