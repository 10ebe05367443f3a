"""A chart with the values that its series refer to, and the scales on which to draw them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from judge.compare.rules.book import text_of
from judge.errors import WorkbookError
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.facts.charts import Axis, Chart, Plot, Series, Source, Title
from judge.workbook.facts.references import read_reference
from judge.workbook.number_formats import to_serial
from judge.workbook.reader import Workbook
from judge.workbook.tree import number

_STEPS = (1, 2, 2.5, 5, 10)
_TICKS = 5
_MAX_DRAWABLE = 1e200
"""Largest absolute value that is drawn; larger values cannot share a scale with others."""


def drawable(value: object) -> float | None:
    """A value as a number that can be drawn; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) <= _MAX_DRAWABLE else None


@dataclass(frozen=True, slots=True)
class Scale:
    """A range of values on a line.

    Attributes:
        low, high: the values at its ends.
        start, end: the positions of the ends.
        ticks: round values in between.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """The position of a value; a value beyond an end is placed at this end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def base(self) -> float:
        """The position at which bars begin: zero, or the end closest to it."""
        return self.at(0.0)


def scale_of(
    values: Iterable[float],
    start: float,
    end: float,
    *,
    from_zero: bool = True,
    bounds: Sequence[float | None] = (None, None),
) -> Scale:
    """A scale for some values.

    Args:
        values: the values that have to be on it.
        start: position of its low end.
        end: position of its high end.
        from_zero: whether zero has to be on it.
        bounds: its ends, if they are set.
    """
    numbers = [*values, *([0.0] if from_zero else [])] or [0.0, 1.0]
    low, high = min(numbers), max(numbers)
    if low == high:
        low, high = (min(low, 0.0), max(high, 0.0)) if low else (0.0, 1.0)
    step = _step((high - low) / _TICKS)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    first, last = (drawable(bound) for bound in bounds)
    if first is not None or last is not None:
        ends = low if first is None else first, high if last is None else last
        if ends[0] < ends[1]:
            low, high = ends
            step = _step((high - low) / _TICKS)
    count = min(50, int((high - low) / step + 1.000001))
    begin = math.ceil(low / step - 1e-9) * step
    ticks = tuple(begin + index * step for index in range(count + 1))
    return Scale(low, high, start, end, tuple(tick for tick in ticks if low <= tick <= high))


def _step(rough: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (*_STEPS, 20) if factor * power >= rough * 0.999)


def tick_label(value: float) -> str:
    """Writes a value at an axis, in short form."""
    size = abs(value)
    if size < 1e-12:
        return "0"
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if limit <= size < limit * 1e3:
            return f"{value / limit:.4g}{unit}"
    if size >= 1e15 or size < 1e-4:
        return f"{value:.3g}"
    return f"{round(value, 6):,.6g}" if size < 1e3 else f"{value:,.0f}"


MAX_SERIES = 12
"""How many series of a chart are drawn."""

_KINDS = {
    "barChart": "bar chart",
    "bar3DChart": "bar chart in 3-D",
    "lineChart": "line chart",
    "line3DChart": "line chart in 3-D",
    "pieChart": "pie chart",
    "pie3DChart": "pie chart in 3-D",
    "ofPieChart": "pie chart with a second pie or bar",
    "doughnutChart": "doughnut chart",
    "scatterChart": "scatter chart",
    "bubbleChart": "bubble chart",
    "areaChart": "area chart",
    "area3DChart": "area chart in 3-D",
    "radarChart": "radar chart",
    "stockChart": "stock chart",
    "surfaceChart": "surface chart",
    "surface3DChart": "surface chart in 3-D",
}
_GROUPINGS = {"stacked": "stacked", "percentStacked": "stacked to 100 %", "clustered": "clustered"}


@dataclass(frozen=True, slots=True)
class DrawnSeries:
    """A series, prepared for drawing.

    Attributes:
        name: its title.
        labels: its categories as text, or the x values of a scatter chart.
        values: its values; None for a value that cannot be drawn.
        xs: the x values of a scatter chart as numbers; None for a value that cannot be drawn.
        sizes: sizes of bubbles.
        points: how many points it has, drawn or not.
        differs: whether the other workbook's chart lacks this data.
    """

    name: str
    labels: tuple[str, ...]
    values: tuple[float | None, ...]
    xs: tuple[float | None, ...] = ()
    sizes: tuple[float | None, ...] = ()
    points: int = 0
    differs: bool = False


