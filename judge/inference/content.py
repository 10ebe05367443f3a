"""The ``spreadsheet_content`` of a prompt: the first rows of each sheet, in one of several forms.

Three of the forms are our own. The other two are those of pandas, which the published prompts use:

* ``pandas``: rows as ``pandas.read_excel(...).head(n).to_string()`` lays them out. Row 1 gives the
  labels, blanks are NaN, and text that looks like numbers becomes numbers if that is possible for
  the whole column. pandas infers the type of a column from all of its rows, but here only the rows
  that are shown are read: a column of whole numbers with a blank further down is shown as ``1``,
  not as ``1.0``.
* ``info``: columns, counts and types, as ``pandas.DataFrame.info()`` prints them. They show a model
  what a table contains without showing rows.

Source: behaviour of pandas 2.3 (``to_string``, compared on 300 published workbooks) and pandas 3.1
(``info``).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from judge.workbook.address import column_letters, parse_window
from judge.workbook.cell import ErrorValue
from judge.workbook.preview import SheetPreview, Value

_MISSING = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)
NUMBER = re.compile(r"\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*")
_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})
_DIGITS = 6


def layout(rows: Sequence[Sequence[Value]]) -> str:
    """Lays out rows as pandas does; the first row gives the labels of the columns.

    Args:
        rows: rows of values, all of the same width.
    """
    if not rows or not rows[0]:
        return "Empty DataFrame\nColumns: []\nIndex: []"
    body = rows[1:]
    if len(rows[0]) == 1:
        body = [row for row in body if row[0] is not None]
    names = labels(rows[0])
    if not body:
        return f"Empty DataFrame\nColumns: [{', '.join(names)}]\nIndex: []"
    index = [str(number) for number in range(len(body))]
    index_width = len(index[-1])
    columns = [["".ljust(index_width), *(label.ljust(index_width) for label in index)]]
    for number, label in enumerate(names):
        columns.append(_column(label, [row[number] for row in body]))
    return "\n".join(" ".join(parts) for parts in zip(*columns, strict=True))


def labels(header: Sequence[Value]) -> list[str]:
    """Returns the labels of columns; like pandas, makes them unique and names blank ones."""
    taken: dict[str, int] = {}
    names: list[str] = []
    texts = [
        f"Unnamed: {number}" if is_missing(value) else _text(value)
        for number, value in enumerate(header)
    ]
    for text in texts:
        label = text
        count = taken.get(text, 0)
        if count:
            label = f"{text}.{count}"
            while label in taken:
                count += 1
                label = f"{text}.{count}"
        taken[text] = count + 1
        taken.setdefault(label, 1)
        names.append(label.translate(_ESCAPES))
    return names


def _column(label: str, values: list[Value]) -> list[str]:
    kept = [None if is_missing(value) else value for value in values]
    texts, is_number = _formatted(kept)
    if is_number:
        label = f" {label}"
    width = max(len(label), *(len(text) for text in texts))
    return [label.rjust(width), *(text.rjust(width) for text in texts)]


def _formatted(values: list[Value]) -> tuple[list[str], bool]:
    """Returns the strings of one column, and whether pandas treats the column as numeric."""
    numbers = _as_numbers(values)
    if numbers is not None:
        return _number_texts(numbers), True
    present = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in present) and len(present) == len(values):
        return [f" {value}" for value in values], False
    if all(isinstance(value, datetime) for value in present):
        return _date_texts(values), False
    return [_object_text(value) for value in values], False


def _as_numbers(values: list[Value]) -> list[int | float | None] | None:
    numbers: list[int | float | None] = []
    for value in values:
        if value is None:
            numbers.append(None)
        elif isinstance(value, bool) or not isinstance(value, int | float | str):
            return None
        elif isinstance(value, str):
            if not NUMBER.fullmatch(value):
                return None
            text = value.strip()
            numbers.append(int(text) if re.fullmatch(r"[-+]?\d{1,18}", text) else float(text))
        else:
            numbers.append(value)
    return numbers


def _number_texts(numbers: list[int | float | None]) -> list[str]:
    if all(isinstance(number, int) for number in numbers):
        return [f"{number: d}" for number in numbers if isinstance(number, int)]
    floats = [None if number is None else float(number) for number in numbers]
    texts = [f"{number: .{_DIGITS}f}" if number is not None else None for number in floats]
    trimmed = _trim_zeros(texts)
    sizes = [abs(number) for number in floats if number is not None]
    too_long = max(len(text or "NaN") for text in trimmed) > _DIGITS + 6
    has_small = any(0 < size < 10**-_DIGITS for size in sizes)
    if has_small or (too_long and any(size > 1e6 for size in sizes)):
        trimmed = [f"{number: .{_DIGITS}e}" if number is not None else None for number in floats]
    return ["NaN" if text is None else text for text in trimmed]


def _trim_zeros(texts: list[str | None]) -> list[str | None]:
    """Removes the zeros with which all numbers end, but keeps one digit after the point."""
    while all(text is None or text.endswith("0") for text in texts) and any(
        text is not None for text in texts
    ):
        if any(text is not None and text[-2] == "." for text in texts):
            break
        texts = [None if text is None else text[:-1] for text in texts]
    return texts


def _date_texts(values: list[Value]) -> list[str]:
    moments = [value for value in values if isinstance(value, datetime)]
    if all(
        not (moment.hour or moment.minute or moment.second or moment.microsecond)
        for moment in moments
    ):
        form = "%Y-%m-%d"
    elif any(moment.microsecond for moment in moments):
        form = "%Y-%m-%d %H:%M:%S.%f"
    else:
        form = "%Y-%m-%d %H:%M:%S"
    return [value.strftime(form) if isinstance(value, datetime) else "NaT" for value in values]


def _object_text(value: Value) -> str:
    if value is None:
        return " NaN"
    if isinstance(value, float):
        text = f"{value: .{_DIGITS}f}".rstrip("0")
        return f"{text}0" if text.endswith(".") else text
    return f" {_text(value)}".translate(_ESCAPES)


def _text(value: Value) -> str:
    return value.code if isinstance(value, ErrorValue) else str(value)


def is_missing(value: Value) -> bool:
    """Whether pandas reads a value as missing."""
    return value is None or isinstance(value, ErrorValue) or value in _MISSING


_LOGICAL = frozenset({"True", "TRUE", "true", "False", "FALSE", "false"})


def describe(rows: Sequence[Sequence[Value]], columns: int) -> str:
    """Describes the columns of a table as pandas does; the first row gives their labels.

    Args:
        rows: rows of values, all of the same width.
        columns: how many columns to describe.
    """
    if not rows or not rows[0]:
        return "Empty DataFrame"
    body = rows[1:]
    names = labels(rows[0])
    span = f", 0 to {len(body) - 1}" if body else ""
    lines = [
        f"RangeIndex: {len(body)} entries{span}",
        f"Data columns (total {len(names)} columns):",
    ]
    cells = [("#", "Column", "Non-Null Count", "Dtype")]
    for number, name in enumerate(names[:columns]):
        present = [row[number] for row in body if not is_missing(row[number])]
        kind = _kind(present, has_blanks=len(present) < len(body))
        cells.append((str(number), name, f"{len(present)} non-null", kind))
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    cells.insert(1, ("---", "------", "--------------", "-----"))
    widths[0] = max(widths[0], 3)
    for row in cells:
        mark = row[0] if row[0] == "---" else f" {row[0]}"
        rest = (text.ljust(width) for text, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([mark.ljust(widths[0]), *rest]).rstrip())
    return "\n".join(lines)


def _kind(present: Sequence[Value], *, has_blanks: bool) -> str:
    """Returns the type that pandas gives a column with these values."""
    # Most columns repeat their values. The type is part of the key: 1, 1.0 and True are equal.
    kinds = {_kind_of(value) for _, value in {(type(value), value) for value in present}}
    if not kinds:
        return "float64" if has_blanks else "object"
    if kinds <= {"int64", "float64"}:
        return "float64" if has_blanks or "float64" in kinds else "int64"
    if kinds == {"bool"}:
        return "object" if has_blanks else "bool"
    if len(kinds) == 1:
        return kinds.pop()
    # A column that contains text is text as a whole, even if some values look like numbers.
    return "str" if all(isinstance(value, str) for value in present) else "object"


def _kind_of(value: Value) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "int64" if isinstance(value, int) else "float64"
    if isinstance(value, datetime):
        return "datetime64[us]"
    if isinstance(value, str):
        if value in _LOGICAL:
            return "bool"
        if NUMBER.fullmatch(value):
            return "int64" if value.strip().lstrip("+-").isdigit() else "float64"
        return "str"
    return "object"


INFO = "info"
"""The form in which a prompt describes columns instead of showing rows."""

_MAX_INFO_ROWS = 200_000  # read for the description of a table's columns

_RULE = "-" * 50


@dataclass(frozen=True, slots=True)
class ContentLimits:
    """Limits on what a prompt shows of a workbook.

    Attributes:
        rows: maximum number of rows of each sheet, below the first one.
        columns: maximum number of columns of each sheet.
        cell_chars: maximum number of characters of one cell's text.
        total_chars: maximum number of characters of all sheets together; the rest is left out.
        notes: whether notes below each sheet list what is left out, and the merged cells.
    """

    rows: int = 5
    columns: int = 60
    cell_chars: int = 400
    total_chars: int = 24_000
    notes: bool = True


def rows_needed(form: str, rows: int) -> int:
    """Returns how many rows of a sheet must be read to show ``rows`` rows below the first row.

    To describe columns, all rows are read.
    """
    return _MAX_INFO_ROWS if form == INFO else rows + 1


def render_content(
    sheets: Sequence[SheetPreview], form: str, limits: ContentLimits, heading: str = "Sheet Name"
) -> str:
    """Writes the first rows of all sheets.

    Args:
        sheets: the previews; they may hold more rows than are shown.
        form: one of :data:`judge.inference.choices.CONTENT_FORMS`.
        limits: limits on the content.
        heading: text in front of each sheet's name.
    """
    write = _WRITERS.get(form, layout)
    parts: list[str] = []
    room = limits.total_chars
    for number, sheet in enumerate(sheets):
        text, notes = (
            _describe(sheet, limits) if form == INFO else _write_sheet(sheet, write, limits)
        )
        if len(text) > room:
            text = _cut_lines(text, room)
            notes = [*notes, "the rest of the lines was too long to show"]
        room -= len(text)
        shown_notes = [f"[{note}]" for note in notes] if limits.notes else []
        parts.append("\n".join([f"{heading}: {sheet.name}", text, *shown_notes, _RULE]))
        if room <= 0 and number + 1 < len(sheets):
            names = ", ".join(sheet.name for sheet in sheets[number + 1 :])
            parts.append(f"[sheets not shown: {names}]")
            break
    return "\n".join(parts) + "\n"


def _write_sheet(
    sheet: SheetPreview, write: Callable[[Sequence[Sequence[Value]]], str], limits: ContentLimits
) -> tuple[str, list[str]]:
    cut, notes = _cut(sheet, limits)
    if cut.merged:
        inside = [merged for merged in cut.merged if _is_within(merged, cut)]
        if inside:
            shown = ", ".join(inside[:20])
            more = f" and {len(inside) - 20} more" if len(inside) > 20 else ""
            notes.append(f"merged cells, value in the first one: {shown}{more}")
    if cut.rows and all(value is None for row in cut.rows for value in row):
        return f"(rows 1 to {len(cut.rows)} are blank)", notes
    return write(cut.rows), notes


def _describe(sheet: SheetPreview, limits: ContentLimits) -> tuple[str, list[str]]:
    """Returns a description of the columns, and notes on what it leaves out."""
    notes: list[str] = []
    if sheet.more_rows:
        notes.append(f"counted in the first {len(sheet.rows)} rows")
    width = len(sheet.rows[0]) if sheet.rows else 0
    if width > limits.columns:
        notes.append(f"{width - limits.columns} more columns not shown")
    return describe(sheet.rows, limits.columns), notes


def _cut(sheet: SheetPreview, limits: ContentLimits) -> tuple[SheetPreview, list[str]]:
    """Cuts a sheet to the limits; returns it with notes on what is left out."""
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
