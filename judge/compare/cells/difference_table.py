"""Differences as a table of plain text: cell, expected, found, and what is wrong about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from judge.compare.cells.comparison import APART, DifferenceClass

_WIDEST_VALUE = 32
_WIDEST_FORMULA = 60
_AHEAD = 8  # characters that are shown before the first one that differs

_TITLES = ("cell", "expected", "found")
_SAID_ALREADY = {DifferenceClass.MISSING, DifferenceClass.EXTRA, DifferenceClass.WRONG_VALUE}


def common_length(first: str, second: str) -> int:
    """How many characters two strings have in common before they differ."""
    pairs = zip(first, second, strict=False)
    return next(
        (place for place, (one, other) in enumerate(pairs) if one != other),
        min(len(first), len(second)),
    )


def has_values(difference: Mapping[str, Any]) -> bool:
    """Whether a difference, in JSON form, is one of two values that can be shown side by side."""
    kind = difference["kind"]
    return kind not in APART and kind not in {DifferenceClass.MISSING_SHEET, DifferenceClass.STYLE}


def difference_table(differences: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of a table of differences in JSON form, with a heading; no lines for no differences.

    Long strings are cut so that the first character that differs is visible.
    """
    if not differences:
        return []
    rows = [_TITLES, *(_row(difference) for difference in differences)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_TITLES))]
    remarks = ["", *(_remark(difference) for difference in differences)]
    return [
        "  ".join(
            [*(text.ljust(width) for text, width in zip(row, widths, strict=True)), remark]
        ).rstrip()
        for row, remark in zip(rows, remarks, strict=True)
    ]


def _row(difference: Mapping[str, Any]) -> tuple[str, str, str]:
    expected, actual = difference["expected"], difference["actual"]
    start = 0
    if isinstance(expected, str) and isinstance(actual, str):
        start = common_length(expected, actual)
    place = place_of(difference)
    found = "formula without a value" if is_uncomputed(difference) else shown(actual, start)
    return place, shown(expected, start), found


def place_of(difference: Mapping[str, Any]) -> str:
    """Where a difference, in JSON form, is: a cell, or another place that its checker names."""
    place = difference.get("place")
    if isinstance(place, dict):
        parts = (place.get("kind"), difference["sheet"], place.get("name"))
        return " ".join(str(part) for part in parts if part)
    return f"{difference['sheet']}!{difference['cell']}".removesuffix("!")


def is_uncomputed(difference: Mapping[str, Any]) -> bool:
    """Whether a difference, in JSON form, is a formula whose value is not known."""
    return difference["kind"] == DifferenceClass.NOT_CALCULATED and difference["actual"] is None


def shown(value: object, start: int = 0, *, width: int | None = _WIDEST_VALUE) -> str:
    """A value in JSON form as it is written for people: strings in quotes, dates without.

    Args:
        value: the value.
        start: the character of a string that must be visible.
        width: how many characters of a string are shown; None for all.
    """
    if value is None:
        return "blank"
    if isinstance(value, dict):
        if "date" in value:
            return str(value["date"]).removesuffix("T00:00:00").replace("T", " ")
        return str(value.get("error"))
    if isinstance(value, bool):
        return str(value).upper()
    if not isinstance(value, str):
        return str(value)
    if width is None:
        return repr(value)
    text = value
    if len(text) > width and start > width - _AHEAD:
        text = f"…{text[start - _AHEAD :]}"
    return repr(_cut(text, width))


def _remark(difference: Mapping[str, Any]) -> str:
    kind = str(difference["kind"])
    # A detail of a cell that was not calculated says why.
    said = kind in _SAID_ALREADY or (
        kind == DifferenceClass.NOT_CALCULATED and "detail" in difference
    )
    parts = [] if said else [kind.replace("_", " ")]
    if detail := difference.get("detail"):
        parts.append(str(detail))
    if (erased := difference.get("erased")) is not None:
        parts.append(f"erased, the input holds {shown(erased)}")
    formulas = [difference.get(name) for name in ("actual_formula", "expected_formula")]
    for formula, words in zip(formulas, ("from", "gold from"), strict=True):
        if formula:
            parts.append(f"{words} {_cut(' '.join(str(formula).split()), _WIDEST_FORMULA)}")
    return "; ".join(parts)


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
