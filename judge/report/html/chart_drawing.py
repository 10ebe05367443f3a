"""Charts drawn from their series: bars, lines, areas, pies and points.

A drawing shows the data in the page's own colours. It does not imitate the way a spreadsheet
program would format the chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judge.report.html.chart_data import DrawnPlot, DrawnSeries, Scale, scale_of, tick_label
from judge.report.html.figures import with_named_characters

_CHARACTER = 6.3
"""Approximate width of a character, in the units of a drawing."""


class Canvas:
    """Shapes in the order in which they are drawn.

    Args:
        width: the width of the drawing.
        height: the height of the drawing.
    """

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self._shapes: list[list[Any]] = []

    def rect(self, css: str, x: float, y: float, width: float, height: float) -> None:
        """Adds a rectangle between two corners, wide enough to be seen."""
        left, top = min(x, x + width), min(y, y + height)
        self._shapes.append(
            ["r", css, _short(left), _short(top)]
            + [_short(max(abs(length), 0.6)) for length in (width, height)]
        )

    def path(self, css: str, d: str) -> None:
        """Adds a path in SVG notation."""
        self._shapes.append(["p", css, d])

    def line(self, css: str, points: list[tuple[float, float]]) -> None:
        """Adds a line through points."""
        self.path(
            css,
            "".join(
                f"{'L' if index else 'M'}{_short(x)} {_short(y)}"
                for index, (x, y) in enumerate(points)
            ),
        )

    def dot(self, css: str, x: float, y: float, radius: float) -> None:
        """Adds a circle."""
        self._shapes.append(["c", css, _short(x), _short(y), _short(radius)])

    def text(self, css: str, x: float, y: float, text: str, *, room: float = 1e9) -> None:
        """Adds one line of text, cut to the available width."""
        self._shapes.append(["t", css, _short(x), _short(y), cut(text, room)])

    def to_json(self, label: str) -> dict[str, Any]:
        """The drawing as JSON.

        Args:
            label: the text for screen readers.
        """
        return {
            "width": self.width,
            "height": self.height,
            "label": with_named_characters(label)[:300],
            "shapes": self._shapes,
        }


def cut(text: str, room: float) -> str:
    """Text cut to some width, with invisible characters shown by name."""
    plain = with_named_characters(" ".join(text.split()))
    most = max(1, int(room / _CHARACTER))
    return plain if len(plain) <= most else plain[: max(1, most - 1)] + "…"


def width_of(text: str) -> float:
    """Approximate width of text."""
    return _CHARACTER * len(text)


def _short(number: float) -> float:
    rounded = round(number, 1)
    return int(rounded) if rounded == int(rounded) else rounded


_COLOUR_COUNT = 8  # of the style sheet; then they repeat
MAX_SLICES = 24
_MAX_LEGEND_WIDTH = 120  # in the units of the drawing
_BESIDE = 6
"""Largest number of names in a legend above or below the chart."""
_LINE_HEIGHT = 16  # in the units of the drawing
END = 24
"""Space for half of the label at the end of a horizontal scale."""

DRAWN_KINDS = frozenset(
    {
        *("barChart", "lineChart", "areaChart", "pieChart", "doughnutChart"),
        *("scatterChart", "bubbleChart"),
    }
)
"""Kinds of charts that are drawn; 3-D charts are drawn flat."""

ROUND = {"pieChart", "doughnutChart"}
POINTS = {"scatterChart", "bubbleChart"}


@dataclass(frozen=True, slots=True)
class Frame:
    """The frame around the data of a chart.

    Attributes:
        title, x_title, y_title: titles; empty if the chart has no such title.
        legend: position ``r``, ``b``, ``l``, ``t`` or ``tr``; None if there is no legend.
        differing: which of ``title``, ``xtitle``, ``ytitle``, ``legend`` differ from the other
            workbook's chart.
        x_bounds, y_bounds: ends of the scales, if they are set.
    """

    title: str = ""
    x_title: str = ""
    y_title: str = ""
    legend: str | None = None
    differing: frozenset[str] = frozenset()
    x_bounds: tuple[float | None, float | None] = (None, None)
    y_bounds: tuple[float | None, float | None] = (None, None)


@dataclass(slots=True)
class Area:
    """The area that is left for the data."""

    left: float
    top: float
    right: float
    bottom: float


def marked(css: str, differs: bool) -> str:
    """The CSS class of a shape; it also says whether the shape's content differs."""
    return f"{css} bad" if differs else css


