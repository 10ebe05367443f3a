"""Rows laid out as ``pandas.read_excel(...).head(n).to_string()`` lays them out. Pure.

This is how the benchmark's prompts show a sheet. Row 1 gives the labels, blanks are NaN, and text
that looks like a number becomes a number if the whole column can. pandas infers the type of a
column from all of its rows, but here only the rows that are shown are known: a column of whole
numbers with a blank further down is shown as ``1``, not as ``1.0``.

Source: behaviour of pandas 2.3, compared on 300 published workbooks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from judge.workbook.cell import ErrorValue
from judge.workbook.preview import Value

_MISSING = frozenset(
    {"", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"}
    | {"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"}
)
NUMBER = re.compile(r"\s*[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?\s*")
_ESCAPES = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})
_DIGITS = 6


def layout(rows: Sequence[Sequence[Value]]) -> str:
    """Lays rows out; the first one gives the labels.

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
    """The labels of columns, as pandas makes them unique and names blank ones."""
    taken: dict[str, int] = {}
    found: list[str] = []
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
        found.append(label.translate(_ESCAPES))
    return found


def _column(label: str, values: list[Value]) -> list[str]:
    kept = [None if is_missing(value) else value for value in values]
    texts, is_number = _formatted(kept)
    if is_number:
        label = f" {label}"
    width = max(len(label), *(len(text) for text in texts))
    return [label.rjust(width), *(text.rjust(width) for text in texts)]


def _formatted(values: list[Value]) -> tuple[list[str], bool]:
    """The strings of one column, and whether pandas treats it as numeric."""
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
    """Takes zeros off the ends of all numbers together, one digit behind the point stays."""
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
