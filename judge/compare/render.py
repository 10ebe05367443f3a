"""A comparison as JSON and as text that a person reads at a glance."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from typing import Any

from judge.compare.address import Window, cell_name
from judge.compare.cell import CellRange, CellValue, ComputedValues, ErrorValue
from judge.compare.comparison import Comparison, Difference, DifferenceClass
from judge.compare.difference_table import common_length, difference_table, has_values

_LONGEST_TEXT = 200
_SHOWN_OF_A_DIFFERENCE = 40

_WORDS = {
    DifferenceClass.MISSING: "is blank",
    DifferenceClass.EXTRA: "should be blank",
    DifferenceClass.WRONG_VALUE: "wrong value",
    DifferenceClass.NUMBER_AS_TEXT: "number as text",
    DifferenceClass.TYPE: "wrong type",
    DifferenceClass.ERROR_VALUE: "error value",
    DifferenceClass.NOT_CALCULATED: "not calculated",
    DifferenceClass.MISSING_SHEET: "sheet is missing",
    DifferenceClass.STYLE: "style differs",
    DifferenceClass.TOUCHED: "changed",
}


def value_to_json(value: CellValue) -> object:
    """A cell value as JSON: dates and times as ISO text, errors as ``{"error": "#N/A"}``.

    Long texts are cut; numbers that JSON cannot say become text.
    """
    if isinstance(value, ErrorValue):
        return {"error": value.code}
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return _iso_duration(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return _cut(value)
    return value


def _iso_duration(value: dt.timedelta) -> str:
    seconds = value.total_seconds()
    return f"{'-' if seconds < 0 else ''}PT{abs(seconds):g}S"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"


def range_name(cell_range: CellRange) -> str:
    """A range such as ``'Sheet1'!A1:B9``."""
    sheet = cell_range.sheet.replace("'", "''")
    bounds = (
        cell_range.min_row,
        cell_range.min_column,
        cell_range.max_row,
        cell_range.max_column,
    )
    return f"'{sheet}'!{Window(*bounds)}"


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """A comparison as a JSON object; all differences are counted in it, the kept ones listed."""
    return {
        "equal": comparison.equal,
        "profile": comparison.profile,
        "official_equal": comparison.official_equal,
        "ranges": [range_name(each) for each in comparison.ranges],
        "cells": comparison.cells,
        "differing_cells": comparison.differing_cells,
        "touched_cells": comparison.touched_cells,
        "groups": {
            each.name: {"cells": each.cells, "differing_cells": each.differing_cells}
            for each in comparison.groups
        },
        "cell_accuracy": comparison.cell_accuracy,
        "difference_counts": {
            kind.value: count for kind, count in comparison.difference_counts.items()
        },
        "differences": [_difference_to_json(each) for each in comparison.differences],
        "notes": list(comparison.notes),
    }


def computed_to_json(computed: ComputedValues, limit: int) -> dict[str, dict[str, object]]:
    """Computed values as a JSON object: sheet -> address -> value, the first ones in reading order.

    Dates and times are ``{"date": "2024-01-31T00:00:00"}``, so that no text is taken for one.
    """
    found: dict[str, dict[str, object]] = {}
    for ref in sorted(computed.values)[:limit]:
        value = computed.values[ref]
        shown = value_to_json(value)
        if isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta):
            shown = {"date": shown}
        found.setdefault(ref.sheet, {})[cell_name(ref.row, ref.column)] = shown
    return found


def _difference_to_json(difference: Difference) -> dict[str, Any]:
    expected, actual = _from_where_they_differ(difference.expected, difference.actual)
    record: dict[str, Any] = {
        "kind": difference.kind.value,
        "sheet": difference.sheet,
        "cell": difference.cell,
        "expected": value_to_json(expected),
        "actual": value_to_json(actual),
    }
    for name in ("expected_formula", "actual_formula", "detail"):
        text = getattr(difference, name)
        if text:
            record[name] = _cut(text)
    return record


def _from_where_they_differ(expected: CellValue, actual: CellValue) -> tuple[CellValue, CellValue]:
    """Two long texts without what they have in common, should cutting them hide the rest."""
    if isinstance(expected, str) and isinstance(actual, str):
        start = common_length(expected, actual)
        if start > _LONGEST_TEXT - _SHOWN_OF_A_DIFFERENCE:
            start -= _SHOWN_OF_A_DIFFERENCE
            return f"…{expected[start:]}", f"…{actual[start:]}"
    return expected, actual


# -- text -----------------------------------------------------------------------------------------


def first_difference(comparison: Comparison) -> str:
    """One line that says what is wrong; empty where nothing is."""
    if comparison.equal:
        return ""
    if not comparison.differences:
        return next(iter(comparison.notes), "the output is not accepted")
    line = _line(_difference_to_json(comparison.differences[0]))
    more = comparison.differing_cells - 1
    return f"{line} (and {more:,} more of {comparison.cells:,} cells)" if more > 0 else line


def difference_lines(record: Mapping[str, Any], limit: int) -> list[str]:
    """The first differences of a comparison's JSON form, a line for each."""
    differences: Sequence[Mapping[str, Any]] = record.get("differences", ())
    lines = [_line(each) for each in differences[:limit]]
    more = int(record.get("differing_cells", 0)) - len(lines)
    if lines and more > 0:
        lines.append(f"… and {more:,} more")
    return lines