def colour(number: int) -> str:
    """The CSS class of a series or a slice, by its position."""
    return f"s{number % _COLOUR_COUNT}"


# -- legends --------------------------------------------------------------------------------------


def _entries(plots: Sequence[DrawnPlot]) -> list[tuple[str, bool]]:
    """Names in the legend (series, or slices of a pie), and whether they differ."""
    if plots[0].kind in ROUND:
        first = plots[0].series[:1]
        return [(label, False) for series in first for label in series.labels[:MAX_SLICES]]
    return [(series.name, series.differs) for plot in plots for series in plot.series]


def draw_legend(canvas: Canvas, area: Area, plots: Sequence[DrawnPlot], frame: Frame) -> None:
    """Draws the names of the series, or of the slices of a pie, where the chart has its legend."""
    entries = _entries(plots)
    css = marked("cl", "legend" in frame.differing)
    if frame.legend in {"t", "b"}:
        y = area.top + 10 if frame.legend == "t" else area.bottom - 6
        listed = entries[:_BESIDE]
        most = (area.right - area.left) / max(1, len(listed))
        rooms = [min(most, 1.2 * width_of(name) + 30) for name, _ in listed]
        x = (area.left + area.right - sum(rooms)) / 2
        for number, ((name, differs), room) in enumerate(zip(listed, rooms, strict=True)):
            canvas.rect(colour(number), x, y - 8, 9, 9)
            canvas.text(marked(css, differs), x + 13, y, name, room=room - 14)
            x += room
        if frame.legend == "t":
            area.top += 20
        else:
            area.bottom -= 20
        return
    longest = max((width_of(name) for name, _ in entries), default=0.0)
    width = min(_MAX_LEGEND_WIDTH, 20 + longest)
    x = area.left if frame.legend == "l" else area.right - width
    most = int((area.bottom - area.top - 10) / _LINE_HEIGHT)
    for number, (name, differs) in enumerate(entries[:most]):
        y = area.top + 14 + number * _LINE_HEIGHT
        canvas.rect(colour(number), x, y - 8, 9, 9)
        canvas.text(marked(css, differs), x + 13, y, name, room=width - 14)
    if frame.legend == "l":
        area.left += width + 8
    else:
        area.right -= width + 8


# -- axes -----------------------------------------------------------------------------------------


def draw_axis_titles(canvas: Canvas, area: Area, frame: Frame, *, lying: bool) -> None:
    """Draws the titles of both axes; the title of the vertical axis is above it."""
    below, beside = ("ytitle", "xtitle") if lying else ("xtitle", "ytitle")
    texts = {"xtitle": frame.x_title, "ytitle": frame.y_title}
    if texts[beside]:
        css = marked("ca", beside in frame.differing)
        canvas.text(css, area.left, area.top + 10, texts[beside], room=area.right - area.left)
        area.top += 18
    if texts[below]:
        css = marked("ca mid", below in frame.differing)
        room = area.right - area.left
        canvas.text(css, area.left + room / 2, area.bottom - 3, texts[below], room=room)
        area.bottom -= 18


def draw_ticks(canvas: Canvas, area: Area, scale: Scale, *, lying: bool) -> None:
    """Draws the grid lines and labels of a scale."""
    for tick in scale.ticks:
        at = scale.at(tick)
        if lying:
            canvas.line("rule", [(at, area.top), (at, area.bottom)])
            canvas.text("cv mid", at, area.bottom + 14, tick_label(tick))
        else:
            canvas.line("rule", [(area.left, at), (area.right, at)])
            canvas.text("cv end", area.left - 5, at + 4, tick_label(tick))


def draw_right_ticks(canvas: Canvas, area: Area, scale: Scale) -> None:
    """Draws the labels of a second scale."""
    for tick in scale.ticks:
        canvas.text("cv", area.right + 5, scale.at(tick) + 4, tick_label(tick))


def label_width(scale: Scale) -> float:
    """The width of the labels next to a scale; text on a narrow screen is wider than usual."""
    return 10 + 1.2 * max((width_of(tick_label(tick)) for tick in scale.ticks), default=0.0)


