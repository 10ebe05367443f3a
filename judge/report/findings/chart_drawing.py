"""Charts drawn from their series: bars, lines, areas, pies and points.

It is the data that is drawn, in the page's own colours, and not what a spreadsheet program would
make of the chart's format.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from judge.report.findings.chart_data import DrawnPlot
from judge.report.findings.chart_frame import (
    DRAWN_KINDS,
    END,
    POINTS,
    ROUND,
    Area,
    Frame,
    colour,
    draw_axis_titles,
    draw_legend,
    draw_right_ticks,
    draw_ticks,
    marked,
    room_of,
)
from judge.report.findings.chart_points import draw_points, draw_round
from judge.report.findings.drawing import Canvas, width_of
from judge.report.findings.scales import Scale, scale_of

WIDTH, HEIGHT = 520, 320


def draw_chart(plots: Sequence[DrawnPlot], frame: Frame) -> Canvas:
    """Draws a chart, at least one part of which is of a kind that is drawn."""
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
        flat = [each for each in shown if each.kind not in {*ROUND, *POINTS}]
        _draw_categories(canvas, area, flat, frame)
    return canvas


# -- columns, bars, lines, areas ------------------------------------------------------------------


def _draw_categories(canvas: Canvas, area: Area, plots: Sequence[DrawnPlot], frame: Frame) -> None:
    labels = max((each.labels for plot in plots for each in plot.series), key=len, default=())
    count = max((len(each.values) for plot in plots for each in plot.series), default=0)
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
        scales = [scale, *(_value_scale(each, area.left, area.right, frame) for each in groups[1:])]
    else:
        area.bottom -= 18
        room = [room_of(_value_scale(each, area.bottom, area.top, frame)) for each in groups]
        area.left += room[0]
        area.right -= sum(room[1:], start=END / 2)
        scales = [_value_scale(each, area.bottom, area.top, frame) for each in groups]
        draw_ticks(canvas, area, scales[0], lying=False)
        if len(groups) > 1:
            draw_right_ticks(canvas, area, scales[1])
        _draw_names(canvas, area, names, lying=False)
    bands = _Bands(area, max(1, count), lying=lying)
    bars = [plot for plot in plots if plot.kind == "barChart"]
    order = ("areaChart", "barChart", "lineChart")
    drawn = [(plot, scale) for group, scale in zip(groups, scales, strict=True) for plot in group]
    for plot, scale in sorted(drawn, key=lambda each: order.index(each[0].kind)):
        first = sum(len(each.series) for each in plots[: plots.index(plot)])
        if plot.kind == "barChart":
            _draw_bars(canvas, bands, scale, plot, first, bars)
        else:
            _draw_lines(canvas, bands, scale, plot, first)


def _by_axes(plots: Sequence[DrawnPlot]) -> list[list[DrawnPlot]]:
    """The parts of a chart by the axes that they share; two groups at most."""
    groups: dict[tuple[str, ...], list[DrawnPlot]] = {}
    for plot in plots:
        groups.setdefault(plot.axes, []).append(plot)
    first, *others = groups.values()
    return [first, [plot for group in others for plot in group]] if others else [first]


def _value_scale(plots: Sequence[DrawnPlot], start: float, end: float, frame: Frame) -> Scale:
    values = [value for plot in plots for pair in _stacked(plot) for one in pair for value in one]
    from_zero = any(plot.kind != "lineChart" for plot in plots)
    known = [each for each in values if each is not None]
    if not from_zero and known and min(known) >= 0 and min(known) < 0.8 * max(known):
        from_zero = True
    return scale_of(known, start, end, from_zero=from_zero, bounds=frame.y_bounds)


_Ends = list[tuple[float | None, float | None]]


def _stacked(plot: DrawnPlot) -> list[_Ends]:
    """For each series, where each of its values begins and ends; None where it has none."""
    if plot.grouping not in {"stacked", "percentStacked"}:
        start = 0.0 if plot.kind != "lineChart" else None
        return [
            [(None if each is None else start, each) for each in one.values] for one in plot.series
        ]
    count = max((len(each.values) for each in plot.series), default=0)
    totals = [
        sum(abs(one.values[at] or 0.0) for one in plot.series if at < len(one.values))
        for at in range(count)
    ]
    ups, downs = [0.0] * count, [0.0] * count
    found = []
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
        found.append(ends)
    return found


@dataclass(frozen=True, slots=True)
class _Bands:
    """The room of each category along the axis of categories."""

    area: Area
    count: int
    lying: bool

    @property
    def width(self) -> float:
        area = self.area
        room = area.bottom - area.top if self.lying else area.right - area.left
        return room / self.count

    def start(self, place: int) -> float:
        """Where the room of a category begins; lying bars begin below."""
        if self.lying:
            return self.area.bottom - (place + 1) * self.width
        return self.area.left + place * self.width

    def middle(self, place: int) -> float:
        return self.start(place) + self.width / 2


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
    """Neighbouring points that have a value."""
    found: list[list[tuple[int, float | None, float]]] = [[]]
    for at, (low, high) in enumerate(ends):
        if high is None:
            found.append([])
        else:
            found[-1].append((at, low, high))
    return [each for each in found if each]


def _draw_names(canvas: Canvas, area: Area, names: Sequence[str], *, lying: bool) -> None:
    """The names of categories, as many as there is room for."""
    bands = _Bands(area, max(1, len(names)), lying=lying)
    if lying:
        step = max(1, math.ceil(15 / bands.width))
        for place in range(0, len(names), step):
            canvas.text("cv end", area.left - 5, bands.middle(place) + 4, names[place], room=116)
        return
    longest = max(map(width_of, names), default=0.0)
    step = max(1, math.ceil(min(longest + 8, 76) / bands.width))
    for place in range(0, len(names), step):
        room = step * bands.width - 4
        canvas.text("cv mid", bands.middle(place), area.bottom + 14, names[place], room=room)
