"""The ``spreadsheet_content`` of a prompt: previews in one of several forms, with what was cut."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from judge.inference.pandasform import layout
from judge.inference.tableinfo import describe
from judge.workbook.address import column_letters, parse_window
from judge.workbook.cell import ErrorValue
from judge.workbook.preview import SheetPreview, Value

INFO = "info"
"""The form that describes columns in place of showing rows."""

_INFO_ROWS = 200_000

_RULE = "-" * 50


@dataclass(frozen=True, slots=True)
class ContentLimits:
    """How much of a workbook goes into a prompt.

    Attributes:
        rows: rows below the first one of each sheet.
        columns: columns of each sheet.
        cell_chars: characters of one cell's text.
        total_chars: characters of all sheets together; what goes past it is left out from the end.
        notes: whether to say below each sheet what was left out and which cells are merged.
    """

    rows: int = 5
    columns: int = 60
    cell_chars: int = 400
    total_chars: int = 24_000
    notes: bool = True


def rows_needed(form: str, rows: int) -> int:
    """How many rows of a sheet have to be read for a form that is to show so many below the first.

    A description of columns counts all rows.
    """
    return _INFO_ROWS if form == INFO else rows + 1


def render_content(
    sheets: Sequence[SheetPreview], form: str, limits: ContentLimits, heading: str = "Sheet Name"
) -> str:
    """Writes the first rows of all sheets.

    Args:
        sheets: the previews; they may hold more rows than are wanted.
        form: one of :data:`judge.inference.choices.CONTENT_FORMS`.
        limits: how much.
        heading: what precedes each sheet's name.
    """
    write = _WRITERS.get(form, layout)
    parts: list[str] = []
    left = limits.total_chars
    for number, sheet in enumerate(sheets):
        text, notes = (
            _describe(sheet, limits) if form == INFO else _write_sheet(sheet, write, limits)
        )
        if len(text) > left:
            text = _cut_lines(text, left)
            notes = [*notes, "the rest of the lines was too long to show"]
        left -= len(text)
        shown_notes = [f"[{note}]" for note in notes] if limits.notes else []
        parts.append("\n".join([f"{heading}: {sheet.name}", text, *shown_notes, _RULE]))
        if left <= 0 and number + 1 < len(sheets):
            names = ", ".join(each.name for each in sheets[number + 1 :])
            parts.append(f"[sheets not shown: {names}]")
            break
    return "\n".join(parts) + "\n"


def _write_sheet(
    sheet: SheetPreview, write: Callable[[Sequence[Sequence[Value]]], str], limits: ContentLimits
) -> tuple[str, list[str]]:
    cut, notes = _cut(sheet, limits)
    if cut.merged:
        inside = [each for each in cut.merged if _is_within(each, cut)]
        if inside:
            shown = ", ".join(inside[:20])
            more = f" and {len(inside) - 20} more" if len(inside) > 20 else ""
            notes.append(f"merged cells, value in the first one: {shown}{more}")
    if cut.rows and all(value is None for row in cut.rows for value in row):
        return f"(rows 1 to {len(cut.rows)} are blank)", notes
    return write(cut.rows), notes


def _describe(sheet: SheetPreview, limits: ContentLimits) -> tuple[str, list[str]]:
    """A description of the columns, and what it leaves out."""
    notes: list[str] = []
    if sheet.more_rows:
        notes.append(f"counted in the first {len(sheet.rows)} rows")
    width = len(sheet.rows[0]) if sheet.rows else 0
    if width > limits.columns:
        notes.append(f"{width - limits.columns} more columns not shown")
    return describe(sheet.rows, limits.columns), notes


def _cut(sheet: SheetPreview, limits: ContentLimits) -> tuple[SheetPreview, list[str]]:
    """The sheet within the limits, and what that left out."""
    notes: list[str] = []
    rows = sheet.rows[: limits.rows + 1]
    if sheet.more_rows or len(sheet.rows) > len(rows):
        total = f" of {sheet.total_rows}" if sheet.total_rows else ""
        notes.append(f"rows 1 to {len(rows)}{total} shown")
    width = len(rows[0]) if rows else 0
    if width > limits.columns:
        hidden = f"{column_letters(limits.columns + 1)} to {column_letters(width)}"
        notes.append(f"columns {hidden} not shown")
        rows = tuple(row[: limits.columns] for row in rows)
    long = sum(
        isinstance(value, str) and len(value) > limits.cell_chars for row in rows for value in row
    )
    if long:
        notes.append(f"{long} long text{'s' if long > 1 else ''} cut, marked with …")
        rows = tuple(tuple(_cut_text(value, limits.cell_chars) for value in row) for row in rows)
    return replace(sheet, rows=rows), notes


def _cut_text(value: Value, limit: int) -> Value:
    if not isinstance(value, str) or len(value) <= limit:
        return value
    return f"{value[:limit]}… ({len(value)} characters)"


def _cut_lines(text: str, limit: int) -> str:
    kept = text[:limit]
    return kept[: kept.rfind("\n")] if "\n" in kept else kept


def _is_within(merged: str, sheet: SheetPreview) -> bool:
    window = parse_window(merged)
    return window is not None and window.min_row <= len(sheet.rows)


def _plain(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        midnight = not (value.hour or value.minute or value.second or value.microsecond)
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    return value.code if isinstance(value, ErrorValue) else str(value)


def _markdown(rows: Sequence[Sequence[Value]]) -> str:
    if not rows:
        return "(empty)"
    letters = [column_letters(number) for number in range(1, len(rows[0]) + 1)]
    lines = [["", *letters], ["---"] * (len(letters) + 1)]
    for number, row in enumerate(rows, start=1):
        cells = [_plain(value).replace("|", "\\|").replace("\n", "<br>") for value in row]
        lines.append([str(number), *cells])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _csv(rows: Sequence[Sequence[Value]]) -> str:
    if not rows:
        return "(empty)"
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerows([_plain(value) for value in row] for row in rows)
    return buffer.getvalue().rstrip("\n")


def _addresses(rows: Sequence[Sequence[Value]]) -> str:
    lines = []
    for number, row in enumerate(rows, start=1):
        cells = [
            f"{column_letters(column)}{number}: {_plain(value)}"
            for column, value in enumerate(row, start=1)
            if value is not None
        ]
        if cells:
            lines.append(" | ".join(cells).replace("\n", "\\n"))
    return "\n".join(lines) or "(empty)"


_WRITERS: dict[str, Callable[[Sequence[Sequence[Value]]], str]] = {
    "pandas": layout,
    "markdown": _markdown,
    "csv": _csv,
    "addresses": _addresses,
}
