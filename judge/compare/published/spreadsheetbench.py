"""The verdict of SpreadsheetBench's published evaluation script, faults included. Pure rules.

Rewritten from the script's behaviour, and checked against 3,584 of its recorded verdicts. What it
does that a reader would not expect:

- A position is cut at every comma and bang, and quotes (but not spaces) are taken off both ends.
- A part without a sheet belongs to the gold's first sheet; ``answer_sheet`` is never read.
- The corners of a range are read letter by letter, each as its code minus 64, so that lower-case
  letters and spaces name unintended columns; columns below 1 make the script fall over, and a
  range whose end is before its start holds no cell and is accepted.
- A whole column, two colons or two bangs make it fall over, which counts as not accepted.
- Numbers, booleans and strings that Python reads as numbers are rounded to two binary decimals;
  ``nan`` differs from itself. Dates are rounded to the nearest whole day and equal that number;
  times lose their last three characters. Blank equals the empty string.
- A blank cell under a hyperlink shows the link's target, since openpyxl puts it there.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from judge.workbook.address import MAX_ROW, Window, parse_cell
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.dates import EPOCH_1900

_LAST_COLUMN = 18_278  # ZZZ, the last column that openpyxl names


class ScriptError(Exception):
    """The published script falls over here; it counts that as not accepted."""


@dataclass(frozen=True, slots=True)
class OfficialPart:
    """One part of a position as the script reads it.

    Attributes:
        sheet: the sheet whose cells are compared.
        window: the cells; None if the part holds no cell at all.
    """

    sheet: str
    window: Window | None


def official_parts(
    position: str, gold_tabs: Sequence[str], output_tabs: Sequence[str]
) -> list[OfficialPart] | None:
    """The cells that the script compares.

    Args:
        position: the answer position as the suite has it.
        gold_tabs: all sheets of the gold in workbook order, chart sheets included.
        output_tabs: the same of the output.

    Returns:
        The parts, or None if the output lacks a sheet, which is not accepted.

    Raises:
        ScriptError: the script falls over.
    """
    parts: list[OfficialPart] = []
    lacking = False
    for piece in position.split(","):
        sheet, cells = gold_tabs[0], piece
        if "!" in piece:
            sheet, *rest = piece.split("!")
            if len(rest) != 1:
                raise ScriptError("ValueError: more than one bang")
            cells = rest[0]
        sheet = sheet.strip("'")
        if sheet not in output_tabs:
            lacking = True
            continue
        if sheet not in gold_tabs:
            raise ScriptError(f"KeyError: the gold has no sheet {sheet!r}")
        parts.append(OfficialPart(sheet, script_window(cells.strip("'"))))
    return None if lacking else parts


def script_window(cells: str) -> Window | None:
    """The cells of a range as the published scripts read it; None if it holds no cell.

    Raises:
        ScriptError: the script falls over.
    """
    if ":" not in cells:
        place = parse_cell(cells)
        if place is None:
            raise ScriptError(f"no single cell: {cells!r}")
        return Window(*place, *place)
    corners = cells.split(":")
    if len(corners) != 2:
        raise ScriptError("ValueError: more than one colon")
    (column, row), (last_column, last_row) = (_corner(corner) for corner in corners)
    if column > last_column or row > last_row:
        return None
    if column < 1:
        raise ScriptError("AttributeError: a row where a cell should be")
    if row < 1 or last_row > MAX_ROW or last_column > _LAST_COLUMN:
        raise ScriptError("ValueError: outside of a worksheet")
    return Window(row, column, last_row, last_column)


def _corner(text: str) -> tuple[int, int]:
    column = 0
    digits = ""
    for character in text:
        if character.isdigit():
            digits += character
        else:
            column = column * 26 + ord(character) - 64
    try:
        return column, int(digits)
    except ValueError:
        raise ScriptError(f"ValueError: no row in {text!r}") from None


# -- values ---------------------------------------------------------------------------------------


def official_agree(expected: CellValue, actual: CellValue) -> bool:
    """Whether the script considers two values equal.

    Raises:
        ScriptError: the script falls over at one of them.
    """
    first, second = transformed(expected), transformed(actual)
    if first in {"", None} and second in {"", None}:
        return True
    return type(first) is type(second) and first == second


def transformed(value: CellValue) -> CellValue:
    """A value as the published scripts compare it: rounded, dates as days, strings as numbers.

    Raises:
        ScriptError: the script falls over.
    """
    if isinstance(value, ErrorValue):
        return value.code
    if isinstance(value, int | float):  # booleans are integers here, as in the script
        try:
            return round(float(value), 2)
        except OverflowError:
            raise ScriptError("OverflowError: a whole number too large for a float") from None
    if isinstance(value, dt.time):
        return str(value)[:-3]
    if isinstance(value, dt.datetime):
        span = value - EPOCH_1900
        return float(round(span.days + span.seconds / 86_400))
    if isinstance(value, str):
        try:
            return round(float(value), 2)
        except ValueError:
            return value
    return value
