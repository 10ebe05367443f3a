"""Finds the rectangles that the text of a formula names, and their positions in the text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from judge.formulas.lexer import Kind, Token, is_range, is_too_long, sheet_of, tokens
from judge.formulas.traits import NEVER_READ, FormulaTraits, traits
from judge.workbook.address import MAX_COLUMN, MAX_ROW, column_number


class Reference(NamedTuple):
    """A rectangle that a formula names; ``None`` as ``sheet`` means the formula's own sheet."""

    sheet: str | None
    min_row: int
    min_column: int
    max_row: int
    max_column: int

    @property
    def size(self) -> int:
        """How many cells the rectangle has."""
        return (self.max_row - self.min_row + 1) * (self.max_column - self.min_column + 1)


class Area(NamedTuple):
    """A rectangle as a formula writes it.

    Attributes:
        sheet: the token before it that names its sheet; None if there is none.
        first: its first corner, or whole columns or rows with both ends.
        last: its last corner; the same as ``first`` for a single cell, columns or rows.
    """

    sheet: Token | None
    first: Token
    last: Token

    @property
    def start(self) -> int:
        """The position of the area's first character in the formula."""
        return self.first.start if self.sheet is None else self.sheet.start

    @property
    def end(self) -> int:
        """The position after the area's last character."""
        return self.last.end


_AREAS = (Kind.CELL, Kind.COLUMNS, Kind.ROWS)


def areas(formula: str) -> Iterator[Area]:
    """The rectangles that a formula contains, in order, including those outside of a worksheet."""
    words = tokens(formula)
    index = 0
    while index < len(words):
        first = last = words[index]
        if first.kind in _AREAS:
            sheet = words[index - 1] if index and words[index - 1].kind is Kind.SHEET else None
            if is_range(words, index):
                index += 2
                last = words[index]
            yield Area(sheet, first, last)
        index += 1


def area_text(formula: str, area: Area) -> str:
    """The text of an area in a formula, with its sheet."""
    return formula[area.start : area.end]


def with_areas(formula: str, change: Callable[[Area], str]) -> str:
    """Replaces each rectangle in a formula, together with its sheet."""
    pieces: list[str] = []
    copied = 0
    for area in areas(formula):
        pieces += (formula[copied : area.start], change(area))
        copied = area.end
    return "".join((*pieces, formula[copied:]))


def corner(cell: Token) -> tuple[str, str]:
    """The column of a cell as it is written, with every dollar sign, and the digits of its row."""
    column = cell.text.rstrip("0123456789")
    return column, cell.text[len(column) :]


def references(formula: str) -> tuple[Reference, ...]:
    """The rectangles that a formula names explicitly; whole columns and rows are bounded.

    A formula that is too long has none.
    """
    return read_formula(formula)[1]


def read_formula(formula: str) -> tuple[FormulaTraits, tuple[Reference, ...]]:
    """The traits of a formula, and the rectangles that it names explicitly.

    The formulas of a column often differ only in row numbers; their common part is read once.

    Args:
        formula: with or without its leading ``=``; never rejected, however broken.
    """
    form, references = with_form(formula)
    return form.traits, references


class _FormRectangle(NamedTuple):
    """A rectangle of a form; its rows are constant, or indices into a formula's row numbers."""

    sheet: str | None
    min_column: int
    max_column: int
    first: int
    last: int
    moves: bool


class FormulaForm(NamedTuple):
    """The common part of formulas that differ only in row numbers.

    Attributes:
        text: a formula of this form, in which every row number is another one.
        traits: the traits of the formula.
        rectangles: the rectangles that it names; None if its text has to be searched each time.
        rows_only: whether formulas of this form differ only in the rows of these rectangles.
        unread: the indexes of the rectangles of which only the position or the size is used, as in
            ``ROWS(A$1:A5)``. Such a formula may be in the rectangle without being circular.
    """

    text: str
    traits: FormulaTraits
    rectangles: tuple[_FormRectangle, ...] | None
    rows_only: bool = False
    unread: frozenset[int] = frozenset()


_TOO_LONG = FormulaForm("", NEVER_READ, None)

_ROWS = re.compile(r"(\d(?<=[A-Za-z$]\d)\d*+)(?![\w.(!])")
"""Text outside sheet names that may be a row number. An expression that begins with a digit is
found faster than one that begins with the character before the digit.
"""

