"""The parts of charts that boards compare: Excel's chart type, titles, axes, values of series."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.compare.boards.cells import BoardBook
from judge.workbook.address import cell_key
from judge.workbook.cell import CellRange, ErrorValue
from judge.workbook.facts.charts import (
    Axis,
    Chart,
    Labels,
    Plot,
    Series,
    Source,
    Title,
    Trendline,
)
from judge.workbook.facts.references import MAX_VALUES, areas_of
from judge.workbook.tree import number
from judge.workbook.workbook_parts import Tab

_RELATIVE, _ABSOLUTE = 1e-5, 1e-8
_MAX_CHARTS = 300
"""If a sheet has more charts than this, their number never agrees with the gold's."""

_GROUPINGS = {"stacked": "stacked", "percentStacked": "100 % stacked"}
_WITH_MARKERS = {"lineChart", "scatterChart", "radarChart", "stockChart"}


@dataclass(frozen=True, slots=True)
class SeriesView:
    """A series of a chart, as boards compare it.

    Attributes:
        x: its categories or x values; numbers from 1 if it has neither.
        y: its values.
        marker: ``none``, ``circle`` …; ``automatic`` for the default.
        trendlines: its trend lines.
        labels: what its data labels show; None if it has none.
    """

    x: tuple[object, ...]
    y: tuple[object, ...]
    marker: str
    trendlines: tuple[Trendline, ...]
    labels: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ChartView:
    """A chart, as boards compare it.

    Attributes:
        types: the type of each of its parts, in words.
        title: its title; None if it has none.
        legend: position of its legend; None if it has none.
        axes: for each axis that is shown, whether it has a title; the category axis comes first.
        series: its series.
    """

    types: tuple[str, ...]
    title: str | None
    legend: str | None
    axes: tuple[bool, ...]
    series: tuple[SeriesView, ...]

    def __str__(self) -> str:
        named = f" {self.title!r}" if self.title else ""
        return f"chart{named} ({' and '.join(self.types)})"


def charts_of(owner: BoardBook, tab: Tab) -> list[ChartView]:
    """Returns the charts of a sheet.

    Raises:
        WorkbookError: a part is broken or over a limit.
        RecalcError: an engine cannot be started.
    """
    return [_view(owner, chart) for chart in owner.book.facts.charts(tab)[:_MAX_CHARTS]]


def _view(owner: BoardBook, chart: Chart) -> ChartView:
    return ChartView(
        types=tuple(dict.fromkeys(map(chart_type, chart.plots))),
        title=_title(owner, chart),
        legend=chart.legend,
        axes=tuple(axis.title is not None for axis in _axes(chart)),
        series=tuple(
            _series(owner, plot, series, of_pivot=chart.pivot is not None)
            for plot in chart.plots
            for series in plot.series
        ),
    )


# -- types ----------------------------------------------------------------------------------------


def chart_type(plot: Plot) -> str:
    """Returns the type of a chart's part in words, with one wording for each ``XlChartType``."""
    kind = plot.kind.removesuffix("Chart")
    three = ", 3-D" if kind.endswith("3D") else ""
    kind = kind.removesuffix("3D")
    grouping = _GROUPINGS.get(plot.grouping or "", "")
    if kind == "bar":
        name = "column" if plot.direction == "col" else "bar"
        if not grouping:
            standing = three and plot.grouping == "standard"
            grouping = "" if standing else "clustered"
        return ", ".join(text for text in (name, grouping) if text) + three
    if kind == "line":
        parts = ["line", grouping, "" if three or not _has_markers(plot) else "with markers"]
        return ", ".join(part for part in parts if part) + three
    if kind == "scatter":
        return f"scatter, {_scatter(plot)}"
    if kind == "radar":
        shown = "filled" if plot.style == "filled" else "with markers" * _has_markers(plot)
        return ", ".join(text for text in ("radar", shown) if text)
    if kind in {"pie", "doughnut"}:
        exploded = any(series.exploded for series in plot.series)
        return f"{kind}{', exploded' if exploded else ''}{three}"
    return ", ".join(text for text in (kind, grouping) if text) + three


def _has_markers(plot: Plot) -> bool:
    return any(
        plot.markers if series.marker is None else series.marker != "none" for series in plot.series
    )


def _scatter(plot: Plot) -> str:
    lines = plot.style not in {"marker", "none"} and any(series.line for series in plot.series)
    if not lines:
        return "markers"
    by_style = (plot.style or "").startswith("smooth")
    smooth = any(by_style if series.smooth is None else series.smooth for series in plot.series)
    without = plot.style in {"line", "smooth"}
    markers = any(
        not without if series.marker is None else series.marker != "none" for series in plot.series
    )
    return ("smooth lines" if smooth else "lines") + (" and markers" if markers else "")


# -- titles and axes ------------------------------------------------------------------------------


