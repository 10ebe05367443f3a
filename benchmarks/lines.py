"""Draws lines on linear axes, and bars of shares, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.scatter import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Series, written

COLOURS = ("#1f6f43", "#c0504d", "#30578c", "#9a9a9a", "#b58a2e")


def lines(title: str, x_title: str, y_title: str, series: Sequence[Series]) -> str:
    """Draws lines through points; both axes begin at zero."""
    x_step, x_top = _scale([x for line in series for x, _ in line.points])
    y_step, y_top = _scale([y for line in series for _, y in line.points])

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + x / x_top * (WIDTH - RIGHT - LEFT),
            HEIGHT - BOTTOM - y / y_top * (HEIGHT - BOTTOM - TOP),
        )

    parts = [*_head(title)]
    parts += [
        written((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_title, anchor="middle"),
        written(16, (TOP + HEIGHT - BOTTOM) / 2, y_title, anchor="middle", turned=True),
    ]
    for value in _ticks(x_step, x_top):
        x, _ = at(value, 0)
        parts += [_rule(x, TOP, x, HEIGHT - BOTTOM)]
        parts += [written(x, HEIGHT - BOTTOM + 18, f"{value:g}", anchor="middle")]
    for value in _ticks(y_step, y_top):
        _, y = at(0, value)
        parts += [_rule(LEFT, y, WIDTH - RIGHT, y)]
        parts += [written(LEFT - 6, y + 4, f"{value:g}", anchor="end")]
    for number, (line, colour) in enumerate(zip(series, COLOURS, strict=False)):
        points = [at(*point) for point in line.points]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in points) if len(points) < 50 else ""
        parts.append(f'<path d="M{path}" stroke="{colour}" stroke-width="2" fill="none"/>')
        parts.append(
            f'<path d="{dots}" stroke="{colour}" stroke-width="7" stroke-linecap="round"/>'
        )
        parts += _legend(number, line.label, colour)
    return "\n".join([*parts, "</svg>", ""])


def bars(title: str, shares: Mapping[str, Mapping[str, float]]) -> str:
    """Draws a bar for each row, divided into its parts; every row has the same parts."""
    names = list(next(iter(shares.values())))
    parts = [*_head(title)]
    for number, name in enumerate(names):
        parts += _legend(number, name, COLOURS[number], width=130)
    height = (HEIGHT - BOTTOM - TOP) / len(shares)
    for row, (label, values) in enumerate(shares.items()):
        y, x, total = TOP + 8 + row * height, float(LEFT + 40), sum(values.values())
        parts.append(written(x - 8, y + height / 2, label, anchor="end"))
        for number, name in enumerate(names):
            width = values[name] / total * (WIDTH - RIGHT - LEFT - 40)
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height - 12:.1f}" '
                f'fill="{COLOURS[number]}"/>'
            )
            if width > 40:
                share = f"{values[name] / total:.0%}"
                parts.append(written(x + width / 2, y + height / 2, share, anchor="middle"))
            x += width
    return "\n".join([*parts, "</svg>", ""])


def _head(title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="13">'
    )
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>'
    yield written(LEFT, 18, title, size=16)


def _legend(number: int, label: str, colour: str, *, width: int = 200) -> list[str]:
    x = LEFT + width * number
    return [f'<circle cx="{x}" cy="32" r="5" fill="{colour}"/>', written(x + 10, 36, label)]


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#dddddd"/>'


def _scale(values: Sequence[float]) -> tuple[float, float]:
    """Returns the distance of ticks, and the end of an axis that contains the values."""
    highest = max(values) or 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    step = next(factor * power / 5 for factor in (1, 2.5, 5, 10) if factor * power >= highest)
    return step, step * math.ceil(highest / step)


def _ticks(step: float, top: float) -> Iterator[float]:
    for number in range(round(top / step) + 1):
        yield number * step
