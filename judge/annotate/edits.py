"""Changes to a workbook, as data: the steps of an annotator, which drafts record. Pure."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judge.compare.cells.value import text_as_number
from judge.errors import UsageError
from judge.workbook.address import MAX_COLUMN, Window, cell_name, parse_cell, parse_window
from judge.workbook.cell import CellRef, ErrorValue
from judge.workbook.editing.sheet_xml import (
    ERROR_CODES,
    CellContent,
    Formula,
    SetCell,
    address,
    content_from_json,
    content_to_json,
)

__all__ = [
    "ERROR_CODES",
    "CellContent",
    "DeleteRows",
    "Edit",
    "Formula",
    "InsertRows",
    "MergeCells",
    "RenameSheet",
    "SetCell",
    "SetDateSystem",
    "address",
    "content_from_json",
    "content_text",
    "content_to_json",
    "describe",
    "edit_from_json",
    "edit_to_json",
    "parse_assignment",
    "parse_content",
]


@dataclass(frozen=True, slots=True)
class InsertRows:
    """Inserts blank rows before a row (1-based)."""

    sheet: str
    row: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """Deletes rows, beginning with a row (1-based)."""

    sheet: str
    row: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class RenameSheet:
    """Renames a sheet, including all references to it."""

    sheet: str
    name: str


@dataclass(frozen=True, slots=True)
class MergeCells:
    """Merges a rectangle; all its cells except the first are emptied."""

    sheet: str
    window: Window


@dataclass(frozen=True, slots=True)
class SetDateSystem:
    """Makes the workbook count days from 1904, or from 1900; the dates themselves do not change."""

    date_1904: bool


Edit = SetCell | InsertRows | DeleteRows | RenameSheet | MergeCells | SetDateSystem


# -- what people type -----------------------------------------------------------------------------

_ASSIGNMENT = re.compile(
    r"(?:(?:'(?P<quoted>(?:[^']|'')+)'|(?P<sheet>[^!=']+))!)?(?P<cell>\$?[A-Za-z]{1,3}\$?\d{1,7})"
    r"=(?P<content>.*)",
    re.DOTALL,
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")
_TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?")


def parse_assignment(text: str, default_sheet: str) -> SetCell:
    """Reads ``CELL=VALUE``, such as ``B2=5``, ``'Sheet 1'!C3==SUM(A1:A9)`` or ``D4=``.

    Args:
        text: the typed text; :func:`parse_content` reads the value.
        default_sheet: the sheet to use if none is named.

    Raises:
        UsageError: the text does not have this form.
    """
    match = _ASSIGNMENT.fullmatch(text)
    ref = parse_cell(match["cell"]) if match else None
    if match is None or ref is None or ref[1] > MAX_COLUMN:
        raise UsageError(
            f"{text!r} is not CELL=VALUE",
            hint="Write for instance B2=5, Sheet2!B2=text, B2==SUM(A1:A9), or B2= for blank.",
        )
    quoted = match["quoted"]
    sheet = quoted.replace("''", "'") if quoted else match["sheet"] or default_sheet
    return SetCell(CellRef(sheet, *ref), parse_content(match["content"]))


def parse_content(text: str) -> CellContent:
    """Reads text typed into a cell, as a spreadsheet would.

    A leading ``=`` makes a formula, a leading apostrophe makes text; dates are ISO (2024-02-29,
    2024-02-29T12:30), times are 12:30; empty text is a blank.
    """
    if not text:
        return None
    if text.startswith("'"):
        return text[1:]
    if text.startswith("=") and len(text) > 1:
        return Formula(text[1:])
    if text.upper() in {"TRUE", "FALSE"}:
        return text.upper() == "TRUE"
    if text.upper() in ERROR_CODES:
        return ErrorValue(text.upper())
    if (number := text_as_number(text)) is not None and text == text.strip():
        return int(number) if re.fullmatch(r"[+-]?\d{1,15}", text) else number
    try:
        if _DATE.fullmatch(text):
            return dt.datetime.fromisoformat(text)
        if _TIME.fullmatch(text):
            return dt.time.fromisoformat(text.zfill(5) if len(text) < 6 else text.zfill(8))
    except ValueError:
        return text
    return text


def content_text(content: CellContent) -> str:
    """The text for this content; :func:`parse_content` reads the content back from it."""
    match content:
        case None:
            return ""
        case Formula():
            return f"={content.text}"
        case ErrorValue():
            return content.code
        case bool():
            return str(content).upper()
        case dt.datetime() | dt.date() | dt.time():
            return content.isoformat()
        case dt.timedelta():
            return repr(content.total_seconds() / 86_400)
        case str():
            same = parse_content(content)
            return content if isinstance(same, str) and same == content else f"'{content}"
        case _:
            return repr(content)


def describe(edit: Edit) -> str:
    """Describes an edit in one line for people."""
    match edit:
        case SetCell():
            colour = f" with background {edit.fill}" if edit.fill else ""
            return f"{address(edit.ref)} = {content_text(edit.content) or '(blank)'}{colour}"
        case InsertRows():
            return f"{edit.count} rows inserted before row {edit.row} of {edit.sheet!r}"
        case DeleteRows():
            return f"{edit.count} rows deleted from row {edit.row} of {edit.sheet!r} on"
        case RenameSheet():
            return f"sheet {edit.sheet!r} renamed to {edit.name!r}"
        case MergeCells():
            return f"{edit.window} of {edit.sheet!r} merged"
        case SetDateSystem():
            return f"days counted from {'1904' if edit.date_1904 else '1900'}"


# -- JSON -----------------------------------------------------------------------------------------


def edit_to_json(edit: Edit) -> dict[str, Any]:
    """An edit as plain data; :func:`edit_from_json` reads the edit back from it."""
    match edit:
        case SetCell():
            record: dict[str, Any] = {
                "edit": "set",
                "sheet": edit.ref.sheet,
                "cell": cell_name(edit.ref.row, edit.ref.column),
                "content": content_to_json(edit.content),
            }
            if edit.style is not None:
                record["style"] = edit.style
            if edit.fill is not None:
                record["fill"] = edit.fill
            return record
        case InsertRows() | DeleteRows():
            kind = "insert_rows" if isinstance(edit, InsertRows) else "delete_rows"
            return {"edit": kind, "sheet": edit.sheet, "row": edit.row, "count": edit.count}
        case RenameSheet():
            return {"edit": "rename_sheet", "sheet": edit.sheet, "name": edit.name}
        case MergeCells():
            return {"edit": "merge", "sheet": edit.sheet, "range": str(edit.window)}
        case SetDateSystem():
            return {"edit": "date_system", "date_1904": edit.date_1904}


def edit_from_json(record: Mapping[str, Any]) -> Edit:
    """Reads an edit from plain data.

    Raises:
        UsageError: the record is not an edit.
    """
    try:
        return _edit_of(record)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"not an edit: {dict(record)!r}") from error


def _edit_of(record: Mapping[str, Any]) -> Edit:
    match record["edit"]:
        case "set":
            ref = parse_cell(str(record["cell"]))
            if ref is None:
                raise ValueError(record["cell"])
            return SetCell(
                CellRef(str(record["sheet"]), *ref),
                content_from_json(record.get("content")),
                style=record.get("style"),
                fill=record.get("fill"),
            )
        case "insert_rows":
            return InsertRows(str(record["sheet"]), int(record["row"]), int(record["count"]))
        case "delete_rows":
            return DeleteRows(str(record["sheet"]), int(record["row"]), int(record["count"]))
        case "rename_sheet":
            return RenameSheet(str(record["sheet"]), str(record["name"]))
        case "merge":
            window = parse_window(str(record["range"]))
            if window is None:
                raise ValueError(record["range"])
            return MergeCells(str(record["sheet"]), window)
        case "date_system":
            return SetDateSystem(bool(record["date_1904"]))
        case other:
            raise ValueError(other)
