"""Objects of two sheets compared property by property, under the names that boards give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from judge.compare.boards.cells import SheetCells
from judge.compare.boards.charts import (
    ChartView,
    SeriesView,
    numbers_agree,
    same_values,
    without_blank_end,
)
from judge.compare.boards.conditions import RuleView, same_group
from judge.compare.boards.pivots import PivotView, without_values
from judge.compare.boards.table import values_agree
from judge.compare.rules.matching import unmatched
from judge.workbook.address import COLUMN_BITS, Window, parse_window
from judge.workbook.facts.charts import Trendline
from judge.workbook.facts.sheets import filter_of
from judge.workbook.styles.style_sheet import colours_agree

Compared = dict[str, tuple[object, object, bool]]

# -- charts ---------------------------------------------------------------------------------------


def chart_properties(gold: ChartView, answer: ChartView) -> Compared:
    """The properties of two charts: what both have, and whether it agrees."""
    title, other = (None if each.title is None else _line(each.title) for each in (gold, answer))
    return {
        "chart_type": (gold.types, answer.types, gold.types == answer.types),
        "title": (title, other, title == other),
        "legend": (gold.legend, answer.legend, gold.legend == answer.legend),
        "axes": (_axes(gold), _axes(answer), gold.axes == answer.axes),
        "series": (
            [_series(each) for each in gold.series],
            [_series(each) for each in answer.series],
            _all_match(gold.series, answer.series, _same_series),
        ),
        "trendlines": (
            [_trends(each) for each in gold.series],
            [_trends(each) for each in answer.series],
            _all_match(gold.series, answer.series, _same_trends),
        ),
        "data_labels": (
            [each.labels for each in gold.series],
            [each.labels for each in answer.series],
            _all_match(gold.series, answer.series, _same_labels),
        ),
    }


def _line(text: str) -> str:
    return " ".join(text.split())


def _axes(chart: ChartView) -> str:
    return f"{len(chart.axes)} axes, {sum(chart.axes)} of them with a title"


def _series(series: SeriesView) -> str:
    x, y = (without_blank_end(each) for each in (series.x, series.y))
    marker = "" if series.marker == "automatic" else f", marker {series.marker}"
    return f"{len(y)} values {_some(y)} over {_some(x)}{marker}"


def _some(values: Sequence[object]) -> str:
    said = ", ".join("" if value is None else str(value) for value in values[:6])
    return f"[{said}{', …' if len(values) > 6 else ''}]"


def _trends(series: SeriesView) -> list[str]:
    return [_trend(trendline) for trendline in series.trendlines]


def _trend(line: Trendline) -> str:
    details = [
        f"order {line.order}" if line.order is not None and line.kind == "poly" else "",
        f"period {line.period}" if line.period is not None else "",
        "equation" if line.equation else "",
        "R²" if line.r_squared else "",
    ]
    return ", ".join(each for each in (line.kind, *details) if each)


def _all_match(
    gold: Sequence[SeriesView],
    answer: Sequence[SeriesView],
    agree: object,
) -> bool:
    assert callable(agree)
    left, right = unmatched(gold, answer, agree)
    return not left and not right


def _same_data(gold: SeriesView, answer: SeriesView) -> bool:
    return same_values(without_blank_end(gold.y), without_blank_end(answer.y)) and same_values(
        without_blank_end(gold.x), without_blank_end(answer.x)
    )


def _same_series(gold: SeriesView, answer: SeriesView) -> bool:
    return gold.marker == answer.marker and _same_data(gold, answer)


def _same_trends(gold: SeriesView, answer: SeriesView) -> bool:
    """Whether two series have the same trend lines; what the gold shows of them has to be shown."""
    left, right = unmatched(gold.trendlines, answer.trendlines, _same_trend)
    return not left and not right and _same_data(gold, answer)


def _same_trend(gold: Trendline, answer: Trendline) -> bool:
    if gold.kind != answer.kind or gold.period != answer.period:
        return False
    if gold.kind == "poly" and (gold.order or 2) != (answer.order or 2):
        return False
    return (answer.equation or not gold.equation) and (answer.r_squared or not gold.r_squared)


def _same_labels(gold: SeriesView, answer: SeriesView) -> bool:
    """Whether both have labels, or none; what the gold's show has to be shown."""
    if gold.labels is None or answer.labels is None:
        same = gold.labels == answer.labels
    else:
        same = set(gold.labels) <= set(answer.labels)
    return same and _same_data(gold, answer)


# -- pivot tables ---------------------------------------------------------------------------------


def pivot_properties(gold: PivotView, answer: PivotView) -> Compared:
    """The properties of two pivot tables; rows and columns may be exchanged."""
    first, second = (
        (without_values(each.rows), without_values(each.columns)) for each in (gold, answer)
    )
    turned = first == (second[1], second[0])
    columns = [sorted(name for name, _ in each.data) for each in (gold, answer)]
    data = [sorted(each.data) for each in (gold, answer)]
    filters = [(sorted(each.pages), each.hidden) for each in (gold, answer)]
    return {
        "name": (gold.name, answer.name, gold.name == answer.name),
        "source": (gold.source, answer.source, gold.source == answer.source),
        "filters": (_filters(gold), _filters(answer), filters[0] == filters[1]),
        "rows": (first[0], second[0], turned or first[0] == second[0]),
        "columns": (first[1], second[1], turned or first[1] == second[1]),
        "values": (_data(gold), _data(answer), data[0] == data[1]),
        "summary_type": (
            _data(gold),
            _data(answer),
            # Of other columns the functions cannot be compared.
            data[0] == data[1] if columns[0] == columns[1] else _functions(gold, answer),
        ),
    }