def difference_overview(record: Mapping[str, Any], limit: int) -> list[str]:
    """The first differences of a comparison's JSON form, for a screen of fixed width.

    Values stand in a table; styles, lost sheets and cells outside the range follow as lines.
    """
    differences: Sequence[Mapping[str, Any]] = record.get("differences", ())[:limit]
    lines = difference_table([each for each in differences if has_values(each)])
    lines += [_line(each) for each in differences if not has_values(each)]
    counted = int(record.get("differing_cells", 0)) + int(record.get("touched_cells") or 0)
    more = counted - len(differences)
    if differences and more > 0:
        lines.append(f"… and {more:,} more")
    return lines


def render_text(comparison: Comparison, *, limit: int = 20) -> str:
    """A comparison for a person: the verdict, the counts, the first differences, the notes."""
    record = comparison_to_json(comparison)
    agreeing = comparison.cells - min(comparison.differing_cells, comparison.cells)
    verdict = "equal" if comparison.equal else "different"
    agreed = f"{agreeing:,} of {comparison.cells:,} cells agree ({_percent(comparison)})"
    lines = [
        f"{verdict} under {comparison.profile}: {agreed} in {_ranges(comparison.ranges)}",
    ]
    if comparison.difference_counts:
        counted = ", ".join(
            f"{count:,} {kind.value.replace('_', ' ')}"
            for kind, count in comparison.difference_counts.items()
        )
        lines.append(f"  {counted}")
    lines += [f"  {line}" for line in difference_overview(record, limit)]
    lines += [
        f"  {each.name}: {each.cells - each.differing_cells:,} of {each.cells:,} cells agree"
        for each in comparison.groups
    ]
    if comparison.official_equal not in {None, comparison.equal}:
        accepts = "accepts" if comparison.official_equal else "does not accept"
        lines.append(f"  note: the published script {accepts} this")
    lines += [f"  note: {note}" for note in comparison.notes]
    return "\n".join(lines)


def _percent(comparison: Comparison) -> str:
    share = 100 * comparison.cell_accuracy
    # Never round a difference away.
    if comparison.differing_cells and share > 99.9:
        share = min(share, 99.99)
    return f"{share:.2f} %"


def _ranges(ranges: Sequence[CellRange], limit: int = 4) -> str:
    names = [range_name(each) for each in ranges[:limit]]
    if len(ranges) > limit:
        names.append(f"{len(ranges) - limit} more")
    return ", ".join(names) or "no cell"


def _line(difference: Mapping[str, Any]) -> str:
    kind = DifferenceClass(difference["kind"])
    words = _WORDS[kind]
    detail = difference.get("detail")
    if kind is DifferenceClass.MISSING_SHEET:
        return str(detail or f"sheet {difference['sheet']!r} is missing")
    place = f"{difference['sheet']}!{difference['cell']}".removesuffix("!")
    if kind is DifferenceClass.STYLE:
        return f"{place}: {words}: {detail}"
    if kind is DifferenceClass.TOUCHED:
        was, now = _shown(difference["expected"]), _shown(difference["actual"])
        return f"{place}: {words}: was {was}, is {now} ({detail})"
    values = f"expected {_shown(difference['expected'])}, found {_shown(difference['actual'])}"
    formula = difference.get("actual_formula")
    if formula:
        values += f" from {_cut(str(formula))}"
    return f"{place}: {words}: {values}" + (f" ({detail})" if detail else "")


def _shown(value: object) -> str:
    if value is None:
        return "blank"
    if isinstance(value, dict):
        return str(value.get("error"))
    if isinstance(value, bool):
        return str(value).upper()
    return repr(value) if isinstance(value, str) else str(value)
