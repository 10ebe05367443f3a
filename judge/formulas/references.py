"""Which rectangles the text of a formula names."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from judge.formulas.lexer import is_too_long
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
        """How many cells it has."""
        return (self.max_row - self.min_row + 1) * (self.max_column - self.min_column + 1)


_REFERENCE = re.compile(
    r"""
    "(?:[^"]++|"")*+"
  | (?:(?P<sheet>'(?:[^']++|'')*+'|(?:\[\d++\])?[^\W\d][\w.]*+)!)?
    (?: \$?(?P<c1>[A-Za-z]{1,3})\$?(?P<r1>\d{1,7})
        (?::\$?(?P<c2>[A-Za-z]{1,3})\$?(?P<r2>\d{1,7}))?(?![\w(.!])
      | \$?(?P<cc1>[A-Za-z]{1,3}):\$?(?P<cc2>[A-Za-z]{1,3})(?![\w(.!])
      | \$?(?P<rr1>\d{1,7}):\$?(?P<rr2>\d{1,7})(?![\w(.!])
    )
  | [^\W\d][\w.]*+
  | '(?:[^']++|'')*+'
    """,
    re.VERBOSE,
)


def references(formula: str) -> tuple[Reference, ...]:
    """The rectangles that a formula names outright; whole columns and rows are bounded.

    A formula that is too long names none.
    """
    return tuple(read_formula(formula)[1])


def read_formula(formula: str) -> tuple[FormulaTraits, Sequence[Reference]]:
    """What a formula's text says, and the rectangles that it names outright.

    Formulas of a column differ only in their row numbers: what they have in common is read once.

    Args:
        formula: with or without its leading ``=``; never rejected, however broken.
    """
    if is_too_long(formula):
        return NEVER_READ, ()
    parts = _ROWS.split(formula)
    form = _form(tuple(parts[::2]))
    rows = parts[1::2]
    if form.places is None or any(len(row) > _ROW_DIGITS for row in rows):
        return form.traits, tuple(_references(formula))
    found = []
    for place in form.places:
        first, last = place.first, place.last
        low = int(rows[first]) if place.moves else first
        high = int(rows[last]) if place.moves else last
        if low > high:
            low, high = high, low
        found.append(Reference(place.sheet, low, place.min_column, high, place.max_column))
    return form.traits, found


class _Place(NamedTuple):
    """A rectangle in a form: its rows, or where the row numbers are among those of a formula."""

    sheet: str | None
    min_column: int
    max_column: int
    first: int
    last: int
    moves: bool


class _Form(NamedTuple):
    """What formulas that differ only in row numbers have in common.

    Attributes:
        traits: what their text says.
        places: the rectangles that they name; None if their text has to be searched each time.
    """

    traits: FormulaTraits
    places: tuple[_Place, ...] | None


_ROWS = re.compile(r"(?<=[A-Za-z$])(\d++)(?![\w.(!])")
"""What may be a row number, outside names of sheets."""

_ROW_DIGITS = 7


@functools.lru_cache(maxsize=4096)
def _form(parts: tuple[str, ...]) -> _Form:
    """Reads a formula whose row numbers are left out; any others stand for them."""
    index_at: dict[int, int] = {}
    text = parts[0]
    for index, part in enumerate(parts[1:]):
        index_at[len(text)] = index
        text += "1" + part
    said = traits(text)
    places: list[_Place] = []
    for match in _REFERENCE.finditer(text):
        if match["sheet"] and any(at in index_at for at in range(*match.span("sheet"))):
            return _Form(said, None)
        if match["c1"]:
            first = index_at.get(match.start("r1"))
            last = index_at.get(match.start("r2")) if match["r2"] else first
            if first is None or last is None:
                return _Form(said, None)
            low, high = sorted(map(column_number, (match["c1"], match["c2"] or match["c1"])))
            places.append(_Place(_sheet_of(match), low, high, first, last, moves=True))
        elif match["cc1"] or match["rr1"]:
            if any(at in index_at for at in range(*match.span())):
                return _Form(said, None)
            whole = _reference(match)
            if whole is not None:
                places.append(
                    _Place(
                        whole.sheet,
                        whole.min_column,
                        whole.max_column,
                        whole.min_row,
                        whole.max_row,
                        moves=False,
                    )
                )
    return _Form(said, tuple(places))


def _references(formula: str) -> list[Reference]:
    """The rectangles that a formula names, searched for in its own text."""
    found = map(_reference, _REFERENCE.finditer(formula))
    return [each for each in found if each is not None]


def _reference(match: re.Match[str]) -> Reference | None:
    if match["c1"]:
        columns = (match["c1"], match["c2"] or match["c1"])
        rows = (int(match["r1"]), int(match["r2"] or match["r1"]))
    elif match["cc1"]:
        columns = (match["cc1"], match["cc2"])
        rows = (1, MAX_ROW)
    elif match["rr1"]:
        columns = ("A", "XFD")
        rows = (int(match["rr1"]), int(match["rr2"]))
    else:
        return None
    first, last = sorted(map(column_number, columns))
    return Reference(_sheet_of(match), min(rows), first, max(rows), last)


def _sheet_of(match: re.Match[str]) -> str | None:
    sheet = match["sheet"]
    if sheet is not None and sheet.startswith("'"):
        return sheet[1:-1].replace("''", "'")
    return sheet


_PLAIN = r"""(?:(?:'(?:[^']++|'')*+'|[^\W\d][\w.]*+)!)?+
    (?:\$?[A-Za-z]{1,3}\$?\d{1,7}(?::\$?[A-Za-z]{1,3}\$?\d{1,7})?|\$?[A-Za-z]{1,3}:\$?[A-Za-z]{1,3})"""

_EXTENDING_CALL = re.compile(r"\b(?:SUMIF|AVERAGEIF|LOOKUP)\s*\(", re.IGNORECASE)
_PLAIN_CALL = re.compile(
    rf"""\b(?:SUMIF|AVERAGEIF)\s*\(\s*(?P<cells>{_PLAIN})\s*
    ,(?:[^(),;"]++|"(?:[^"]++|"")*+")*+(?:,\s*(?P<sums>{_PLAIN})\s*)?\)""",
    re.VERBOSE | re.IGNORECASE,
)
"""A sum by a criterion over a range that is written out, with sums from one that is as well."""

_PARTS_OF_RANGES = frozenset(("INDEX", "XLOOKUP", "TAKE", "DROP", "TRIMRANGE"))
"""Functions that give a part of a range as a reference."""


def readable(formula: str, said: FormulaTraits, named: Sequence[Reference]) -> Sequence[Reference]:
    """The rectangles that hold everything that a formula can read.

    Where a function extends a range, these are at times more than it reads. Of a formula that is
    ``unbounded`` or ``opaque``, what it can read is unknown.

    Args:
        formula: its text.
        said: what its text says.
        named: the rectangles that it names.
    """
    if not said.reaches_further or not named:
        return named
    boxes = _boxes(named) if said.spans else []
    calls = list(_PLAIN_CALL.finditer(formula))
    if len(calls) == len(_EXTENDING_CALL.findall(formula)):
        return [*named, *boxes, *(each for call in calls for each in _sums(call))]
    high = max(each.max_row - each.min_row for each in named)
    wide = max(each.max_column - each.min_column for each in named)
    inside = said.spans or bool(said.functions & _PARTS_OF_RANGES)
    grown = [_grown(each, high, wide, inside=inside) for each in named]
    return [*grown, *_boxes(grown)] if said.spans else grown


def _sums(call: re.Match[str]) -> list[Reference]:
    """What a sum range is extended to, if its shape is not that of the range that is searched."""
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


def _grown(each: Reference, high: int, wide: int, *, inside: bool) -> Reference:
    """A rectangle and what follows it, as far as another one that starts in it may reach."""
    row = each.max_row if inside else each.min_row
    column = each.max_column if inside else each.min_column
    return Reference(
        each.sheet,
        each.min_row,
        each.min_column,
        min(max(each.max_row, row + high), MAX_ROW),
        min(max(each.max_column, column + wide), MAX_COLUMN),
    )


def _boxes(named: Sequence[Reference]) -> list[Reference]:
    """Of each sheet the smallest rectangle around those that are named."""
    return [
        Reference(
            sheet,
            min(each.min_row for each in named if each.sheet == sheet),
            min(each.min_column for each in named if each.sheet == sheet),
            max(each.max_row for each in named if each.sheet == sheet),
            max(each.max_column for each in named if each.sheet == sheet),
        )
        for sheet in dict.fromkeys(each.sheet for each in named)
    ]
