"""Rewrites a formula as it reads in another cell, and reduces it to its shape. Pure."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from judge.formulas.lexer import Kind, Token, is_too_long, tokens
from judge.workbook.address import MAX_COLUMN, MAX_ROW, column_letters, column_number, folded

_END = re.compile(r"\$?(?:[A-Za-z]+|[0-9]+)")


def shift_formula(formula: str, rows: int, columns: int) -> str:
    """Moves the relative references of a formula.

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

    pieces: list[str] = []
    for piece in _with_columns_moved(formula, columns):
        if isinstance(piece, str):
            pieces.append(piece)
        elif isinstance(piece, _MovingRow):
            row = piece.row + rows
            pieces.append(f"{piece.column}{row}" if 1 <= row <= MAX_ROW else "#REF!")
        else:
            pieces.append(_moved(piece, rows, columns))
    return "".join(pieces)


def with_sheet_renamed(formula: str, old: str, new: str) -> str:
    """Renames a sheet in a formula, also where it is the first or last of several sheets.

    Args:
        formula: the formula, with or without its leading ``=``.
        old: the name that the sheet had.
        new: the name that it has now.
    """
    return "".join(
        _with_sheet(token.text, old, new) if token.kind is Kind.SHEET else token.text
        for token in tokens(formula)
    )


def _with_sheet(text: str, old: str, new: str) -> str:
    names = text[:-1].strip("'").replace("''", "'").split(":")
    if folded(old) not in map(folded, names):
        return text
    name = ":".join(new if folded(part) == folded(old) else part for part in names)
    return "'" + name.replace("'", "''") + "'!"


def formula_shape(formula: str) -> str:
    """The shape of a formula: in capitals, without spaces, every reference replaced by ``#``.

    The shape stays the same if rows or columns are inserted or deleted, or a sheet is renamed. Text
    in quotes does not change, and neither does a string that is too long for a formula.

    Args:
        formula: the formula, with or without its leading ``=``.
    """
    if is_too_long(formula):
        return formula
    # An area and a single cell are the same reference before and after a row is deleted.
    return "".join(map(shape_of, tokens(formula))).replace("#:#", "#")


_AS_WRITTEN = (Kind.TEXT, Kind.QUOTED, Kind.BRACKETS)


_REFERENCES = (Kind.CELL, Kind.COLUMNS, Kind.ROWS)


def shape_of(token: Token) -> str:
    """What a token contributes to the shape of its formula: ``#`` for a reference."""
    if token.kind in _AS_WRITTEN:
        return token.text
    if token.kind is Kind.SHEET:
        book = token.text.find("]") + 1
        return token.text[:book] if token.text.startswith("[") else ""
    if token.kind in _REFERENCES:
        return "#" if _is_on_sheet(token) else token.text
    return "".join(token.text.upper().split())


def _is_on_sheet(token: Token) -> bool:
    """Whether the column and the row of an apparent reference exist in a worksheet."""
    ends = [end.lstrip("$") for end in _END.findall(token.text)]
    if token.kind is Kind.CELL and ends[1].startswith("0"):
        return False
    return all(
        column_number(end) <= MAX_COLUMN if end.isalpha() else int(end) <= MAX_ROW for end in ends
    )


class _End(NamedTuple):
    """Moves a column or a row of a reference; if it has no number, it does not change."""

    text: str
    number: int | None
    is_row: bool


class _Reference(NamedTuple):
    """A reference that moves: its column and row, or two columns or rows with a colon between."""

    ends: tuple[_End, ...]
    joint: str


@functools.lru_cache(maxsize=4096)
def _pieces(formula: str) -> tuple[str | _Reference, ...]:
    """A formula split into its references and the rest; cached, since cells share formulas."""
    pieces: list[str | _Reference] = []
    between = ""
    for token in tokens(formula):
        if token.kind in _REFERENCES and _is_on_sheet(token):
            joint = "" if token.kind is Kind.CELL else ":"
            pieces += (between, _Reference(tuple(map(_end, _END.findall(token.text))), joint))
            between = ""
        else:
            between += token.text
    return (*pieces, between)


class _MovingRow(NamedTuple):
    """A reference to one cell: its column is final, its row still has to be shifted."""

    column: str
    row: int


@functools.lru_cache(maxsize=4096)
def _with_columns_moved(formula: str, columns: int) -> tuple[str | _MovingRow | _Reference, ...]:
    """The pieces of a formula after its columns are shifted; rows still have to be.

    Cached, since most cells that share a formula are in one column.
    """
    pieces: list[str | _MovingRow | _Reference] = []
    for piece in _pieces(formula):
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        row = piece.ends[-1].number
        if not any(end.is_row and end.number is not None for end in piece.ends):
            pieces.append(_moved(piece, 0, columns))
        elif piece.joint or row is None:
            pieces.append(piece)
        else:
            column = _moved(piece._replace(ends=piece.ends[:1]), 0, columns)
            pieces.append(column if column == "#REF!" else _MovingRow(column, row))
    return tuple(pieces)


def _end(text: str) -> _End:
    is_row = text[-1].isdigit()
    if text.startswith("$"):
        return _End(text, None, is_row)
    return _End(text, int(text) if is_row else column_number(text), is_row)


def _moved(reference: _Reference, rows: int, columns: int) -> str:
    ends = []
    for text, number, is_row in reference.ends:
        moved = number if number is None else number + (rows if is_row else columns)
        if moved is None:
            ends.append(text)
        elif not 1 <= moved <= (MAX_ROW if is_row else MAX_COLUMN):
            return "#REF!"
        else:
            ends.append(str(moved) if is_row else column_letters(moved))
    return reference.joint.join(ends)
