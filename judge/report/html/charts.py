"""Draws the charts of two sheets next to each other, and marks their differences."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from judge.compare.rules.objects import chart_property, data_of
from judge.report.html.chart_data import (
    MAX_SERIES,
    DrawnPlot,
    axis_of,
    axis_title,
    drawn_plot,
    kind_in_words,
    title_text,
)
from judge.report.html.chart_drawing import DRAWN_KINDS, Frame, draw_chart
from judge.report.html.finding_tables import Property, pair, rows_of
from judge.workbook.address import cell_name
from judge.workbook.facts.charts import Anchor, Chart, Labels, Series, Source
from judge.workbook.reader import Workbook

_LEGENDS = {"r": "right", "l": "left", "t": "top", "b": "bottom", "tr": "top right"}
_BOARD = {"chart_type", "axes", "trendlines", "data_labels", "count"}
_MARKS = {"title": "title", "title of the x axis": "xtitle", "title of the y axis": "ytitle"}


def show_charts(
    gold: tuple[Workbook, Sequence[Chart]],
    output: tuple[Workbook, Sequence[Chart]],
    counted: Collection[str],
    *,
    max_pairs: int,
    max_points: int,
) -> dict[str, Any]:
    """The charts of two sheets that do not agree, in pairs.

    Args:
        gold: the workbook with the right answer, and the charts of its sheet.
        output: the workbook that is judged, and the charts of its sheet.
        counted: names of the properties that count.
        max_pairs: how many pairs are shown.
        max_points: how many points of a series are drawn.

    Returns:
        ``agreeing`` (how many charts agree), ``more`` (how many are not shown) and ``pairs``. Each
        pair has ``rows`` (see :func:`judge.report.html.finding_tables.rows_of`), ``gold`` and
        ``output``. The last two are null if that side has no chart; otherwise, they have
        ``drawing``, which may be null, and ``notes``.

    Raises:
        WorkbookError: a workbook is broken or over a limit.
    """
    paired = pair(gold[1], output[1], lambda chart: _properties(chart, counted))
    shown = []
    for first, second in paired.pairs[:max_pairs]:
        charts = (
            None if first is None else gold[1][first],
            None if second is None else output[1][second],
        )
        rows = rows_of(
            *(None if chart is None else _properties(chart, counted) for chart in charts)
        )
        differing = {row["name"] for row in rows if row["state"] == "differs"}
        sides = [
            None if chart is None else _side(book, chart, differing, max_points)
            for book, chart in zip((gold[0], output[0]), charts, strict=True)
        ]
        shown.append({"rows": rows, "gold": sides[0], "output": sides[1]})
    return {
        "agreeing": paired.agreeing,
        "more": len(paired.pairs) - len(shown),
        "pairs": shown,
    }


def _properties(chart: Chart, counted: Collection[str]) -> list[Property]:
    """The properties of a chart that are compared, and some that are only shown to people."""

    def named(name: str, value: object, text: str, *names: str) -> Property:
        return Property(name, value, text, any(option in counted for option in names))

    data = "series" in counted or not _BOARD.intersection(counted)
    anchor = chart.anchor
    kinds = "; ".join(map(kind_in_words, chart.plots))
    directions = [plot.direction for plot in chart.plots]
    lying = {"col": "columns", "bar": "bars"}
    properties = [
        named("kind", chart_property(chart, "type"), kinds, "type", "chart_type"),
        named(
            "direction",
            directions,
            ", ".join(lying.get(direction, direction) for direction in directions if direction),
            *("direction", "chart_type"),
        ),
        named("title", chart_property(chart, "title"), title_text(chart.title), "title"),
        named(
            "title of the x axis",
            chart_property(chart, "xtitle"),
            axis_title(chart, "x"),
            *("xtitle", "axes"),
        ),
        named(
            "title of the y axis",
            chart_property(chart, "ytitle"),
            axis_title(chart, "y"),
            *("ytitle", "axes"),
        ),
        named("legend", chart.legend, _LEGENDS.get(chart.legend or "", ""), "legend"),
        named("place", chart_property(chart, "anchor"), _anchor_cells(anchor), "anchor"),
    ]
    properties += [
        named(name, chart_property(chart, name), _cells_of(chart_property(chart, name)), name)
        for name in ("width", "height")
        if name in counted
    ]
    series = [one for plot in chart.plots for one in plot.series]
    properties.append(Property("series", len(series), str(len(series)), data))
    for number, one in enumerate(series[:MAX_SERIES], start=1):
        properties += _series_properties(one, f"series {number}", counted, data=data)
    return properties


def _series_properties(
    series: Series, name: str, counted: Collection[str], *, data: bool
) -> list[Property]:
    values, categories, sizes = data_of(series)
    trends = ", ".join(trendline.kind for trendline in series.trendlines)
    return [
        Property(f"{name}: values", values, _reference(series.values), data),
        Property(f"{name}: categories", categories, _reference(series.categories), data),
        Property(f"{name}: sizes", sizes, _reference(series.sizes), data),
        Property(f"{name}: name", _reference(series.name), _reference(series.name), counts=False),
        Property(f"{name}: trend lines", trends, trends, "trendlines" in counted),
        Property(
            f"{name}: labels",
            _labels(series.labels),
            _labels(series.labels),
            "data_labels" in counted,
        ),
    ]


def _reference(source: Source | None) -> str:
    if source is None:
        return ""
    return source.reference or ", ".join(value or "" for value in source.cached[:12])


def _labels(labels: Labels | None) -> str:
    return "" if labels is None else ", ".join(labels.shows).replace("_", " ")


def _anchor_cells(anchor: Anchor | None) -> str:
    if anchor is None or anchor.start is None:
        return ""
    corners = [anchor.start, *([] if anchor.end is None else [anchor.end])]
    return ":".join(cell_name(row + 1, column + 1) for column, row in corners)


def _cells_of(size: object) -> str:
    return f"{size} cells" if isinstance(size, int) else ""


# -- drawings -------------------------------------------------------------------------------------


def _side(
    book: Workbook, chart: Chart, differing: Collection[str], max_points: int
) -> dict[str, Any]:
    """A chart as a drawing, or a note on why it is not drawn."""
    words = "; ".join(map(kind_in_words, chart.plots)) or "chart without data"
    title = title_text(chart.title)
    label = f"{words}{f', {title}' if title else ''}"
    plots = [
        _with_marks(drawn_plot(book, plot, max_points), differing, first)
        for plot, first in zip(chart.plots, _firsts(chart), strict=True)
    ]
    notes = list(_notes(chart, plots, max_points))
    if not any(plot.kind in DRAWN_KINDS and plot.series for plot in plots):
        return {"drawing": None, "notes": [f"{label}: charts of this kind are not drawn", *notes]}
    names = ", ".join(series.name for plot in plots for series in plot.series)
    x, y = axis_of(chart, "x"), axis_of(chart, "y")
    frame = Frame(
        title=title,
        x_title=axis_title(chart, "x"),
        y_title=axis_title(chart, "y"),
        legend=chart.legend,
        differing=frozenset(
            [mark for name, mark in _MARKS.items() if name in differing]
            + (["legend"] if "legend" in differing else [])
        ),
        x_bounds=(None, None) if x is None else (x.minimum, x.maximum),
        y_bounds=(None, None) if y is None else (y.minimum, y.maximum),
    )
    drawing = draw_chart(plots, frame).to_json(f"{label}; series: {names}")
    return {"drawing": drawing, "notes": notes}


def _firsts(chart: Chart) -> list[int]:
    """For each part of a chart, how many series come before it."""
    counts = [len(plot.series) for plot in chart.plots]
    return [sum(counts[:index]) for index in range(len(counts))]


def _with_marks(plot: DrawnPlot, differing: Collection[str], first: int) -> DrawnPlot:
    series = tuple(
        replace(
            series,
            differs=any(
                f"series {first + number}: {name}" in differing
                for name in ("values", "categories", "sizes")
            ),
        )
        for number, series in enumerate(plot.series, start=1)
    )
    return replace(plot, series=series)


def _notes(chart: Chart, plots: Sequence[DrawnPlot], max_points: int) -> list[str]:
    notes = []
    if any(plot.kind not in DRAWN_KINDS for plot in plots) and any(
        plot.kind in DRAWN_KINDS for plot in plots
    ):
        left_out = (
            kind_in_words(part)
            for part, plot in zip(chart.plots, plots, strict=True)
            if plot.kind not in DRAWN_KINDS
        )
        notes.append(f"not drawn: {', '.join(left_out)}")
    if any(len(plot.series) > MAX_SERIES for plot in chart.plots):
        notes.append(f"the first {MAX_SERIES} series of each kind are drawn")
    longest = max((series.points for plot in plots for series in plot.series), default=0)
    if longest > max_points:
        notes.append(f"the first {max_points:,} of {longest:,} points are drawn")
    lacking = sum(
        series.points > 0 and all(value is None for value in series.values)
        for plot in plots
        for series in plot.series
    )
    empty = sum(not series.points for plot in plots for series in plot.series)
    if lacking or empty:
        notes.append(
            f"{lacking + empty} series have no numbers in the file: their cells are blank, or hold "
            "text or formulas without a stored value"
        )
    if any(axis.logarithm for axis in chart.axes):
        notes.append("a logarithmic scale is drawn as a plain one")
    return notes