def draw_points(canvas: Canvas, area: Area, plots: Sequence[DrawnPlot], frame: Frame) -> None:
    """Draws points, or bubbles, on two scales."""
    draw_axis_titles(canvas, area, frame, lying=False)
    area.right -= END
    area.bottom -= 18
    series = [one for plot in plots for one in plot.series]
    placed = [list(_points(one)) for one in series]
    every = [point for points in placed for point in points]
    bounds = frame.y_bounds
    ys = scale_of([y for _, y, _ in every], area.bottom, area.top, from_zero=False, bounds=bounds)
    area.left += label_width(ys)
    xs = scale_of(
        [x for x, _, _ in every], area.left, area.right, from_zero=False, bounds=frame.x_bounds
    )
    draw_ticks(canvas, area, ys, lying=False)
    for tick in xs.ticks:
        canvas.text("cv mid", xs.at(tick), area.bottom + 14, tick_label(tick))
    largest = max((size for _, _, size in every if size), default=0.0)
    for number, (one, points) in enumerate(zip(series, placed, strict=True)):
        css = f"point {marked(colour(number), one.differs)}"
        for x, y, size in points:
            radius = 2 + 14 * math.sqrt(max(size, 0.0) / largest) if size and largest else 3.2
            canvas.dot(css, xs.at(x), ys.at(y), radius)


def _points(series: DrawnSeries) -> list[tuple[float, float, float | None]]:
    """The points that can be drawn: x, y and size.

    Without numbers for x, points are numbered from 1.
    """
    points = []
    numbered = any(x is not None for x in series.xs)
    for at, y in enumerate(series.values):
        x: float | None = float(at + 1)
        if numbered:
            x = series.xs[at] if at < len(series.xs) else None
        if x is not None and y is not None:
            points.append((x, y, series.sizes[at] if at < len(series.sizes) else None))
    return points


def draw_round(canvas: Canvas, area: Area, plot: DrawnPlot) -> None:
    """Draws the first series as a pie, or every series of a doughnut as a ring."""
    rings = plot.series if plot.kind == "doughnutChart" else plot.series[:1]
    x, y = (area.left + area.right) / 2, (area.top + area.bottom) / 2
    outer = min(area.right - area.left, area.bottom - area.top) / 2 - 4
    hole = 0.45 * outer if plot.kind == "doughnutChart" else 0.0
    width = (outer - hole) / max(1, len(rings))
    for ring, series in enumerate(rings):
        inside = hole + ring * width
        values = [abs(value or 0.0) for value in series.values]
        if len(values) > MAX_SLICES:
            values = [*values[: MAX_SLICES - 1], sum(values[MAX_SLICES - 1 :])]
        total = sum(values) or 1.0
        angle = 0.0
        for number, value in enumerate(values):
            turn = min(value / total, 0.9999) * 2 * math.pi
            css = f"slice {marked(colour(number), series.differs)}"
            canvas.path(css, _slice(x, y, inside, inside + width, angle, turn))
            angle += turn


def _slice(x: float, y: float, inner: float, outer: float, angle: float, turn: float) -> str:
    large = int(turn > math.pi)
    (ax, ay), (bx, by) = (
        (x + outer * math.sin(radians), y - outer * math.cos(radians))
        for radians in (angle, angle + turn)
    )
    (cx, cy), (dx, dy) = (
        (x + inner * math.sin(radians), y - inner * math.cos(radians))
        for radians in (angle + turn, angle)
    )
    back = f"A{inner:.1f} {inner:.1f} 0 {large} 0 {dx:.1f} {dy:.1f}" if inner else ""
    return (
        f"M{ax:.1f} {ay:.1f}A{outer:.1f} {outer:.1f} 0 {large} 1 {bx:.1f} {by:.1f}"
        f"L{cx:.1f} {cy:.1f}{back}Z"
    )


WIDTH, HEIGHT = 520, 320