@dataclass(frozen=True, slots=True)
class DrawnPlot:
    """A part of a chart, prepared for drawing: its series, and its kind (3-D kinds become flat)."""

    kind: str
    direction: str | None
    grouping: str | None
    series: tuple[DrawnSeries, ...]
    axes: tuple[str, ...] = ()


def kind_in_words(plot: Plot) -> str:
    """The name of a kind of chart for people: ``column chart, stacked``."""
    words = _KINDS.get(plot.kind, f"{plot.kind} chart")
    if plot.kind in {"barChart", "bar3DChart"} and plot.direction != "bar":
        words = words.replace("bar", "column", 1)
    grouping = _GROUPINGS.get(plot.grouping or "")
    return f"{words}, {grouping}" if grouping else words


def title_text(title: Title | None) -> str:
    """The text of a title; empty if there is no title."""
    return "" if title is None else " ".join(title.text.split())


def axis_title(chart: Chart, letter: str) -> str:
    """The title of the ``x`` or ``y`` axis of a chart's first part."""
    axis = axis_of(chart, letter)
    return "" if axis is None else title_text(axis.title)


def axis_of(chart: Chart, letter: str) -> Axis | None:
    """The ``x`` or ``y`` axis of a chart's first plot."""
    if not chart.plots:
        return None
    plot = chart.plots[0]
    listed = [axis for name in plot.axes for axis in chart.axes if axis.identifier == name]
    if plot.kind in {"scatterChart", "bubbleChart"}:
        index = "xy".index(letter)
        return listed[index] if index < len(listed) else None
    kinds = {"x": {"catAx", "dateAx"}, "y": {"valAx"}}[letter]
    return next((axis for axis in listed if axis.kind in kinds), None)


_NUMBERED = {"scatterChart", "bubbleChart"}


def drawn_plot(workbook: Workbook, plot: Plot, max_points: int) -> DrawnPlot:
    """A part of a chart with its values.

    Args:
        workbook: the workbook with the cells.
        plot: the part.
        max_points: how many points of a series are drawn.

    Raises:
        WorkbookError: a sheet is broken or over a limit.
    """
    series = tuple(
        _drawn(workbook, series, number, max_points, numbered=plot.kind in _NUMBERED)
        for number, series in enumerate(plot.series[:MAX_SERIES], start=1)
    )
    kind = plot.kind.replace("3D", "")
    return DrawnPlot(kind, plot.direction, plot.grouping, series, plot.axes)


def _drawn(
    workbook: Workbook, series: Series, number: int, max_points: int, *, numbered: bool
) -> DrawnSeries:
    values = _numbers(workbook, series.values)
    labels = _read(workbook, series.categories)
    xs = tuple(map(_number, labels))[:max_points] if numbered else ()
    return DrawnSeries(
        name=_name(workbook, series.name) or f"series {number}",
        labels=tuple(_label(label) for label in labels[:max_points]),
        values=values[:max_points],
        xs=xs,
        sizes=_numbers(workbook, series.sizes)[:max_points] if numbered else (),
        points=len(values),
    )


def _name(workbook: Workbook, source: Source | None) -> str:
    if source is None:
        return ""
    return " ".join(_label(value) for value in _read(workbook, source)[:3] if value is not None)


def _label(value: CellValue) -> str:
    return text_of(value).removesuffix(" 00:00:00")[:200]


def _numbers(workbook: Workbook, source: Source | None) -> tuple[float | None, ...]:
    return tuple(map(_number, _read(workbook, source)))


def _number(value: CellValue) -> float | None:
    if value is None or isinstance(value, bool | int | float):
        return drawable(value)
    if isinstance(value, str):
        return drawable(number(value))
    return None if isinstance(value, ErrorValue) else drawable(to_serial(value))


def _read(workbook: Workbook, source: Source | None) -> tuple[CellValue, ...]:
    """The values of a source's cells; if the cells have no values, those stored in the chart."""
    if source is None:
        return ()
    try:
        values = read_reference(workbook, source.reference) if source.reference else None
    except WorkbookError:
        workbook.package.budget.check()
        values = None  # the rest of the chart is still drawn
    if values is None or all(value is None for value in values):
        return source.cached
    return values