_ROW_DIGITS = 7


@functools.lru_cache(maxsize=16_384)
def with_form(formula: str) -> tuple[FormulaForm, tuple[Reference, ...]]:
    """The form of a formula, and the rectangles that it names explicitly."""
    if is_too_long(formula):
        return _TOO_LONG, ()
    parts = _ROWS.split(formula)
    form = _form(tuple(parts[::2]))
    rows = parts[1::2]
    if form.rectangles is None or max(map(len, rows), default=0) > _ROW_DIGITS:
        return form._replace(rows_only=False), tuple(_references(formula))
    numbers = [*map(int, rows)]
    references = []
    for sheet, left, right, first, last, moves in form.rectangles:
        low, high = (numbers[first], numbers[last]) if moves else (first, last)
        if low > high:
            low, high = high, low
        # Without a call of the class, since this is done for every reference of a workbook.
        references.append(tuple.__new__(Reference, (sheet, low, left, high, right)))
    return form, tuple(references)


@functools.lru_cache(maxsize=4096)
def _form(parts: tuple[str, ...]) -> FormulaForm:
    """Reads the common part of formulas, with invented row numbers in the gaps."""
    index_at: dict[int, int] = {}
    text = parts[0]
    for index, part in enumerate(parts[1:]):
        index_at[len(text)] = index
        text += f"{index + 1}{part}"
    formula_traits = traits(text)
    unread = _unread(text) if formula_traits.functions & _POSITIONS else frozenset()
    rectangles: list[_FormRectangle] = []
    for area in areas(text):
        if area.sheet is not None and any(
            at in index_at for at in range(area.sheet.start, area.sheet.end)
        ):
            return FormulaForm(text, formula_traits, None, unread=unread)
        if area.first.kind is Kind.CELL:
            first, last = (
                index_at.get(cell.end - len(corner(cell)[1])) for cell in (area.first, area.last)
            )
            if first is None or last is None:
                return FormulaForm(text, formula_traits, None, unread=unread)
            named = reference(area)
            rectangles.append(
                _FormRectangle(
                    named.sheet, named.min_column, named.max_column, first, last, moves=True
                )
            )
        else:
            if any(at in index_at for at in range(area.first.start, area.first.end)):
                return FormulaForm(text, formula_traits, None, unread=unread)
            sheet, low, left, high, right = reference(area)
            rectangles.append(_FormRectangle(sheet, left, right, low, high, moves=False))
    used = {
        index
        for rectangle in rectangles
        if rectangle.moves
        for index in (rectangle.first, rectangle.last)
    }
    rows_only = len(used) == len(index_at)
    return FormulaForm(text, formula_traits, tuple(rectangles), rows_only, unread)


_POSITIONS = frozenset(("ROW", "ROWS", "COLUMN", "COLUMNS"))
"""Functions that use the position or the size of a reference, and read no cell of it."""


def _unread(formula: str) -> frozenset[int]:
    """The indexes of the areas that are the whole argument of a function of positions."""
    words = [word for word in tokens(formula) if word.kind is not Kind.SPACE]
    starts = {word.start: index for index, word in enumerate(words)}
    arguments = set()
    for number, area in enumerate(areas(formula)):
        first, last = starts[area.start], starts[area.last.start]
        around = [word.kind for word in (*words[first - 2 : first], *words[last + 1 : last + 2])]
        if (
            around == [Kind.FUNCTION, Kind.OPEN, Kind.CLOSE]
            and words[first - 2].text.upper() in _POSITIONS
        ):
            arguments.add(number)
    return frozenset(arguments)


def _references(formula: str) -> list[Reference]:
    """Searches the text of a formula for the rectangles that it names."""
    return list(map(reference, areas(formula)))


def reference(area: Area) -> Reference:
    """The rectangle that an area means; its corners may be written in any order."""
    sheet = None if area.sheet is None else sheet_of(area.sheet)
    ends = area.first.text.replace("$", "").split(":")
    if area.first.kind is Kind.COLUMNS:
        left, right = sorted(map(column_number, ends))
        return Reference(sheet, 1, left, MAX_ROW, right)
    if area.first.kind is Kind.ROWS:
        low, high = sorted(map(int, ends))
        return Reference(sheet, low, 1, high, MAX_COLUMN)
    corners = [corner(cell) for cell in (area.first, area.last)]
    low, high = sorted(int(row) for _, row in corners)
    left, right = sorted(column_number(column.replace("$", "")) for column, _ in corners)
    return Reference(sheet, low, left, high, right)


