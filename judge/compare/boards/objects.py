"""Compares two sheets property by property; the properties have the names used in boards.

The table at A1 is compared by its headings, all other cells by their addresses. Charts, pivot
tables, filters and conditional formats are compared as objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from judge.compare.boards.board import Differences, Evidence, shown, where
from judge.compare.boards.cells import FONT_FIELDS, BoardBook, SheetCells, differing_field
from judge.compare.boards.charts import (
    ChartView,
    SeriesView,
    numbers_agree,
    same_values,
    without_blank_end,
)
from judge.compare.boards.conditions import RuleView, same_group
from judge.compare.rules.methods import unmatched
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    Window,
    cell_key,
    cell_name,
    parse_window,
)
from judge.workbook.cell import CellValue
from judge.workbook.facts.charts import Trendline
from judge.workbook.facts.pivots import Pivot
from judge.workbook.facts.sheets import filter_of
from judge.workbook.styles.style_sheet import colours_agree
from judge.workbook.workbook_parts import Tab


class TableJudge:
    """Compares the cells of two sheets.

    Args:
        gold: the sheet of the gold.
        answer: the sheet of the answer.
        number: number of the sheet in the board.
        required: which of ``values``, ``formatting`` and ``hyperlink`` the board asks for.
        differences: receives the first difference of each property.
    """

    def __init__(
        self,
        gold: SheetCells,
        answer: SheetCells,
        number: int,
        required: Sequence[str],
        differences: Differences,
    ) -> None:
        self._gold = gold
        self._answer = answer
        self._number = number
        self._open = dict.fromkeys(required)
        self._differences = differences

    def judge(self) -> None:
        """Compares the cells, and adds the differences.

        Raises:
            WorkbookError: a workbook is over a limit.
        """
        columns = _width(self._gold), _width(self._answer)
        if columns[0] != columns[1]:
            name = "values" if "values" in self._open else next(iter(self._open))
            sizes = Evidence(f"{columns[0]} columns", f"{columns[1]} columns", "table at A1")
            self._differences.add((self._number, "cells", name), self._answer.tab.name, sizes)
            return
        matched = self._matched(columns[0])
        if matched is None:
            return
        rows = self._gold.rows | self._answer.rows
        package = self._answer.owner.book.workbook.package
        with package.blamed():
            package.budget.take_cells(len(rows) * columns[0])
        for row in sorted(rows):
            for column, match in enumerate(matched, start=1):
                self._cell(cell_key(row, column), cell_key(row, match))
                if not self._open:
                    return
        for key in sorted(self._gold.filled):
            # Cells outside the table that only the answer has do not matter.
            if key & COLUMN_MASK > columns[0]:
                self._cell(key, key)

    def _matched(self, columns: int) -> list[int] | None:
        """Returns the answer's column for each column of the gold, matched by their headings."""
        free = list(range(1, columns + 1))
        matched = []
        for column in range(1, columns + 1):
            key = cell_key(1, column)
            same = [
                free_column
                for free_column in free
                if values_agree(self._gold, key, self._answer, cell_key(1, free_column))
            ]
            if not same:
                name = "values" if "values" in self._open else next(iter(self._open))
                shown_heading = Evidence(shown(self._gold.values.get(key)), None, "no such heading")
                self._differences.add(
                    (self._number, "cells", name), self._answer.tab.name, shown_heading
                )
                return None
            match = column if column in same else same[0]
            free.remove(match)
            matched.append(match)
        return matched

    def _cell(self, expected: int, actual: int) -> None:
        gold, answer = self._gold, self._answer
        if "values" in self._open and not values_agree(gold, expected, answer, actual):
            missing = answer.not_calculated.get(actual) or gold.not_calculated.get(expected)
            values = Evidence(
                shown(gold.values.get(expected)), shown(answer.values.get(actual)), where(actual)
            )
            self._add("values", values, missing=missing)
        if "formatting" in self._open:
            said_look = self._look(expected, actual)
            if said_look is not None:
                self._add("formatting", said_look)
        if "hyperlink" in self._open:
            links = gold.links.get(expected, ()), answer.links.get(actual, ())
            if sorted(links[0]) != sorted(links[1]):
                self._add("hyperlink", Evidence(list(links[0]), list(links[1]), where(actual)))

    def _look(self, expected: int, actual: int) -> Evidence | None:
        """Returns how the formats of two cells differ; fonts and formats of blanks do not count."""
        first, second = self._gold.look(expected), self._answer.look(actual)
        if first == second:
            return None
        filled = expected in self._gold.filled or actual in self._answer.filled
        names = (*FONT_FIELDS, "fill") if filled else ("fill",)
        name = differing_field(first, second, names, rounded=True)
        if name is not None:
            return Evidence(
                getattr(first, name), getattr(second, name), f"{name} of {where(actual)}"
            )
        if self._shows_format(expected, actual) and first.format_class != second.format_class:
            return Evidence(first.code, second.code, f"number format of {where(actual)}")
        return None

    def _shows_format(self, expected: int, actual: int) -> bool:
        """Whether the number format affects what a cell shows; it has no effect on text."""
        values = self._gold.values.get(expected), self._answer.values.get(actual)
        return any(value is not None and not isinstance(value, str) for value in values)

    def _add(self, name: str, shown: Evidence, *, missing: str | None = None) -> None:
        del self._open[name]
        position = (self._number, "cells", name)
        self._differences.add(position, self._answer.tab.name, shown, missing=missing)


