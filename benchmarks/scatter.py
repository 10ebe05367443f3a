"""Draws a scatter plot on logarithmic axes as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 480
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 44, 56
COLOURS = ("#c0504d", "#1f6f43")


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one kind: a label and (x, y) pairs, all above zero."""

    label: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class _Axis:
    low: int
    high: int
    start: float
    end: float

    @staticmethod
    def over(values: Sequence[float], start: float, end: float) -> _Axis:
        low = math.floor(math.log10(min(values)))
        return _Axis(low, max(low + 1, math.ceil(math.log10(max(values)))), start, end)

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> Iterator[tuple[float, str]]:
        for power in range(self.low, self.high + 1):
            value = 10.0**power
            yield self.at(value), f"{value:g}" if power < 0 else f"{int(value):,}"


def scatter(title: str, x_title: str, y_title: str, series: Sequence[Series]) -> str:
    """Returns the plot as an SVG document."""
    xs = [x for series_ in series for x, _ in series_.points]
    ys = [y for series_ in series for _, y in series_.points]
    x_axis = _Axis.over(xs, LEFT, WIDTH - RIGHT)
    y_axis = _Axis.over(ys, HEIGHT - BOTTOM, TOP)
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="13">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        written(LEFT, 24, title, size=16),
        written((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_title, anchor="middle"),
        written(16, (TOP + HEIGHT - BOTTOM) / 2, y_title, anchor="middle", turned=True),
        *_grid(x_axis, y_axis),
    ]
    for number, (series_, colour) in enumerate(zip(series, COLOURS, strict=False)):
        # A single path of dots, instead of a circle for each point, keeps the document small.
        dots = "".join(f"M{x_axis.at(x):.1f} {y_axis.at(y):.1f}h0" for x, y in series_.points)
        parts.append(
            f'<path d="{dots}" stroke="{colour}" stroke-opacity="0.6" stroke-width="4" '
            'stroke-linecap="round" fill="none"/>'
        )
        x = LEFT + 220 + 240 * number
        parts.append(f'<circle cx="{x}" cy="20" r="5" fill="{colour}"/>')
        parts.append(written(x + 10, 24, series_.label))
    return "\n".join([*parts, "</svg>", ""])


def _grid(x_axis: _Axis, y_axis: _Axis) -> Iterator[str]:
    line = '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="#dddddd"/>'
    for position, label in x_axis.ticks():
        yield line.format(position, TOP, position, HEIGHT - BOTTOM)
        yield written(position, HEIGHT - BOTTOM + 18, label, anchor="middle")
    for position, label in y_axis.ticks():
        yield line.format(LEFT, position, WIDTH - RIGHT, position)
        yield written(LEFT - 6, position + 4, label, anchor="end")


def written(
    x: float, y: float, text: str, *, anchor: str = "start", size: int = 13, turned: bool = False
) -> str:
    """Makes text for a plot, with its position, and escaped."""
    turn = f' transform="rotate(-90 {x} {y})"' if turned else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{turn}>'
        f"{escape(text)}</text>"
    )
