"""The input files of a case as a page shows them: pictures, first rows of tables, text. Bounded."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge.core.task import FileKind, InputFile, Task, TestCase
from judge.errors import JudgeError, SuiteError
from judge.files.documents import MAX_FILE_BYTES, opened_regular
from judge.report.pictures import PictureShelf
from judge.workbook.cell import ErrorValue
from judge.workbook.preview import SheetPreview, Value, read_preview, read_table

_MAX_FILES = 40
_MAX_SHEETS = 4
_MAX_ROWS = 12
_MAX_COLUMNS = 16
_MAX_CELL_LENGTH = 60
_MAX_TEXT_LENGTH = 4_000
_MAX_TEXT_BYTES = 4 * _MAX_TEXT_LENGTH


def shown_inputs(task: Task, case: TestCase, pictures: PictureShelf) -> list[dict[str, Any]]:
    """The inputs of a case that no grid shows.

    Args:
        task: the task; if its answer is a file, its first input is in a grid.
        case: the case.
        pictures: where pictures are named.

    Returns:
        For each file ``name``, ``kind`` and, if it cannot be shown, ``problem``; a picture has
        ``picture`` (see :meth:`PictureShelf.of_file`), a table ``sheets`` (each with ``name``,
        ``rows`` of strings, ``total_rows`` or null, ``total_columns`` or null and ``cut``), text
        ``text``.
    """
    files = case.inputs[1:] if task.answer.is_file else case.inputs
    found = [_shown(file, pictures) for file in files[:_MAX_FILES]]
    found += [
        {"name": each.name, "kind": each.kind.value, "problem": f"is missing: {each.advice}"}
        for each in case.absent[:_MAX_FILES]
    ]
    return found


def _shown(file: InputFile, pictures: PictureShelf) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": file.path.name, "kind": file.kind.value}
    if file.kind is FileKind.IMAGE:
        return {**entry, "picture": pictures.of_file(file.path)}
    try:
        match file.kind:
            case FileKind.WORKBOOK:
                sheets = read_preview(file.path, _MAX_ROWS)
            case FileKind.TABLE:
                sheets = (read_table(file.path, _MAX_ROWS),)
            case _:
                return {**entry, "text": _text(file.path)}
    except JudgeError as error:
        return {**entry, "problem": error.message.removeprefix(f"{file.path}: ")}
    shown = [_sheet(sheet) for sheet in sheets[:_MAX_SHEETS]]
    return {**entry, "sheets": shown, "more_sheets": max(len(sheets) - _MAX_SHEETS, 0)}


def _sheet(sheet: SheetPreview) -> dict[str, Any]:
    rows = [_row(row) for row in sheet.rows[:_MAX_ROWS]]
    is_cut = sheet.more_rows or any(len(row) > _MAX_COLUMNS for row in sheet.rows)
    return {
        "name": sheet.name,
        "rows": rows,
        "total_rows": sheet.total_rows,
        "total_columns": sheet.total_columns,
        "cut": is_cut,
    }


def _row(row: Sequence[Value]) -> list[str]:
    texts = (_cell(value) for value in row[:_MAX_COLUMNS])
    return [
        text if len(text) <= _MAX_CELL_LENGTH else text[:_MAX_CELL_LENGTH] + "…" for text in texts
    ]


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, ErrorValue):
        return value.code
    if isinstance(value, dt.datetime):
        return str(value).removesuffix(" 00:00:00")
    return str(value)


def _text(path: Path) -> str:
    with opened_regular(path, SuiteError, MAX_FILE_BYTES) as file:
        data = b"" if file is None else file.read(_MAX_TEXT_BYTES)
    text = data.decode("utf-8", "replace")
    return text if len(text) <= _MAX_TEXT_LENGTH else text[:_MAX_TEXT_LENGTH] + "…"