def _width(sheet: SheetCells) -> int:
    """Returns how many columns the table at A1 has; if A1 is blank, all columns in use."""
    return max(1, min(sheet.ends[1], sheet.last_column))


def values_agree(gold: SheetCells, expected: int, answer: SheetCells, actual: int) -> bool:
    """Whether two cells have the same value: dates count as numbers, outer space is ignored."""
    written, answered = gold.values.get(expected), answer.values.get(actual)
    if type(written) is type(answered) and written == answered:
        return True
    first, second = _plain(gold, expected), _plain(answer, actual)
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, int | float) and isinstance(second, int | float):
        return numbers_agree(first, second) or numbers_agree(second, first)
    return first == second


def _plain(sheet: SheetCells, key: int) -> CellValue:
    value = sheet.serial(sheet.values.get(key))
    if isinstance(value, str):
        return value.strip() or None
    return value


_MAX_PIVOTS = 300
"""If a sheet has more pivot tables than this, their number never agrees with the gold's."""


@dataclass(frozen=True, slots=True)
class PivotView:
    """A pivot table, as boards compare it.

    Attributes:
        name: its name.
        written: its source as the file names it.
        source: sheet and cells of its source; a table or name is resolved, and the rectangle is
            clipped to the cells in use.
        fields: how many columns the source has.
        rows, columns: headings on the axes; ``Values`` stands for the summarised fields.
        pages: headings of the fields that filter the whole table.
        hidden: heading and item of each item that is filtered out.
        data: heading and function of each summarised field.
    """

    name: str
    written: str
    source: str
    fields: int
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    pages: tuple[str, ...]
    hidden: tuple[tuple[str, str], ...]
    data: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"pivot table {self.name!r}"


def pivots_of(owner: BoardBook, tab: Tab) -> list[PivotView]:
    """Returns the pivot tables of a sheet.

    Raises:
        WorkbookError: a part is broken or over a limit.
        RecalcError: an engine cannot be started.
    """
    return [_view(owner, pivot) for pivot in owner.book.facts.pivots(tab)[:_MAX_PIVOTS]]


def _view(owner: BoardBook, pivot: Pivot) -> PivotView:
    rows, columns = (pivot.names_of(fields) for fields in (pivot.rows, pivot.columns))
    hidden = sorted(
        (field.name, str(item.index if item.value is None else item.value))
        for field in pivot.fields
        for item in field.items
        if item.hidden and item.index is not None
    )
    return PivotView(
        name=pivot.name,
        written=pivot.source_name or f"{pivot.source_sheet}!{pivot.source_range}",
        source=_source(owner, pivot),
        fields=len(pivot.fields),
        rows=rows,
        columns=columns,
        pages=pivot.names_of(pivot.pages),
        hidden=tuple(hidden),
        data=tuple((fields.column, fields.function) for fields in pivot.data),
    )


def _source(owner: BoardBook, pivot: Pivot) -> str:
    """Returns the sheet and cells of the source, alike for references, tables and names."""
    sheet, range_text = pivot.source_sheet, pivot.source_range
    if range_text is None and pivot.source_name is not None:
        sheet, range_text = _named(owner, pivot.source_name)
    cells = owner.named(sheet or "")
    window = _window((range_text or "").replace("$", "").upper())
    if cells is None or window is None:
        return f"{sheet}!{range_text}".casefold()
    last_row, last_column = cells.last_row, cells.last_column
    return (
        f"{sheet}!{cell_name(*window.first)}:"
        f"{cell_name(min(window.max_row, last_row), min(window.max_column, last_column))}"
    ).casefold()


def _window(range_text: str) -> Window | None:
    """Returns the rectangle of a range; whole columns such as ``A:F`` begin in row 1."""
    first, _, last = range_text.partition(":")
    if first.isalpha() and last.isalpha():
        return parse_window(f"{first}1:{last}1048576")
    return parse_window(range_text)


