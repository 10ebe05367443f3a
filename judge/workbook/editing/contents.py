"""The content of a cell as data: a value or a formula, its JSON form, and the edit that sets it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from judge.errors import UsageError
from judge.workbook.address import cell_name
from judge.workbook.cell import CellRef, CellValue, ErrorValue

ERROR_CODES = frozenset(
    {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#SPILL!", "#CALC!"}
)


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula as the content of a cell; ``text`` has no leading ``=``."""

    text: str


CellContent = CellValue | Formula


@dataclass(frozen=True, slots=True)
class SetCell:
    """An edit of one cell: its content, its format, or both.

    Attributes:
        ref: the cell; the sheet by its real name.
        content: the value or formula; None empties the cell.
        style: index of the cell format to give it; None keeps the cell's own.
        fill: colour of its background as ``RRGGBB``; None keeps it.
    """

    ref: CellRef
    content: CellContent
    style: int | None = None
    fill: str | None = None


def address(ref: CellRef) -> str:
    """The address of a cell with its sheet, quoted as in a formula."""
    name = ref.sheet.replace("'", "''")
    return f"'{name}'!{cell_name(ref.row, ref.column)}"


def content_to_json(content: CellContent) -> Any:
    """Converts a cell's content to plain data for JSON that keeps its type."""
    match content:
        case Formula():
            return {"formula": content.text}
        case ErrorValue():
            return {"error": content.code}
        case dt.datetime() | dt.date():
            return {"date": content.isoformat()}
        case dt.time():
            return {"time": content.isoformat()}
        case dt.timedelta():
            return {"seconds": content.total_seconds()}
        case _:
            return content


def content_from_json(value: Any) -> CellContent:
    """Reads a cell's content from the JSON form.

    Raises:
        UsageError: the value is not the content of a cell.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        ((kind, text),) = value.items()
        match kind:
            case "formula":
                return Formula(str(text))
            case "error":
                return ErrorValue(str(text))
            case "date":
                return dt.datetime.fromisoformat(str(text))
            case "time":
                return dt.time.fromisoformat(str(text))
            case "seconds":
                return dt.timedelta(seconds=float(text))
    raise UsageError(f"not the content of a cell: {value!r}")
