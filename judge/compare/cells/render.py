"""Renders a comparison as JSON, as one line, and as a table for people."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence

from judge.compare.cells.comparison import OUTSIDE_ANSWER, Comparison, Difference, DifferenceClass
from judge.compare.cells.options import OFF
from judge.compare.cells.value import text_as_number
from judge.console import clipped
from judge.core.records.cases import CaseComparison, DifferenceRecord, SheetValues
from judge.workbook.address import Window, cell_name
from judge.workbook.cell import CellRange, CellValue, ComputedValues, ErrorValue

_MAX_VALUE_CHARS = 32
_MAX_FORMULA_CHARS = 60
_AHEAD = 8  # characters that are shown before the first one that differs

_TITLES = ("cell", "expected", "found")
_SAID_ALREADY = {DifferenceClass.MISSING, DifferenceClass.EXTRA, DifferenceClass.WRONG_VALUE}


def common_length(first: str, second: str) -> int:
    """Returns the length of the common start of two strings."""
    pairs = zip(first, second, strict=False)
    return next(
        (index for index, (one, other) in enumerate(pairs) if one != other),
        min(len(first), len(second)),
    )


def has_values(difference: DifferenceRecord) -> bool:
    """Whether a difference, in JSON form, has two values that can be shown next to each other."""
    kind = difference["kind"]
    return kind not in OUTSIDE_ANSWER and kind not in {
        DifferenceClass.MISSING_SHEET,
        DifferenceClass.STYLE,
    }


def difference_table(differences: Sequence[DifferenceRecord]) -> list[str]:
    """Returns differences in JSON form as the lines of a table with a heading; may be empty.

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


def _row(difference: DifferenceRecord) -> tuple[str, str, str]:
    expected, actual = difference["expected"], difference["actual"]
    start = 0
    if isinstance(expected, str) and isinstance(actual, str):
        start = common_length(expected, actual)
    position = place_of(difference)
    shown_actual = "formula without a value" if is_uncomputed(difference) else shown(actual, start)
    return position, shown(expected, start), shown_actual


def place_of(difference: DifferenceRecord) -> str:
    """Returns the location of a difference in JSON form: a cell, or another part of the answer."""
    position = difference.get("place")
    if isinstance(position, dict):
        parts = (position.get("kind"), difference["sheet"], position.get("name"))
        return " ".join(str(part) for part in parts if part)
    return f"{difference['sheet']}!{difference['cell']}".removesuffix("!")


def is_uncomputed(difference: DifferenceRecord) -> bool:
    """Whether a difference, in JSON form, is a formula whose value is unknown."""
    return difference["kind"] == DifferenceClass.NOT_CALCULATED and difference["actual"] is None