def _named(owner: BoardBook, name: str) -> tuple[str | None, str | None]:
    """Returns the sheet and cells of a table or a defined name."""
    folded_name = name.casefold()
    for tab in owner.tabs:
        for table in owner.book.facts.sheet(tab).tables:
            if table.name.casefold() == folded_name:
                return tab.name, table.place
    for defined in owner.book.facts.names:
        if defined.name.casefold() == folded_name and "!" in defined.refers_to:
            sheet, _, range_text = defined.refers_to.rpartition("!")
            return sheet.strip("'").replace("''", "'"), range_text
    return None, name


def without_values(fields: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the headings on an axis without the ``Values`` entry for summarised fields."""
    return tuple(field for field in fields if field != "Values")


def axes_agree(expected: PivotView, actual: PivotView) -> bool:
    """Whether rows and columns have the same fields, possibly exchanged."""
    first = (expected.rows, expected.columns)
    return first in {(actual.rows, actual.columns), (actual.columns, actual.rows)}


Compared = dict[str, tuple[object, object, bool]]

# -- charts ---------------------------------------------------------------------------------------


def chart_properties(gold: ChartView, answer: ChartView) -> Compared:
    """Compares the properties of two charts."""
    title, other = (None if chart.title is None else _line(chart.title) for chart in (gold, answer))
    return {
        "chart_type": (gold.types, answer.types, gold.types == answer.types),
        "title": (title, other, title == other),
        "legend": (gold.legend, answer.legend, gold.legend == answer.legend),
        "axes": (_axes(gold), _axes(answer), gold.axes == answer.axes),
        "series": (
            [_series(series) for series in gold.series],
            [_series(series) for series in answer.series],
            _all_match(gold.series, answer.series, _same_series),
        ),
        "trendlines": (
            [_trends(series) for series in gold.series],
            [_trends(series) for series in answer.series],
            _all_match(gold.series, answer.series, _same_trends),
        ),
        "data_labels": (
            [series.labels for series in gold.series],
            [series.labels for series in answer.series],
            _all_match(gold.series, answer.series, _same_labels),
        ),
    }


def _line(text: str) -> str:
    return " ".join(text.split())


def _axes(chart: ChartView) -> str:
    return f"{len(chart.axes)} axes, {sum(chart.axes)} of them with a title"


def _series(series: SeriesView) -> str:
    x, y = (without_blank_end(source) for source in (series.x, series.y))
    marker = "" if series.marker == "automatic" else f", marker {series.marker}"
    return f"{len(y)} values {_some(y)} over {_some(x)}{marker}"


def _some(values: Sequence[object]) -> str:
    text = ", ".join("" if value is None else str(value) for value in values[:6])
    return f"[{text}{', …' if len(values) > 6 else ''}]"


def _trends(series: SeriesView) -> list[str]:
    return [_trend(trendline) for trendline in series.trendlines]


def _trend(line: Trendline) -> str:
    details = [
        f"order {line.order}" if line.order is not None and line.kind == "poly" else "",
        f"period {line.period}" if line.period is not None else "",
        "equation" if line.equation else "",
        "R²" if line.r_squared else "",
    ]
    return ", ".join(value for value in (line.kind, *details) if value)


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
    """Whether two series have the same trend lines, and show equation and R² if the gold does."""
    left, right = unmatched(gold.trendlines, answer.trendlines, _same_trend)
    return not left and not right and _same_data(gold, answer)


def _same_trend(gold: Trendline, answer: Trendline) -> bool:
    if gold.kind != answer.kind or gold.period != answer.period:
        return False
    if gold.kind == "poly" and (gold.order or 2) != (answer.order or 2):
        return False
    return (answer.equation or not gold.equation) and (answer.r_squared or not gold.r_squared)


def _same_labels(gold: SeriesView, answer: SeriesView) -> bool:
    """Whether the labels of both series show the same content, or neither series has labels."""
    if gold.labels is None or answer.labels is None:
        same = gold.labels == answer.labels
    else:
        same = set(gold.labels) <= set(answer.labels)
    return same and _same_data(gold, answer)


# -- pivot tables ---------------------------------------------------------------------------------


def pivot_properties(gold: PivotView, answer: PivotView) -> Compared:
    """Compares the properties of two pivot tables; rows and columns may be exchanged."""
    first, second = (
        (without_values(pivot.rows), without_values(pivot.columns)) for pivot in (gold, answer)
    )
    turned = first == (second[1], second[0])
    columns = [sorted(name for name, _ in pivot.data) for pivot in (gold, answer)]
    data = [sorted(pivot.data) for pivot in (gold, answer)]
    filters = [(sorted(pivot.pages), pivot.hidden) for pivot in (gold, answer)]
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
            # Functions can only be compared if they summarise the same columns.
            data[0] == data[1] if columns[0] == columns[1] else _functions(gold, answer),
        ),
    }


def _functions(gold: PivotView, answer: PivotView) -> bool:
    first, second = (sorted(function for _, function in pivot.data) for pivot in (gold, answer))
    return first == second


def _data(pivot: PivotView) -> list[str]:
    return [f"{function} of {column}" for column, function in pivot.data]


def _filters(pivot: PivotView) -> list[str]:
    hidden = [f"{field} without {item}" for field, item in pivot.hidden]
    return [*sorted(pivot.pages), *hidden]


# -- filters --------------------------------------------------------------------------------------


def filter_properties(gold: SheetCells, answer: SheetCells) -> Compared:
    """Compares the filters of two sheets: their ranges, and the rows that they show."""
    ranges = _filter_place(gold), _filter_place(answer)
    if ranges[0] is None or ranges[1] is None:
        first, second = (None if area is None else str(area) for area in ranges)
        return dict.fromkeys(("filters", "source"), (first, second, first == second))
    keys = gold.visible(ranges[0]), answer.visible(ranges[1])
    wrong = next(
        (
            (one, other)
            for one, other in zip(*keys, strict=False)
            if not values_agree(gold, one, answer, other)
        ),
        None,
    )
    rows = [sorted({key >> COLUMN_BITS for key in shown_key}) for shown_key in keys]
    same = len(keys[0]) == len(keys[1]) and wrong is None
    return {
        "filters": (_rows(rows[0]), _rows(rows[1]), same),
        "source": (str(ranges[0]), str(ranges[1]), ranges[0] == ranges[1]),
    }


def _rows(rows: Sequence[int]) -> str:
    shown = ", ".join(map(str, rows[:8])) + (", …" if len(rows) > 8 else "")
    return f"{len(rows)} rows shown: {shown}"


def _filter_place(sheet: SheetCells) -> Window | None:
    """Returns the range of a sheet's filter or first filtered table, cut to cells in use."""
    facts = sheet.owner.book.facts
    auto_filter = filter_of(facts.tree(sheet.tab).child("autoFilter"))
    range_text = None if auto_filter is None else auto_filter.place
    if range_text is None:
        filters = [table.filter for table in facts.sheet(sheet.tab).tables]
        range_text = next(
            (
                candidate.place
                for candidate in filters
                if candidate is not None and candidate.columns
            ),
            None,
        )
    window = None if range_text is None else parse_window(range_text.replace("$", "").upper())
    if window is None:
        return None
    return replace(
        window,
        max_row=max(window.min_row, min(window.max_row, sheet.last_row)),
        max_column=max(window.min_column, min(window.max_column, sheet.last_column)),
    )


# -- conditional formats --------------------------------------------------------------------------


def merged_rules(rules: Sequence[RuleView], sheet: SheetCells) -> list[RuleView]:
    """Merges rules that differ only in their ranges; the ranges are cut to the cells in use."""
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
    return [replace(rule, windows=tuple(sorted(windows))) for rule, windows in merged.items()]


def rule_properties(gold: RuleView, answer: RuleView) -> Compared:
    """Compares the properties of two rules; a rule's range counts as part of its condition."""
    compared: Compared = {
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
        compared[name] = (first, second, same)
    return compared


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
    """Whether two lists of rectangles cover the same cells, ignoring the first row.

    Rules may or may not include the headings.
    """
    return _bands(first) == _bands(second)


_MAX_WINDOWS = 300  # rectangles of a rule that are compared


def _bands(windows: Sequence[Window]) -> tuple[tuple[int, int, tuple[tuple[int, int], ...]], ...]:
    """Returns the covered cells as bands of consecutive rows that cover the same columns."""
    kept = [
        replace(window, min_row=max(2, window.min_row)) for window in windows if window.max_row >= 2
    ][:_MAX_WINDOWS]
    edges = sorted({row for part in kept for row in (part.min_row, part.max_row + 1)})
    bands: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []
    for first, after in pairwise(edges):
        columns = _joined(
            sorted(
                (part.min_column, part.max_column)
                for part in kept
                if part.min_row <= first <= part.max_row
            )
        )
        if not columns:
            continue
        if bands and bands[-1][1] == first - 1 and bands[-1][2] == columns:
            bands[-1] = (bands[-1][0], after - 1, columns)
        else:
            bands.append((first, after - 1, columns))
    return tuple(bands)


def _joined(runs: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    joined: list[tuple[int, int]] = []
    for first, last in runs:
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)