def _functions(gold: PivotView, answer: PivotView) -> bool:
    first, second = (sorted(function for _, function in each.data) for each in (gold, answer))
    return first == second


def _data(pivot: PivotView) -> list[str]:
    return [f"{function} of {column}" for column, function in pivot.data]


def _filters(pivot: PivotView) -> list[str]:
    hidden = [f"{field} without {item}" for field, item in pivot.hidden]
    return [*sorted(pivot.pages), *hidden]


# -- filters --------------------------------------------------------------------------------------


def filter_properties(gold: SheetCells, answer: SheetCells) -> Compared:
    """The filters of two sheets: their ranges, and the cells of them that are shown."""
    places = _filter_place(gold), _filter_place(answer)
    if places[0] is None or places[1] is None:
        first, second = (None if each is None else str(each) for each in places)
        return dict.fromkeys(("filters", "source"), (first, second, first == second))
    keys = gold.visible(places[0]), answer.visible(places[1])
    wrong = next(
        (
            (one, other)
            for one, other in zip(*keys, strict=False)
            if not values_agree(gold, one, answer, other)
        ),
        None,
    )
    rows = [sorted({key >> COLUMN_BITS for key in each}) for each in keys]
    same = len(keys[0]) == len(keys[1]) and wrong is None
    return {
        "filters": (_rows(rows[0]), _rows(rows[1]), same),
        "source": (str(places[0]), str(places[1]), places[0] == places[1]),
    }


def _rows(rows: Sequence[int]) -> str:
    shown = ", ".join(map(str, rows[:8])) + (", …" if len(rows) > 8 else "")
    return f"{len(rows)} rows shown: {shown}"


def _filter_place(sheet: SheetCells) -> Window | None:
    """The range of a sheet's filter, else of its first table that is filtered, within its cells."""
    facts = sheet.owner.book.facts
    found = filter_of(facts.tree(sheet.tab).child("autoFilter"))
    place = None if found is None else found.place
    if place is None:
        filters = [table.filter for table in facts.sheet(sheet.tab).tables]
        place = next((each.place for each in filters if each is not None and each.columns), None)
    window = None if place is None else parse_window(place.replace("$", "").upper())
    if window is None:
        return None
    return replace(
        window,
        max_row=max(window.min_row, min(window.max_row, sheet.last_row)),
        max_column=max(window.min_column, min(window.max_column, sheet.last_column)),
    )


# -- conditional formats --------------------------------------------------------------------------


def merged_rules(rules: Sequence[RuleView], sheet: SheetCells) -> list[RuleView]:
    """Rules that say the same of different ranges as one; each within the cells in use."""
    rows, columns = sheet.last_row, sheet.last_column
    merged: dict[RuleView, list[Window]] = {}
    for rule in rules:
        inside = [
            Window(
                window.min_row,
                window.min_column,
                min(window.max_row, max(rows, window.min_row)),
                min(window.max_column, max(columns, window.min_column)),
            )
            for window in rule.windows
        ]
        merged.setdefault(replace(rule, windows=()), []).extend(inside)
    return [replace(rule, windows=tuple(sorted(each))) for rule, each in merged.items()]


def rule_properties(gold: RuleView, answer: RuleView) -> Compared:
    """The properties of two rules. Where a rule applies belongs to its condition."""
    found: Compared = {
        "type": (gold.kind, answer.kind, gold.kind == answer.kind),
        "operator": (gold.operator, answer.operator, gold.operator == answer.operator),
        "formula1": (
            str(gold),
            str(answer),
            _same_condition(gold, answer) and same_cells(gold.windows, answer.windows),
        ),
        "color": (gold.color, answer.color, _same_colour(gold.color, answer.color)),
        "fill_color": (gold.fill, answer.fill, _same_colour(gold.fill, answer.fill)),
    }
    for name in ("bold", "italic", "underline"):
        first, second = getattr(gold, name), getattr(answer, name)
        nothing = {None, False, "none"}
        same = first == second or (first in nothing and second in nothing)
        found[name] = (first, second, same)
    return found


def _same_condition(gold: RuleView, answer: RuleView) -> bool:
    first, second = gold.condition, answer.condition
    return len(first) == len(second) and all(
        a == b or (isinstance(a, str) and isinstance(b, str) and _same_number(a, b))
        for a, b in zip(first, second, strict=True)
    )


def _same_number(first: str, second: str) -> bool:
    try:
        return numbers_agree(float(first), float(second))
    except ValueError:
        return False


def _same_colour(first: str | None, second: str | None) -> bool:
    if first is None or second is None:
        return first == second
    return colours_agree(first, second) or same_group(first, second)


def same_cells(first: Sequence[Window], second: Sequence[Window]) -> bool:
    """Whether two lists of rectangles cover the same cells, the first row left aside.

    Rules may or may not include the headings.
    """
    return _bands(first) == _bands(second)


_MAX_WINDOWS = 300


def _bands(windows: Sequence[Window]) -> tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]:
    """The covered cells as runs of rows with the same runs of columns."""
    kept = [
        replace(window, min_row=max(2, window.min_row)) for window in windows if window.max_row >= 2
    ][:_MAX_WINDOWS]
    edges = sorted({row for each in kept for row in (each.min_row, each.max_row + 1)})
    found: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []
    for first, after in pairwise(edges):
        columns = _joined(
            sorted(
                (each.min_column, each.max_column)
                for each in kept
                if each.min_row <= first <= each.max_row
            )
        )
        if not columns:
            continue
        if found and found[-1][1] == first - 1 and found[-1][2] == columns:
            found[-1] = (found[-1][0], after - 1, columns)
        else:
            found.append((first, after - 1, columns))
    return tuple(found)


def _joined(runs: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for first, last in runs:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)