def draw_chart(plots: Sequence[DrawnPlot], frame: Frame) -> Canvas:
    """Draws a chart with at least one part of a kind that can be drawn."""
    canvas = Canvas(WIDTH, HEIGHT)
    area = Area(8, 8, WIDTH - 8, HEIGHT - 8)
    if frame.title:
        css = marked("ct", "title" in frame.differing)
        canvas.text(css, WIDTH / 2, 20, frame.title, room=WIDTH - 20)
        area.top += 22
    shown = [plot for plot in plots if plot.kind in DRAWN_KINDS]
    if frame.legend is not None:
        draw_legend(canvas, area, shown, frame)
    if shown[0].kind in ROUND:
        draw_round(canvas, area, shown[0])
    elif shown[0].kind in POINTS:
        draw_points(canvas, area, shown, frame)
    else:
        flat = [plot for plot in shown if plot.kind not in {*ROUND, *POINTS}]
        _draw_categories(canvas, area, flat, frame)
    return canvas


# -- columns, bars, lines, areas ------------------------------------------------------------------


def _draw_categories(canvas: Canvas, area: Area, plots: Sequence[DrawnPlot], frame: Frame) -> None:
    labels = max((series.labels for plot in plots for series in plot.series), key=len, default=())
    count = max((len(series.values) for plot in plots for series in plot.series), default=0)
    lying = any(plot.kind == "barChart" and plot.direction == "bar" for plot in plots)
    names = [labels[index] if index < len(labels) else str(index + 1) for index in range(count)]
    draw_axis_titles(canvas, area, frame, lying=lying)
    groups = _by_axes(plots)
    longest = max(map(width_of, names), default=0)
    if lying:
        area.left += min(120, longest + 8)
        area.bottom -= 18
        area.right -= END
        scale = _value_scale(groups[0], area.left, area.right, frame)
        draw_ticks(canvas, area, scale, lying=True)
        _draw_names(canvas, area, names, lying=True)
        scales = [
            scale,
            *(_value_scale(group, area.left, area.right, frame) for group in groups[1:]),
        ]
    else:
        area.bottom -= 18
        room = [label_width(_value_scale(group, area.bottom, area.top, frame)) for group in groups]
        area.left += room[0]
        area.right -= sum(room[1:], start=END / 2)
        scales = [_value_scale(group, area.bottom, area.top, frame) for group in groups]
        draw_ticks(canvas, area, scales[0], lying=False)
        if len(groups) > 1:
            draw_right_ticks(canvas, area, scales[1])
        _draw_names(canvas, area, names, lying=False)
    bands = _Bands(area, max(1, count), lying=lying)
    bars = [plot for plot in plots if plot.kind == "barChart"]
    order = ("areaChart", "barChart", "lineChart")
    drawn = [(plot, scale) for group, scale in zip(groups, scales, strict=True) for plot in group]
    for plot, scale in sorted(drawn, key=lambda pair: order.index(pair[0].kind)):
        first = sum(len(earlier.series) for earlier in plots[: plots.index(plot)])
        if plot.kind == "barChart":
            _draw_bars(canvas, bands, scale, plot, first, bars)
        else:
            _draw_lines(canvas, bands, scale, plot, first)


def _by_axes(plots: Sequence[DrawnPlot]) -> list[list[DrawnPlot]]:
    """Groups the parts of a chart by the axes that they share; there are at most two groups."""
    groups: dict[tuple[str, ...], list[DrawnPlot]] = {}
    for plot in plots:
        groups.setdefault(plot.axes, []).append(plot)
    first, *others = groups.values()
    return [first, [plot for group in others for plot in group]] if others else [first]


def _value_scale(plots: Sequence[DrawnPlot], start: float, end: float, frame: Frame) -> Scale:
    values = [value for plot in plots for pair in _stacked(plot) for one in pair for value in one]
    from_zero = any(plot.kind != "lineChart" for plot in plots)
    numbers = [value for value in values if value is not None]
    if not from_zero and numbers and min(numbers) >= 0 and min(numbers) < 0.8 * max(numbers):
        from_zero = True
    return scale_of(numbers, start, end, from_zero=from_zero, bounds=frame.y_bounds)


_Ends = list[tuple[float | None, float | None]]