def shown(value: object, start: int = 0, *, width: int | None = _MAX_VALUE_CHARS) -> str:
    """Formats a value in JSON form for people: strings have quotes, dates do not.

    Args:
        value: the value.
        start: position in a string that has to be visible.
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


def _remark(difference: DifferenceRecord) -> str:
    kind = str(difference["kind"])
    # For a cell that was not calculated, the detail says why.
    is_repeated = kind in _SAID_ALREADY or (
        kind == DifferenceClass.NOT_CALCULATED and "detail" in difference
    )
    parts = [] if is_repeated else [kind.replace("_", " ")]
    if detail := difference.get("detail"):
        parts.append(str(detail))
    if (erased := difference.get("erased")) is not None:
        parts.append(f"erased, the input holds {shown(erased)}")
    formulas = [difference.get(name) for name in ("actual_formula", "expected_formula")]
    for formula, words in zip(formulas, ("from", "gold from"), strict=True):
        if formula:
            parts.append(f"{words} {_cut(' '.join(str(formula).split()), _MAX_FORMULA_CHARS)}")
    return "; ".join(parts)


_MAX_TEXT_CHARS = 200
_CHARS_AFTER_DIFFERENCE = 40  # of a cut string that stay visible

_WORDS = {
    DifferenceClass.MISSING: "is blank",
    DifferenceClass.EXTRA: "should be blank",
    DifferenceClass.WRONG_VALUE: "wrong value",
    DifferenceClass.NUMBER_AS_TEXT: "number as text",
    DifferenceClass.TYPE: "wrong type",
    DifferenceClass.ERROR_VALUE: "error value",
    DifferenceClass.NOT_CALCULATED: "not calculated",
    DifferenceClass.MISSING_SHEET: "sheet is missing",
    DifferenceClass.WRONG_FORMULA: "wrong formula",
    DifferenceClass.STYLE: "style differs",
    DifferenceClass.TOUCHED: "changed",
    DifferenceClass.LOST: "lost",
    DifferenceClass.NO_FORMULA: "no formula",
    DifferenceClass.COLLATERAL: "collateral damage",
    DifferenceClass.NOT_LIVE: "does not follow its inputs",
}


def kind_words(kind: str) -> str:
    """Returns the words for a class of difference, of any checker."""
    words_of = {member.value: words for member, words in _WORDS.items()}
    return words_of.get(kind, kind.replace("_", " "))


def value_to_json(value: CellValue) -> object:
    """Converts a cell value to JSON: dates and times to ISO text, errors to ``{"error": "#N/A"}``.

    Durations are hours, minutes and seconds, such as ``30:00:00``. Long strings are cut;
    numbers that JSON cannot express become strings.
    """
    if isinstance(value, ErrorValue):
        return {"error": value.code}
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, dt.timedelta):
        return _duration(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str):
        return _cut(value)
    return value


def _duration(value: dt.timedelta) -> str:
    """Formats a duration as spreadsheets do: hours, minutes, seconds."""
    whole, rest = divmod(abs(value), dt.timedelta(seconds=1))
    minutes, seconds = divmod(whole, 60)
    fraction = f"{rest.microseconds / 1e6:.3f}".removeprefix("0").rstrip("0") if rest else ""
    sign = "-" if value < dt.timedelta() else ""
    return f"{sign}{minutes // 60}:{minutes % 60:02}:{seconds:02}{fraction}"


def _dated(value: CellValue) -> object:
    """Converts a value to JSON so that no string can be mistaken for a date, time or duration."""
    shown = value_to_json(value)
    is_date = isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta)
    return {"date": shown} if is_date else shown


def _cut(text: str, length: int = _MAX_TEXT_CHARS) -> str:
    return clipped(text, length)


def range_name(cell_range: CellRange) -> str:
    """Returns the name of a range, such as ``'Sheet1'!A1:B9``."""
    sheet = cell_range.sheet.replace("'", "''")
    bounds = (
        cell_range.min_row,
        cell_range.min_column,
        cell_range.max_row,
        cell_range.max_column,
    )
    return f"'{sheet}'!{Window(*bounds)}"


def comparison_to_json(comparison: Comparison) -> CaseComparison:
    """Converts a comparison to JSON; it counts all differences and lists those that were kept."""
    record: CaseComparison = {
        "equal": comparison.equal,
        "profile": comparison.profile,
        "official_equal": comparison.official_equal,
        "ranges": [range_name(compared) for compared in comparison.ranges],
        "cells": comparison.cells,
        "differing_cells": comparison.differing_cells,
        "touched_cells": comparison.touched_cells,
        "groups": {
            group.name: {"cells": group.cells, "differing_cells": group.differing_cells}
            for group in comparison.groups
        },
        "cell_accuracy": comparison.cell_accuracy,
        "difference_counts": {
            kind.value: count for kind, count in comparison.difference_counts.items()
        },
        "differences": [_difference_to_json(difference) for difference in comparison.differences],
        "notes": list(comparison.notes),
    }
    if (shares := comparison.shares) is not None:
        record["shares"] = {
            "modification": shares.modification,
            "regression": shares.regression,
        }
    if (scope := comparison.scope) is not None:
        # Recorded only if an option requests it.
        if scope.keep != OFF:
            record["kept"] = scope.kept_to_json()
        if scope.formula_asked != OFF:
            record["formula_asked"] = scope.formula_to_json()
    if (figures := comparison.figures) is not None:
        collateral, dynamic = figures.to_json()
        if collateral is not None:
            record["collateral"] = collateral
        if dynamic is not None:
            record["dynamic"] = dynamic
    return record


def computed_to_json(computed: ComputedValues, limit: int) -> SheetValues:
    """Converts the first computed values, in reading order, to JSON: sheet -> address -> value.

    Dates and times become ``{"date": "2024-01-31T00:00:00"}``, so that no string is mistaken for a
    date.
    """
    sheets: SheetValues = {}
    for ref in sorted(computed.values)[:limit]:
        shown = _dated(computed.values[ref])
        sheets.setdefault(ref.sheet, {})[cell_name(ref.row, ref.column)] = shown
    return sheets


def _difference_to_json(difference: Difference) -> DifferenceRecord:
    expected, actual = _from_where_they_differ(difference.expected, difference.actual)
    record: DifferenceRecord = {
        "kind": difference.kind.value,
        "sheet": difference.sheet,
        "cell": difference.cell,
        "expected": _dated(expected),
        "actual": _dated(actual),
    }
    if difference.erased is not None:
        record["erased"] = _dated(difference.erased)
    if difference.expected_formula:
        record["expected_formula"] = _cut(difference.expected_formula)
    if difference.actual_formula:
        record["actual_formula"] = _cut(difference.actual_formula)
    if difference.detail:
        record["detail"] = _cut(difference.detail)
    return record


def _from_where_they_differ(expected: CellValue, actual: CellValue) -> tuple[CellValue, CellValue]:
    """Cuts the common start off two long strings if the difference would not be shown otherwise."""
    if isinstance(expected, str) and isinstance(actual, str):
        start = common_length(expected, actual)
        if start > _MAX_TEXT_CHARS - _CHARS_AFTER_DIFFERENCE:
            start -= _CHARS_AFTER_DIFFERENCE
            return f"…{expected[start:]}", f"…{actual[start:]}"
    return expected, actual


# -- text -----------------------------------------------------------------------------------------


def first_difference(comparison: Comparison) -> str:
    """Returns one line that says what is wrong; empty if the output is accepted.

    It shows the most typical difference, and counts the others by class.
    """
    if comparison.equal:
        return ""
    if not comparison.differences:
        return next(iter(comparison.notes), "the output is not accepted")
    lead = _lead(comparison.differences)
    line = _line(_difference_to_json(lead))
    rest = dict(comparison.difference_counts)
    rest[lead.kind] = rest.get(lead.kind, 0) - 1
    touched, lost = (rest.pop(kind, 0) for kind in (DifferenceClass.TOUCHED, DifferenceClass.LOST))
    for kind in (DifferenceClass.NO_FORMULA, DifferenceClass.COLLATERAL, DifferenceClass.NOT_LIVE):
        rest.pop(kind, None)
    more = comparison.differing_cells - (lead.kind not in OUTSIDE_ANSWER)
    remarks = []
    if more > 0 and lead.kind is not DifferenceClass.MISSING_SHEET:
        # If there is only one class, the cell that is shown has it already.
        counted = _counted(rest) if rest.get(lead.kind, 0) != more else ""
        remarks.append(f"{more:,} more of {comparison.cells:,} cells{counted and f': {counted}'}")
    elif more > 0:
        remarks.append(f"{comparison.differing_cells:,} of {comparison.cells:,} cells differ")
    if touched > 0:
        other = "other " if lead.kind is DifferenceClass.TOUCHED else ""
        remarks.append(f"{touched:,} {other}cells outside the answer range changed")
    if lost > 0:
        other = "more " if lead.kind is DifferenceClass.LOST else ""
        remarks.append(f"{lost:,} {other}things that the input had were lost")
    return f"{line} (and {'; '.join(remarks)})" if remarks else line


def _lead(differences: Sequence[Difference]) -> Difference:
    """Returns the first difference of the largest group of similar differences.

    A missing sheet comes first, because it explains all other differences. A wrong value comes
    before an unknown value. If equally many strings and numbers differ, a number comes first, since
    the strings are probably headings.
    """

    def alike(difference: Difference) -> tuple[DifferenceClass, bool]:
        value = difference.actual if difference.expected is None else difference.expected
        return difference.kind, isinstance(value, str) and text_as_number(value) is None

    groups: dict[tuple[DifferenceClass, bool], list[Difference]] = {}
    for entry in differences:
        groups.setdefault(alike(entry), []).append(entry)

    def weight(group: tuple[DifferenceClass, bool]) -> tuple[bool, bool, int, bool]:
        kind, is_text = group
        within = kind not in OUTSIDE_ANSWER
        is_computed = kind is not DifferenceClass.NOT_CALCULATED
        return (
            kind is DifferenceClass.MISSING_SHEET,
            within and is_computed,
            len(groups[group]) if within else 0,
            not is_text,
        )

    return groups[max(groups, key=weight)][0]


def _counted(counts: Mapping[DifferenceClass, int]) -> str:
    """Returns the number of differences by class, in words."""
    return ", ".join(
        f"{count:,} {kind.value.replace('_', ' ')}" for kind, count in counts.items() if count
    )


def difference_lines(record: CaseComparison, limit: int) -> list[str]:
    """Returns one line for each of the first differences of a comparison in JSON form."""
    differences: Sequence[DifferenceRecord] = record.get("differences", ())
    lines = [_line(difference) for difference in differences[:limit]]
    more = int(record.get("differing_cells", 0)) - len(lines)
    if lines and more > 0:
        lines.append(f"… and {more:,} more")
    return lines


def difference_overview(record: CaseComparison, limit: int) -> list[str]:
    """Returns the first differences of a comparison in JSON form, for a screen of fixed width.

    Values are listed in a table; styles, lost sheets and cells outside the range follow as lines.
    """
    differences: Sequence[DifferenceRecord] = record.get("differences", ())[:limit]
    lines = difference_table([difference for difference in differences if has_values(difference)])
    lines += [_line(difference) for difference in differences if not has_values(difference)]
    counted = int(record.get("differing_cells", 0)) + int(record.get("touched_cells") or 0)
    counts = record.get("difference_counts", {})
    counted += sum(
        counts.get(kind, 0) for kind in (DifferenceClass.LOST, DifferenceClass.NO_FORMULA)
    )
    more = counted - len(differences)
    if differences and more > 0:
        lines.append(f"… and {more:,} more")
    return lines


def render_text(comparison: Comparison, *, limit: int = 20) -> str:
    """Renders a comparison for people: verdict, counts, first differences and notes."""
    record = comparison_to_json(comparison)
    agreeing = comparison.cells - min(comparison.differing_cells, comparison.cells)
    verdict = "equal" if comparison.equal else "different"
    agreed = f"{agreeing:,} of {comparison.cells:,} cells agree ({_percent(comparison)})"
    lines = [
        f"{verdict} under {comparison.profile}: {agreed} in {_ranges(comparison.ranges)}",
    ]
    if comparison.difference_counts:
        lines.append(f"  {_counted(comparison.difference_counts)}")
    lines += [f"  {line}" for line in difference_overview(record, limit)]
    lines += [
        f"  {group.name}: {group.cells - group.differing_cells:,} of {group.cells:,} cells agree"
        for group in comparison.groups
    ]
    if comparison.official_equal not in {None, comparison.equal}:
        accepts = "accepts" if comparison.official_equal else "does not accept"
        lines.append(f"  note: the published script {accepts} this")
    lines += [f"  note: {note}" for note in comparison.notes]
    return "\n".join(lines)


def _percent(comparison: Comparison) -> str:
    share = 100 * comparison.cell_accuracy
    # Rounding must not hide a difference: 100 % is shown only if every cell agrees.
    if comparison.differing_cells and share > 99.9:
        share = min(share, 99.99)
    return f"{share:.2f} %"


def _ranges(ranges: Sequence[CellRange], limit: int = 4) -> str:
    names = [range_name(compared) for compared in ranges[:limit]]
    if len(ranges) > limit:
        names.append(f"{len(ranges) - limit} more")
    return ", ".join(names) or "no cell"


def _line(difference: DifferenceRecord) -> str:
    kind = str(difference["kind"])
    words = kind_words(kind)
    detail = difference.get("detail")
    if kind == DifferenceClass.MISSING_SHEET:
        return str(detail or f"sheet {difference['sheet']!r} is missing")
    position = place_of(difference)
    if kind == DifferenceClass.STYLE:
        return f"{position}: {words}: {detail}"
    if kind in {DifferenceClass.LOST, DifferenceClass.NO_FORMULA}:
        return f"{words}: {detail}"
    if kind == DifferenceClass.TOUCHED:
        # A sheet that was removed has no cell to name.
        return (
            f"{position}: {_change(difference)} ({detail})" if difference["cell"] else str(detail)
        )
    erased = difference.get("erased")
    if kind == DifferenceClass.MISSING and erased is not None:
        words, erasure = "erased", f"the input holds {shown(erased, width=None)}"
        detail = f"{erasure}; {detail}" if detail else erasure
    expected, actual = _with_formulas(difference)
    return f"{position}: {words}: expected {expected}, found {actual}" + (
        f" ({detail})" if detail else ""
    )


def _change(difference: DifferenceRecord) -> str:
    """Returns how a cell outside the answer range was changed."""
    was, now = _with_formulas(difference)
    if difference.get("expected_formula") == difference.get("actual_formula"):
        was = shown(difference["expected"], width=None)
        now = shown(difference["actual"], width=None)
    if now == "blank":
        return f"erased: was {was}"
    if was == "blank":
        return f"added: is {now}"
    return f"{_WORDS[DifferenceClass.TOUCHED]}: was {was}, is {now}"


def _with_formulas(difference: DifferenceRecord) -> tuple[str, str]:
    """Returns the expected and the actual value, with the formulas that give them."""
    expected = _with_formula(difference["expected"], difference.get("expected_formula"))
    formula = difference.get("actual_formula")
    if formula and is_uncomputed(difference):
        return expected, f"{_written(formula)} without a value"
    return expected, _with_formula(difference["actual"], formula)


def _with_formula(value: object, formula: str | None) -> str:
    text = shown(value, width=None)
    return f"{text} from {_written(formula)}" if formula else text


def _written(formula: str) -> str:
    return _cut(" ".join(str(formula).split()))
