"""Shared formulas: the text of a formula as it reads in another cell. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from judge.formulas.lexer import is_too_long
from judge.workbook.address import MAX_COLUMN, MAX_ROW, column_letters, column_number

_WORD = r"A-Za-z0-9_.$?\\\u0080-\U0010ffff"
_Move = Callable[[str, int], "str | None"]
_PART = re.compile("[A-Za-z]+|[0-9]+")
_CELL = re.compile(r"(\$?)([A-Za-z]+)(\$?)([0-9]+)")


def shift_formula(formula: str, rows: int, columns: int) -> str:
    """The formula with its relative references moved.

    A word with a column or a row beyond a worksheet is not a reference: ``YTD2020`` is a name.

    Args:
        formula: the formula, with or without its leading ``=``.
        rows: by how many rows the references move down.
        columns: by how many columns they move to the right.

    Returns:
        The formula; a reference that would leave the worksheet becomes ``#REF!``. A string that is
        too long for a formula stays as it is.
    """
    if (not rows and not columns) or is_too_long(formula):
        return formula

    def moved(match: re.Match[str]) -> str:
        if _is_beyond(match):
            return match[0]
        if (text := match["cell"]) is not None:
            return _move_cell(text, rows, columns)
        if (text := match["columns"]) is not None:
            return _move_pair(text, columns, _move_column)
        if (text := match["rows"]) is not None:
            return _move_pair(text, rows, _move_row)
        return match[0]

    return _token().sub(moved, formula)


def formula_shape(formula: str) -> str:
    """The formula with every reference replaced by ``#``, in capitals and without spaces.

    It stays the same if rows or columns are inserted or deleted, or a sheet is renamed. Text in
    quotes is kept as it is; so is a string that is too long for a formula.

    Args:
        formula: the formula, with or without its leading ``=``.
    """
    if is_too_long(formula):
        return formula
    pieces: list[str] = []
    end = 0
    for match in _token().finditer(formula):
        pieces += (_plain(formula[end : match.start()]), _shape_of(match))
        end = match.end()
    pieces.append(_plain(formula[end:]))
    # An area and a single cell are the same reference before and after a row is deleted.
    return "".join(pieces).replace("#:#", "#")


def _plain(text: str) -> str:
    return "".join(text.upper().split())


def _shape_of(match: re.Match[str]) -> str:
    text = match[0]
    if match.string[max(0, match.start() - 1) : match.start()] == "#":
        return text  # the rest of an error, as in #REF!
    if match["sheet"] is not None or (text.startswith("'") and text.endswith("!")):
        return ""
    if (match["cell"] or match["columns"] or match["rows"]) and not _is_beyond(match):
        return "#"
    return text


def _is_beyond(match: re.Match[str]) -> bool:
    """Whether what looks like a reference names a column or a row that no worksheet has."""
    if match["cell"] is None and match["columns"] is None and match["rows"] is None:
        return False
    return any(
        column_number(part) > MAX_COLUMN if part.isalpha() else int(part) > MAX_ROW
        for part in _PART.findall(match[0])
    )


@functools.cache
def _token() -> re.Pattern[str]:
    """What a formula can contain; compiled late, as that takes a third of loading the reader."""
    return re.compile(
        rf"""
        "(?:[^"]++|"")*+"                                  # text
        | '(?:[^']++|'')*+'!?                              # quoted sheet
        | \[(?:[^\[\]]++|\[[^\[\]]*+\])*+\]                # table column, external book
        | (?<![{_WORD}!]) (?P<sheet>[{_WORD}]++(?::[{_WORD}]++)?+)!   # plain sheet, or several
        | (?<![{_WORD}]) (?P<columns>\$?[A-Za-z]{{1,3}}:\$?[A-Za-z]{{1,3}}) (?![{_WORD}(!])
        | (?<![{_WORD}]) (?P<rows>\$?[0-9]{{1,7}}:\$?[0-9]{{1,7}}) (?![{_WORD}(!])
        | (?<![{_WORD}]) (?P<cell>\$?[A-Za-z]{{1,3}}\$?[1-9][0-9]{{0,6}}) (?![{_WORD}(!])
        """,
        re.VERBOSE,
    )


def _move_cell(text: str, rows: int, columns: int) -> str:
    match = _CELL.fullmatch(text)
    assert match is not None
    column = _move_column(match[1] + match[2], columns)
    row = _move_row(match[3] + match[4], rows)
    return "#REF!" if column is None or row is None else column + row


def _move_pair(text: str, by: int, move: _Move) -> str:
    first, _, last = text.partition(":")
    start, end = move(first, by), move(last, by)
    return "#REF!" if start is None or end is None else f"{start}:{end}"


def _move_column(text: str, by: int) -> str | None:
    if text.startswith("$"):
        return text
    number = column_number(text) + by
    return column_letters(number) if 1 <= number <= MAX_COLUMN else None


def _move_row(text: str, by: int) -> str | None:
    if text.startswith("$"):
        return text
    number = int(text) + by
    return str(number) if 1 <= number <= MAX_ROW else None