def _stacked(plot: DrawnPlot) -> list[_Ends]:
    """For each series, the start and the end of each value's mark; None for a missing value."""
    if plot.grouping not in {"stacked", "percentStacked"}:
        start = 0.0 if plot.kind != "lineChart" else None
        return [
            [(None if value is None else start, value) for value in one.values]
            for one in plot.series
        ]
    count = max((len(series.values) for series in plot.series), default=0)
    totals = [
        sum(abs(one.values[at] or 0.0) for one in plot.series if at < len(one.values))
        for at in range(count)
    ]
    ups, downs = [0.0] * count, [0.0] * count
    ends_of_series = []
    for one in plot.series:
        ends: _Ends = []
        for at, value in enumerate(one.values):
            if value is None:
                ends.append((None, None))
                continue
            share = value / (totals[at] or 1.0) * 100 if plot.grouping != "stacked" else value
            stack = downs if share < 0 else ups
            ends.append((stack[at], stack[at] + share))
            stack[at] += share
        ends_of_series.append(ends)
    return ends_of_series


@dataclass(frozen=True, slots=True)
class _Bands:
    """The space of each category along the category axis."""

    area: Area
    count: int
    lying: bool

    @property
    def width(self) -> float:
        area = self.area
        room = area.bottom - area.top if self.lying else area.right - area.left
        return room / self.count

    def start(self, index: int) -> float:
        """Where the space of a category begins; horizontal bars start with the lowest one."""
        if self.lying:
            return self.area.bottom - (index + 1) * self.width
        return self.area.left + index * self.width

    def middle(self, index: int) -> float:
        return self.start(index) + self.width / 2


def _draw_bars(
    canvas: Canvas,
    bands: _Bands,
    scale: Scale,
    plot: DrawnPlot,
    first: int,
    bars: Sequence[DrawnPlot],
) -> None:
    stacked = plot.grouping in {"stacked", "percentStacked"}
    beside = 1 if stacked else max(1, sum(len(bar.series) for bar in bars))
    before = 0 if stacked else sum(len(bar.series) for bar in bars[: bars.index(plot)])
    width = 0.76 * bands.width / beside
    for number, (series, ends) in enumerate(zip(plot.series, _stacked(plot), strict=True)):
        css = marked(colour(first + number), series.differs)
        offset = 0.12 * bands.width + (0 if stacked else (before + number) * width)
        if bands.lying and not stacked:
            offset = 0.88 * bands.width - (before + number + 1) * width
        for at, (low, high) in enumerate(ends):
            if low is None or high is None:
                continue
            start, length = scale.at(low), scale.at(high) - scale.at(low)
            if bands.lying:
                canvas.rect(css, start, bands.start(at) + offset, length, width)
            else:
                canvas.rect(css, bands.start(at) + offset, start, width, length)


def _draw_lines(canvas: Canvas, bands: _Bands, scale: Scale, plot: DrawnPlot, first: int) -> None:
    for number, (series, ends) in enumerate(zip(plot.series, _stacked(plot), strict=True)):
        css = marked(colour(first + number), series.differs)
        for stretch in _stretches(ends):
            tops = [(bands.middle(at), scale.at(high)) for at, _, high in stretch]
            if plot.kind == "areaChart":
                feet = [(bands.middle(at), scale.at(low or 0.0)) for at, low, _ in stretch]
                canvas.line(f"area {css}", [*tops, *reversed(feet)])
                continue
            canvas.line(f"line {css}", tops)
            if len(ends) <= 40:
                for x, y in tops:
                    canvas.dot(css, x, y, 2.4)


def _stretches(ends: _Ends) -> list[list[tuple[int, float | None, float]]]:
    """Runs of neighbouring points that have a value."""
    stretches: list[list[tuple[int, float | None, float]]] = [[]]
    for at, (low, high) in enumerate(ends):
        if high is None:
            stretches.append([])
        else:
            stretches[-1].append((at, low, high))
    return [stretch for stretch in stretches if stretch]


def _draw_names(canvas: Canvas, area: Area, names: Sequence[str], *, lying: bool) -> None:
    """Draws the names of categories, as many as fit."""
    bands = _Bands(area, max(1, len(names)), lying=lying)
    if lying:
        step = max(1, math.ceil(15 / bands.width))
        for index in range(0, len(names), step):
            canvas.text("cv end", area.left - 5, bands.middle(index) + 4, names[index], room=116)
        return
    longest = max(map(width_of, names), default=0.0)
    step = max(1, math.ceil(min(longest + 8, 76) / bands.width))
    for index in range(0, len(names), step):
        room = step * bands.width - 4
        canvas.text("cv mid", bands.middle(index), area.bottom + 14, names[index], room=room)
