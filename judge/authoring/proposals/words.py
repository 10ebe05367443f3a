"""Proposed rules in words, for the person who keeps or drops them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from judge.authoring.proposals.changes import Change
from judge.compare.rules.objects import shown_labels
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, column_letters
from judge.workbook.facts.charts import Chart, Plot, Series
from judge.workbook.facts.render import pivot_lines
from judge.workbook.facts.sheets import Line, SheetFacts

_SHOWN = 6
"""Things of one kind that a line names."""

_PROPERTIES = {
    "fgcolor": "fill",
    "font_color": "font colour",
    "font_bold": "bold",
    "font_italic": "italic",
    "font_underline": "underline",
    "font_name": "font",
    "font_size": "font size",
    "number_format": "number format",
    "merge": "merged cells",
    "hyperlink": "hyperlinks",
    "row_fields": "row fields",
    "col_fields": "column fields",
    "data_fields": "functions of values",
    "data_fields_name": "names of values",
    "series_names": "names of the series",
    "trendlines": "trend lines",
    "labels": "data labels",
    "xtitle": "title of the x axis",
    "ytitle": "title of the y axis",
    "outline_level": "outline",
}


def words_of(change: Change, facts: SheetFacts) -> str:
    """What a rule asks, in a line.

    Args:
        change: what differs.
        facts: the sheet of the gold.
    """
    asked = ", ".join(_PROPERTIES.get(name, name) for name in change.props)
    sheet = f"sheet {facts.name!r}"
    if change.kind == "sheet_data":
        return f"{sheet} holds the values of the gold (changed: {_cells(change.cells)})"
    if change.kind == "style":
        where = _cells(change.cells)
        return f"cells of {sheet} look as in the gold: {asked} (changed: {where})"
    if change.kind == "chart":
        listed = [_chart(chart, change.props) for chart in facts.charts]
        return f"{sheet} has the charts of the gold, by data, {asked}: {_some(listed)}"
    if change.kind == "pivot_table":
        listed = [_joined(pivot_lines(pivot)) for pivot in facts.pivots]
        return f"{sheet} has the pivot tables of the gold, by source, {asked}: {_some(listed)}"
    if change.kind in {"row_props", "col_props"}:
        lines = facts.rows if change.kind == "row_props" else facts.columns
        what = "rows" if change.kind == "row_props" else "columns"
        return f"{what} of {sheet} are as in the gold: {asked}{_hidden(lines, change, what)}"
    return f"{sheet} {_rest(change.kind, facts)}"


def _chart(chart: Chart, props: Sequence[str]) -> str:
    """A chart by its data and the properties that are compared, and by nothing else."""
    said = []
    if "title" in props:
        said.append(f"titled {chart.title.text!r}" if chart.title else "without a title")
    if "legend" in props:
        said.append(f"with its legend at {chart.legend}" if chart.legend else "without a legend")
    for plot in chart.plots:
        kind = plot.kind if "type" in props else "data"
        direction = plot.direction if "direction" in props else None
        series = [_series(each, plot, props) for each in plot.series]
        said.append(f"{' '.join(filter(None, (kind, direction)))} of {_some(series)}")
    titles = {"xtitle": {"catAx", "dateAx"}, "ytitle": {"valAx"}, "ztitle": {"serAx"}}
    asked = {kind for name, kinds in titles.items() if name in props for kind in kinds}
    said += [
        f"axis {axis.title.text!r}" for axis in chart.axes if axis.title and axis.kind in asked
    ]
    return f"chart {'; '.join(said)}"


def _series(series: Series, plot: Plot, props: Sequence[str]) -> str:
    said = [each.reference or "literals" for each in (series.values, series.categories) if each]
    parts = [" by ".join(said)]
    if "series_names" in props and series.name is not None:
        parts.append(f"named {series.name.reference or ' '.join(filter(None, series.name.cached))}")
    if "trendlines" in props and series.trendlines:
        parts.append(
            f"trend line {' and '.join(trendline.kind for trendline in series.trendlines)}"
        )
    if "labels" in props and (shown := shown_labels(series, plot)):
        parts.append(f"labels with {' and '.join(shown)}")
    return " ".join(parts)


def _rest(kind: str, facts: SheetFacts) -> str:
    if kind == "freeze":
        pane = facts.view.pane
        if pane is None or not pane.frozen:
            return "has no frozen panes"
        return f"is frozen: {pane.columns:g} columns, {pane.rows:g} rows"
    if kind == "zoom":
        return f"is zoomed to {facts.view.zoom} %"
    if kind == "filter":
        if facts.filter is None:
            return "has no filter"
        columns = [
            f"column {column.column + 1} {column.kind} {_some(' '.join(x) for x in column.values)}"
            for column in facts.filter.columns
        ]
        return f"has the filter of the gold at {facts.filter.place}: {_some(columns)}"
    if kind == "data_validation":
        listed = [
            f"{' '.join(validation.places)}: {validation.kind or 'anything'} "
            f"{', '.join(validation.formulas)}"
            for validation in facts.validations
        ]
        return f"has these validations and no others: {_some(listed)}"
    listed = [
        f"{sparkline.kind} at {sparkline.place} of {sparkline.reference}"
        for sparkline in facts.sparklines
    ]
    return f"has the sparklines of the gold: {_some(listed)}"


def _hidden(lines: Sequence[Line], change: Change, what: str) -> str:
    if "hidden" not in change.props:
        return ""
    listed = [
        _span(line.first, line.last, letters=what == "columns") for line in lines if line.hidden
    ]
    return f" (hidden: {_some(listed)})"


def _span(first: int, last: int, *, letters: bool) -> str:
    ends = [column_letters(each) if letters else str(each) for each in (first, last)]
    return ends[0] if first == last else "-".join(ends)


def _cells(keys: Sequence[int]) -> str:
    """Cells by the rectangles that they fill, and how many they are."""
    return f"{_some(map(str, rectangles(keys)))}; {len(keys)} cell{'s' if len(keys) > 1 else ''}"


def rectangles(keys: Sequence[int]) -> list[Window]:
    """Cells as few rectangles: runs of a row, joined with equal runs of the row above."""
    runs: list[Window] = []
    for key in sorted(keys):
        row, column = key >> COLUMN_BITS, key & COLUMN_MASK
        last = runs[-1] if runs else None
        if last is not None and (last.min_row, last.max_column + 1) == (row, column):
            runs[-1] = Window(row, last.min_column, row, column)
        else:
            runs.append(Window(row, column, row, column))
    joined: dict[tuple[int, int], Window] = {}
    done: list[Window] = []
    for run in runs:
        ends = run.min_column, run.max_column
        above = joined.get(ends)
        if above is not None and above.max_row + 1 == run.min_row:
            joined[ends] = Window(above.min_row, ends[0], run.max_row, ends[1])
            continue
        if above is not None:
            done.append(above)
        joined[ends] = run
    return sorted([*done, *joined.values()])


def _joined(lines: object) -> str:
    return "; ".join(str(line).strip() for line in lines)  # type: ignore[attr-defined]


def _some(listed: object) -> str:
    named = [" ".join(str(each).split()) for each in listed]  # type: ignore[attr-defined]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return ", ".join(named[:_SHOWN]) + more or "none"