_PLAIN = r"""(?:(?:'(?:[^']++|'')*+'|[^\W\d][\w.]*+)!)?+
    (?:\$?[A-Za-z]{1,3}\$?\d{1,7}(?::\$?[A-Za-z]{1,3}\$?\d{1,7})?|\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3})"""

_EXTENDING_CALL = re.compile(r"\b(?:SUMIF|AVERAGEIF|LOOKUP)\s*\(", re.IGNORECASE)
_PLAIN_CALL = re.compile(
    rf"""\b(?:SUMIF|AVERAGEIF)\s*\(\s*(?P<cells>{_PLAIN})\s*
    ,(?:[^(),;"]++|"(?:[^"]++|"")*+")*+(?:,\s*(?P<sums>{_PLAIN})\s*)?\)""",
    re.VERBOSE | re.IGNORECASE,
)
"""A sum by a criterion, in which both the range of the criterion and the sum range are explicit."""

_PARTS_OF_RANGES = frozenset(("INDEX", "XLOOKUP", "TAKE", "DROP", "TRIMRANGE"))
"""Functions that return part of a range as a reference."""


def readable(
    formula: str, formula_traits: FormulaTraits, named: Sequence[Reference]
) -> Sequence[Reference]:
    """The rectangles that contain everything that a formula can read.

    If a function extends a range, they may hold more than the formula reads. For an ``unbounded``
    or ``opaque`` formula, nobody knows what else it reads.

    Args:
        formula: its text.
        formula_traits: its traits.
        named: the rectangles that it names.
    """
    if not formula_traits.reaches_further or not named:
        return named
    boxes = _boxes(named) if formula_traits.spans else []
    calls = list(_PLAIN_CALL.finditer(formula))
    if len(calls) == len(_EXTENDING_CALL.findall(formula)):
        return [*named, *boxes, *(reference for call in calls for reference in _sums(call))]
    high = max(reference.max_row - reference.min_row for reference in named)
    wide = max(reference.max_column - reference.min_column for reference in named)
    inside = formula_traits.spans or bool(formula_traits.functions & _PARTS_OF_RANGES)
    grown = [_grown(reference, high, wide, inside=inside) for reference in named]
    return [*grown, *_boxes(grown)] if formula_traits.spans else grown


def _sums(call: re.Match[str]) -> list[Reference]:
    """The extended sum range, if its shape differs from that of the range with the criterion."""
    if call["sums"] is None:
        return []
    (cells, *_), (sums, *_) = references(call["cells"]), references(call["sums"])
    grown = Reference(
        sums.sheet,
        sums.min_row,
        sums.min_column,
        min(sums.min_row + cells.max_row - cells.min_row, MAX_ROW),
        min(sums.min_column + cells.max_column - cells.min_column, MAX_COLUMN),
    )
    return [] if grown == sums else [grown]


def _grown(reference: Reference, high: int, wide: int, *, inside: bool) -> Reference:
    """A rectangle, enlarged to contain every rectangle of the given size that starts in it."""
    row = reference.max_row if inside else reference.min_row
    column = reference.max_column if inside else reference.min_column
    return Reference(
        reference.sheet,
        reference.min_row,
        reference.min_column,
        min(max(reference.max_row, row + high), MAX_ROW),
        min(max(reference.max_column, column + wide), MAX_COLUMN),
    )


def _boxes(named: Sequence[Reference]) -> list[Reference]:
    """For each sheet, the smallest rectangle around all named rectangles."""
    return [
        Reference(
            sheet,
            min(reference.min_row for reference in named if reference.sheet == sheet),
            min(reference.min_column for reference in named if reference.sheet == sheet),
            max(reference.max_row for reference in named if reference.sheet == sheet),
            max(reference.max_column for reference in named if reference.sheet == sheet),
        )
        for sheet in dict.fromkeys(reference.sheet for reference in named)
    ]
