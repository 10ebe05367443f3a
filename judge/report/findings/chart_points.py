"""Charts without categories along an axis: points, bubbles, pies and rings."""

from __future__ import annotations

import math
from collections.abc import Sequence

from judge.report.findings.chart_data import Drawn, DrawnPlot
from judge.report.findings.chart_frame import (
    END,
    MAX_SLICES,
    Area,
    Frame,
    colour,
    draw_axis_titles,
    draw_ticks,
    marked,
    room_of,
)
from judge.report.findings.drawing import Canvas
from judge.report.findings.scales import scale_of, tick_label


def draw_points(canvas: Canvas, area: Area, plots: Sequence[DrawnPlot], frame: Frame) -> None:
    """Draws points, or bubbles, on two scales."""
    draw_axis_titles(canvas, area, frame, lying=False)
    area.right -= END
    area.bottom -= 18
    series = [each for plot in plots for each in plot.series]
    placed = [list(_places(each)) for each in series]
    every = [point for points in placed for point in points]
    bounds = frame.y_bounds
    ys = scale_of([y for _, y, _ in every], area.bottom, area.top, from_zero=False, bounds=bounds)
    area.left += room_of(ys)
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


def _places(series: Drawn) -> list[tuple[float, float, float | None]]:
    """Points that can be drawn: x, y and size. Without numbers, x counts from 1."""
    found = []
    numbered = any(each is not None for each in series.xs)
    for at, y in enumerate(series.values):
        x: float | None = float(at + 1)
        if numbered:
            x = series.xs[at] if at < len(series.xs) else None
        if x is not None and y is not None:
            found.append((x, y, series.sizes[at] if at < len(series.sizes) else None))
    return found


def draw_round(canvas: Canvas, area: Area, plot: DrawnPlot) -> None:
    """A pie of the first series; of a doughnut, a ring for each."""
    rings = plot.series if plot.kind == "doughnutChart" else plot.series[:1]
    x, y = (area.left + area.right) / 2, (area.top + area.bottom) / 2
    outer = min(area.right - area.left, area.bottom - area.top) / 2 - 4
    hole = 0.45 * outer if plot.kind == "doughnutChart" else 0.0
    width = (outer - hole) / max(1, len(rings))
    for ring, series in enumerate(rings):
        inside = hole + ring * width
        values = [abs(each or 0.0) for each in series.values]
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
        (x + outer * math.sin(each), y - outer * math.cos(each)) for each in (angle, angle + turn)
    )
    (cx, cy), (dx, dy) = (
        (x + inner * math.sin(each), y - inner * math.cos(each)) for each in (angle + turn, angle)
    )
    back = f"A{inner:.1f} {inner:.1f} 0 {large} 0 {dx:.1f} {dy:.1f}" if inner else ""
    return (
        f"M{ax:.1f} {ay:.1f}A{outer:.1f} {outer:.1f} 0 {large} 1 {bx:.1f} {by:.1f}"
        f"L{cx:.1f} {cy:.1f}{back}Z"
    )