def _title(owner: BoardBook, chart: Chart) -> str | None:
    """Returns the title that is shown; a chart with one series may show the name of the series."""
    listed = [series for plot in chart.plots for series in plot.series]
    if chart.title is None:
        named = len(listed) == 1 and listed[0].name is not None and chart.automatic_title
        return _name(owner, listed[0]) or None if named else None
    if chart.title.text or chart.title.reference:
        return _text(owner, chart.title)
    return (_name(owner, listed[0]) if len(listed) == 1 else "") or "Chart Title"


def _text(owner: BoardBook, title: Title) -> str:
    if title.reference:
        values = _referenced(owner, title.reference)
        if values is not None:
            return " ".join(str(value) for value in values if value is not None)
    return title.text


def _name(owner: BoardBook, series: Series) -> str:
    if series.name is None:
        return ""
    return " ".join(str(value) for value in _values(owner, series.name) if value is not None)


def _axes(chart: Chart) -> list[Axis]:
    """Returns the axes that are shown: for each part, the category axis, then the value axis."""
    axes = {axis.identifier: axis for axis in chart.axes}
    order = dict.fromkeys(name for plot in chart.plots for name in plot.axes if name in axes)
    return [axes[name] for name in order if not axes[name].deleted]


# -- series ---------------------------------------------------------------------------------------


def _series(owner: BoardBook, plot: Plot, series: Series, *, of_pivot: bool) -> SeriesView:
    y = () if series.values is None else _values(owner, series.values, of_pivot=of_pivot)
    categories = series.categories
    if categories is None and plot.kind not in {"scatterChart", "bubbleChart"}:
        # All series use the categories of the first one.
        categories = plot.series[0].categories
    x: tuple[object, ...] = tuple(range(1, len(y) + 1))
    if categories is not None:
        x = _values(owner, categories, of_pivot=of_pivot)
    marker = series.marker or "automatic"
    return SeriesView(
        x=x,
        y=y,
        marker=marker if plot.kind in _WITH_MARKERS else "automatic",
        trendlines=series.trendlines,
        labels=_shown(series.labels, plot.labels),
    )


def _shown(own: Labels | None, of_all: Labels | None) -> tuple[str, ...] | None:
    labels = of_all if own is None else own
    return labels.shows if labels is not None and labels.shows else None


def _values(owner: BoardBook, source: Source, *, of_pivot: bool = False) -> tuple[object, ...]:
    """Returns the current values of a reference; if it names no cells, the chart's stored values.

    The references of a pivot chart include the total at the end, which the chart does not show; so
    only as many values are returned as the chart stores points.
    """
    if source.reference:
        values = _referenced(owner, source.reference)
        if values is not None:
            return values[: len(source.cached)] if of_pivot and source.cached else values
    numeric = source.kind.startswith("num")
    return tuple(_number(value) if numeric else value for value in source.cached)


def _number(text: str | None) -> object:
    value = number(text)
    return text if value is None else value


def _referenced(owner: BoardBook, reference: str) -> tuple[object, ...] | None:
    areas = areas_of(reference)
    if areas is None:
        return None
    read: list[object] = []
    for area in areas:
        values = _area(owner, area)
        if values is None or len(read) + len(values) > MAX_VALUES:
            return None
        read.extend(values)
    return tuple(read)


def _area(owner: BoardBook, area: CellRange) -> list[object] | None:
    sheet = owner.named(area.sheet)
    if sheet is None:
        return None
    last_row, last_column = area.max_row, area.max_column
    if (last_row - area.min_row + 1) * (last_column - area.min_column + 1) > MAX_VALUES:
        last_row, last_column = min(last_row, sheet.last_row), min(last_column, sheet.last_column)
        if (last_row - area.min_row + 1) * (last_column - area.min_column + 1) > MAX_VALUES:
            return None
    package = owner.book.workbook.package
    with package.blamed():
        package.budget.take_cells(
            max(0, last_row - area.min_row + 1) * max(0, last_column - area.min_column + 1)
        )
    return [
        _plain(sheet.serial(sheet.values.get(cell_key(row, column))))
        for row in range(area.min_row, last_row + 1)
        for column in range(area.min_column, last_column + 1)
    ]


def _plain(value: object) -> object:
    if isinstance(value, ErrorValue):
        return value.code
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


# -- agreement ------------------------------------------------------------------------------------


def same_values(first: Sequence[object], second: Sequence[object]) -> bool:
    """Whether two lists of values are equal, or numbers within the published tolerance."""
    if len(first) != len(second):
        return False
    if tuple(first) == tuple(second):
        return True
    return all(
        isinstance(a, int | float) and isinstance(b, int | float) and numbers_agree(a, b)
        for a, b in zip(first, second, strict=True)
    )


def numbers_agree(expected: float, actual: float) -> bool:
    """Whether two numbers agree within the published tolerance, relative to the answer."""
    return abs(expected - actual) <= _ABSOLUTE + _RELATIVE * abs(actual)


def without_blank_end(values: Sequence[object]) -> tuple[object, ...]:
    """Returns values without the blank ones at the end; text is stripped of outer space."""
    kept = [value.strip() if isinstance(value, str) else value for value in values]
    while kept and kept[-1] in {None, ""}:
        kept.pop()
    return tuple(kept)
