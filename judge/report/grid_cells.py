"""Cells as the JSON that a grid is drawn from.

A plain JSON number, text or boolean is just that value. Anything else is an object:

```
{"k": "n", "x": "1e400"}             a number that JSON cannot say
{"k": "d", "x": "2024-01-31"}        a date, a time or a duration
{"k": "e", "x": "#N/A"}              an error
{"k": "s", "x": "lorem …", "n": 40}  text that was cut, with its full length
{"f": "=A1", "v": …, "s": state}     a formula with its value, where that is known
```
"""

from __future__ import annotations

import datetime as dt
import enum
import math
from typing import Any

from judge.compare.cells.render import value_to_json
from judge.workbook.cell import CellValue, ErrorValue

_MAX_EXACT = 2**53


class FormulaState(enum.StrEnum):
    """Where the value of a formula comes from."""

    CACHED = "k"
    """The file holds it, and it counted."""
    COMPUTED = "c"
    """An engine of the judge computed it."""
    AGREED = "a"
    """An engine computed a value that agrees with the other workbook's."""
    IGNORED = "i"
    """The file holds it, but it did not count: an engine computed another, which was not kept."""
    NONE = "u"
    """There is none."""


def encode_value(value: CellValue, text_chars: int) -> Any:
    """A value as JSON."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return encode_text(value, text_chars)
    if isinstance(value, ErrorValue):
        return {"k": "e", "x": value.code}
    if isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta):
        return {"k": "d", "x": str(value_to_json(value)).removesuffix("T00:00:00")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"k": "n", "x": str(value)}
    if isinstance(value, int) and abs(value) > _MAX_EXACT:
        return {"k": "n", "x": str(value)[:text_chars]}
    return value


def encode_text(text: str, text_chars: int) -> Any:
    """Text as JSON, cut if it is longer than there is room for."""
    if not text.isascii():
        # A lone surrogate cannot be encoded in UTF-8.
        text = text.encode("utf-8", "replace").decode("utf-8")
    if len(text) <= text_chars:
        return text
    return {"k": "s", "x": text[:text_chars], "n": len(text)}


def encode_recorded(value: Any) -> Any:
    """A value that a record holds, which is JSON already."""
    if isinstance(value, dict):
        if "date" in value:
            return {"k": "d", "x": str(value["date"]).removesuffix("T00:00:00")}
        return {"k": "e", "x": str(value.get("error", ""))}
    return value


def encode_formula(formula: str, value: Any, state: FormulaState, text_chars: int) -> Any:
    """A formula with its encoded value."""
    text = encode_text(formula, text_chars)
    shown = text if isinstance(text, str) else f"{text['x']}…"
    return {"f": shown, "v": value, "s": state.value}


_SAME, _FOLLOWS, _BLANK, _AS_OUTPUT = 0, 1, 2, 3


def encode_cell(column: int, mark: int, gold: Any, output: Any, before: Any) -> list[Any] | None:
    """One cell of the three workbooks; None if all are blank and there is nothing to show.

    Args:
        column: index into the columns that are shown.
        mark: index of what the comparison said, see :data:`judge.report.grid.MARKS`.
        gold: the gold's cell.
        output: the output's cell.
        before: the input's cell.

    Returns:
        ``[column, flags, gold, output?, before?]``. Bits 0 and 1 of ``flags`` describe the
        output, bits 2 and 3 the input: 0 as the gold, 1 it follows, 2 blank, 3 as the output. The
        mark is above them.
    """
    if gold is None and output is None and before is None and mark <= 1:
        return None
    entry: list[Any] = [column, 0, gold]
    flags = mark << 4
    if not _same(output, gold):
        flags |= _BLANK if output is None else _FOLLOWS
        if output is not None:
            entry.append(output)
    if not _same(before, gold):
        if before is None:
            flags |= _BLANK << 2
        elif _same(before, output):
            flags |= _AS_OUTPUT << 2
        else:
            flags |= _FOLLOWS << 2
            entry.append(before)
    entry[1] = flags
    return entry


def _same(first: Any, second: Any) -> bool:
    # True is 1 for Python; in a cell it is not, nor behind a formula.
    if isinstance(first, dict):
        return isinstance(second, dict) and repr(first) == repr(second)
    return type(first) is type(second) and bool(first == second)
