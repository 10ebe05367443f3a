"""The viewer of SpreadsheetBench 2's agent: formulas or constants of a sheet, never values.

Runs inside, with openpyxl. Source: RUCKBReasoning/SpreadsheetBench-2, tools of its SWE-agent; the
behaviour is reproduced, the text is our own.
"""

from __future__ import annotations

import sys
from typing import Any

_BLOCK = 100


def main() -> None:
    """Runs the viewer; the arguments are ``FILE [MODE [SHEET [START [END]]]]``."""
    arguments = sys.argv[1:]
    if not arguments:
        print("Error: a file path is needed")
        sys.exit(1)
    try:
        _view(*arguments[:5])
    except Exception as error:  # noqa: BLE001 - the agent reads the error
        print(f"Error: {error}")
        sys.exit(1)


def _view(path: str, mode: str = "", sheet: str = "", start: str = "", end: str = "") -> None:
    import openpyxl  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415

    book = openpyxl.load_workbook(path, data_only=False)
    visible = [sheet.title for sheet in book.worksheets if sheet.sheet_state == "visible"]
    if mode == "list":
        print(visible)
        return
    if mode not in {"", "content"}:  # as published: any other word is the sheet
        sheet, start, end = mode, sheet, start
    chosen = _sheet_of(book, sheet) if sheet else book[visible[0]]
    if chosen is None:
        print(f"Error: there is no sheet {sheet!r}. Sheets: {visible}")
        sys.exit(1)
    _print_rows(chosen, start, end)


def _sheet_of(book: Any, name: str) -> Any:
    for sheet in book.worksheets:
        if sheet.title == name or sheet.title.strip() == name.strip():
            return sheet
    return None


def _print_rows(sheet: Any, start: str, end: str) -> None:
    filled = [(cell.row, cell.column) for row in sheet.iter_rows() for cell in row if _holds(cell)]
    if not filled:
        print(f"Sheet: {sheet.title}\nThe sheet is empty")
        return
    rows, columns = [row for row, _ in filled], [column for _, column in filled]
    first = int(start) if start else min(rows)
    last = int(end) if end else max(rows)
    left, right = min(columns), max(columns)
    print(f"Sheet: {sheet.title}")
    print(f"Data range: {sheet.dimensions}")
    print(f"Rows: {first}-{last}, columns: {left}-{right}")
    for block in range(first, last + 1, _BLOCK):
        until = min(block + _BLOCK - 1, last)
        for number, row in enumerate(
            sheet.iter_rows(block, until, left, right, values_only=True), start=block
        ):
            print(f"Row {number}: {list(row)}")


def _holds(cell: Any) -> bool:
    return cell.value is not None
