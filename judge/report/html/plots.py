"""Plots as inline SVG, drawn from the JSON form of a report.

Colours and fonts come from the page's style sheet. The positions of shapes come from numbers in the
document; the only other numbers in a plot are the ticks of its axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

_WIDTH, _HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 16, 14, 46


def interval_strip(soft: Mapping[str, Any], hard: Mapping[str, Any]) -> Markup:
    """Soft (filled) and hard (hollow) score with their intervals, as wide as the table cell.

    Args:
        soft: an estimate: ``value``, ``low``, ``high``, from 0 to 1.
        hard: the same.
    """
    parts = [
        Markup('<path class="rule" d="M{} 0V24"/>').format(_short(x))
        for x in (0, 250, 500, 750, 1000)
    ]
    parts += [_whisker(soft, "soft", 8), _whisker(hard, "hard", 17)]
    return Markup(
        '<svg class="strip" viewBox="-12 0 1024 24" preserveAspectRatio="none" aria-hidden="true">'
        "{}</svg>"
    ).format(Markup().join(parts))


def _whisker(estimate: Mapping[str, Any], name: str, y: float) -> Markup:
    if estimate["value"] is None:
        return Markup()
    markup = Markup()
    if estimate["low"] is not None:
        low, high = 1000 * estimate["low"], 1000 * estimate["high"]
        markup += Markup('<path class="whisker {}" d="M{} {}H{}"/>').format(
            name, _short(low), y, _short(high)
        )
    dot = Markup('<path class="dot {}" d="M{} {}h0"/>')
    x = _short(1000 * estimate["value"])
    markup += dot.format(name, x, y)
    if name == "hard":
        markup += dot.format("hollow", x, y)
    return markup


_SCALES = (0.05, 0.1, 0.2, 0.25, 0.5, 1.0)


def difference_scale(pairs: Sequence[Mapping[str, Any]]) -> float:
    """How far an axis has to extend to show the differences of some pairs with their intervals.

    Args:
        pairs: the pairs, each with ``soft_difference`` and ``hard_difference``.

    Returns:
        A number from 0.05 to 1; the axis extends from minus this number to this number.
    """
    ends = [
        abs(float(pair[key][part]))
        for pair in pairs
        for key in ("soft_difference", "hard_difference")
        for part in ("difference", "low", "high")
        if pair[key][part] is not None
    ]
    widest = max(ends, default=1.0)
    return next((end for end in _SCALES if widest <= end), 1.0)


def difference_strip(difference: Mapping[str, Any], name: str, scale: float = 1.0) -> Markup:
    """A difference of scores with its interval.

    Args:
        difference: ``difference``, ``low`` and ``high``, from -1 to 1.
        name: ``soft`` or ``hard``.
        scale: the axis extends from ``-scale`` to ``scale``.
    """
    moved = {
        part: None if difference[key] is None else 0.5 + 0.5 * float(difference[key]) / scale
        for part, key in (("value", "difference"), ("low", "low"), ("high", "high"))
    }
    rules = [Markup('<path class="rule" d="M{} 0V24"/>').format(x) for x in (0, 250, 750, 1000)]
    return Markup(
        '<svg class="strip" viewBox="-12 0 1024 24" preserveAspectRatio="none" aria-hidden="true">'
        '{}<path class="rule zero" d="M500 0V24"/>{}</svg>'
    ).format(Markup().join(rules), _whisker(moved, name, 12))


def verdict_bar(verdicts: Sequence[Mapping[str, Any]]) -> Markup:
    """The shares of the verdicts as one stacked bar.

    Args:
        verdicts: entries with ``verdict``, ``description`` and ``share``.
    """
    parts = []
    x = 0.0
    for entry in verdicts:
        width = 1000 * float(entry["share"])
        parts.append(
            Markup('<rect class="v-{}" x="{}" y="0" width="{}" height="20"/>').format(
                entry["verdict"], _short(x), _short(width)
            )
        )
        x += width
    return Markup(
        '<svg class="bar" viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" '
        'aria-label="share of each verdict">{}</svg>'
    ).format(Markup().join(parts))


def share_bar(share: float | None) -> Markup:
    """One share as a bar."""
    return Markup(
        '<svg class="sharebar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="1000" height="10"/><rect class="fill" width="{}" height="10"/>'
        "</svg>"
    ).format(_short(1000 * (share or 0.0)))


# -- time against size ----------------------------------------------------------------------------


def time_against_size(tasks: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Wall time of each case against the size of its input, both on logarithmic scales.

    Args:
        tasks: entries of the report.

    Returns:
        The plot; None if fewer than three cases have both numbers.
    """
    points = [
        (case["input_bytes"], case["wall_s"], case["verdict"])
        for task in tasks
        for case in task["cases"]
        if case["input_bytes"] and case["wall_s"]
    ]
    if len(points) < 3:
        return None
    xs = _LogAxis([point[0] for point in points], _LEFT, _WIDTH - _RIGHT)
    ys = _LogAxis([point[1] for point in points], _HEIGHT - _BOTTOM, _TOP)
    parts = [*_x_ticks(xs, _bytes_label), *_y_ticks(ys, _seconds_label)]
    parts += [
        Markup('<circle class="p {}" cx="{}" cy="{}" r="3"/>').format(
            "ok" if verdict == "AC" else "bad", _short(xs.at(size)), _short(ys.at(time))
        )
        for size, time, verdict in points
    ]
    parts += _axis_names("size of the input", "wall time")
    return _plot(parts, "wall time of each case against the size of its input")


class _LogAxis:
    """The powers of ten on an axis and, if these are only a few, twice and five times each."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        low, high = math.log10(min(values)), math.log10(max(values))
        margin = max(0.05 * (high - low), 0.05)
        self._low, self._high = low - margin, high + margin
        self._start, self._end = start, end
        steps: tuple[int, ...] = (1,) if high - low > 2 else (1, 2, 5)
        first, last = math.floor(self._low), math.ceil(self._high)
        self.ticks = [
            step * 10.0**power
            for power in range(first, last + 1)
            for step in steps
            if self._low <= math.log10(step) + power <= self._high
        ]

    def at(self, value: float) -> float:
        """The position of a value."""
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)


def _bytes_label(value: float) -> str:
    if value >= 1e6:
        return f"{value / 1e6:g} MB"
    return f"{value / 1e3:g} kB" if value >= 1e3 else f"{value:g} B"


def _seconds_label(value: float) -> str:
    return f"{value:g} s" if value >= 1 else f"{value * 1e3:g} ms"


def _x_ticks(axis: _LogAxis, label: Callable[[float], str]) -> list[Markup]:
    bottom = _HEIGHT - _BOTTOM
    rule = Markup('<path class="rule" d="M{} {}V{}"/>')
    text = Markup('<text class="axis mid" x="{}" y="{}">{}</text>')
    return [
        rule.format(x, _TOP, bottom) + text.format(x, bottom + 16, label(tick))
        for tick in axis.ticks
        for x in [_short(axis.at(tick))]
    ]


def _y_ticks(axis: _LogAxis, label: Callable[[float], str]) -> list[Markup]:
    return [_y_rule(axis.at(tick), label(tick)) for tick in axis.ticks]


def _y_rule(y: float, label: str) -> Markup:
    rule = Markup('<path class="rule" d="M{} {}H{}"/>').format(_LEFT, _short(y), _WIDTH - _RIGHT)
    text = Markup('<text class="axis end" x="{}" y="{}">{}</text>')
    return rule + text.format(_LEFT - 6, _short(y + 4), label)


def _axis_names(x: str, y: str) -> list[Markup]:
    return [
        Markup('<text class="axisname mid" x="{}" y="{}">{}</text>').format(
            (_LEFT + _WIDTH - _RIGHT) // 2, _HEIGHT - 8, x
        ),
        Markup('<text class="axisname" x="{}" y="{}">{}</text>').format(_LEFT + 6, _TOP + 10, y),
    ]


def _plot(parts: Sequence[Markup], label: str) -> Markup:
    return Markup(
        '<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(_WIDTH, _HEIGHT, label, Markup().join(parts))


# -- effects --------------------------------------------------------------------------------------


def effect(groups: Sequence[Mapping[str, Any]], name: str) -> Markup | None:
    """Soft and hard scores over ordered groups, such as rounds or sizes, with their intervals.

    Args:
        groups: entries with ``label`` and ``scores``.
        name: the property that differs between the groups.

    Returns:
        The plot; None if fewer than two groups have a score.
    """
    scored = [group for group in groups if group["scores"]["soft_restriction"]["value"] is not None]
    if len(scored) < 2:
        return None
    width = (_WIDTH - _LEFT - _RIGHT) / len(scored)
    parts = [_y_rule(_y(percent / 100), str(percent)) for percent in range(0, 101, 25)]
    for key, offset in (("soft_restriction", -6), ("hard_restriction", 6)):
        css = key.partition("_")[0]
        positions = [_LEFT + width * (number + 0.5) + offset for number in range(len(scored))]
        values = [group["scores"][key] for group in scored]
        line = " ".join(
            f"{'ML'[bool(number)]}{x:.1f} {_y(value['value']):.1f}"
            for number, (x, value) in enumerate(zip(positions, values, strict=True))
        )
        parts.append(Markup('<path class="line {}" d="{}"/>').format(css, line))
        for x, value in zip(positions, values, strict=True):
            if value["low"] is not None:
                parts.append(
                    Markup('<path class="whisker {}" d="M{} {}V{}"/>').format(
                        css, _short(x), _short(_y(value["low"])), _short(_y(value["high"]))
                    )
                )
            parts.append(
                Markup('<circle class="dot {}" cx="{}" cy="{}" r="4"/>').format(
                    css, _short(x), _short(_y(value["value"]))
                )
            )
    parts += [
        Markup('<text class="axis mid{}" x="{}" y="{}">{}</text>').format(
            " lower" if number % 2 else "",
            _short(_LEFT + width * (number + 0.5)),
            _HEIGHT - _BOTTOM + 18,
            group["label"],
        )
        for number, group in enumerate(scored)
    ]
    parts += _axis_names(name, "score, %")
    return _plot(parts, f"scores by {name}")


# -- histograms ------------------------------------------------------------------------------------


def histogram(bars: Sequence[Mapping[str, Any]], name: str) -> Markup | None:
    """A histogram of episodes, with the accepted part of each bar filled.

    Args:
        bars: entries with ``low``, ``high``, ``episodes`` and ``accepted``.
        name: the quantity that is counted.

    Returns:
        The plot; None if there is nothing to count.
    """
    highest = max((entry["episodes"] for entry in bars), default=0)
    if not highest:
        return None
    step = _whole_step(highest)
    width = (_WIDTH - _LEFT - _RIGHT) / len(bars)
    room = _HEIGHT - _BOTTOM - _TOP - 12

    def y(count: int) -> float:
        return _HEIGHT - _BOTTOM - room * count / highest

    parts = [_y_rule(y(count), str(count)) for count in range(0, highest + 1, step)]
    bar = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>')
    for number, entry in enumerate(bars):
        left, thick = _LEFT + width * (number + 0.12), width * 0.76
        for css, count in (("tried", entry["episodes"]), ("solved", entry["accepted"])):
            top = y(count)
            parts.append(bar.format(css, *map(_short, (left, top, thick, _HEIGHT - _BOTTOM - top))))
        low, high = entry["low"], entry["high"]
        parts.append(
            Markup('<text class="axis mid" x="{}" y="{}">{}</text>').format(
                _short(left + thick / 2),
                _HEIGHT - _BOTTOM + 16,
                low if low == high else f"{low}\u2013{high}",
            )
        )
    parts += _axis_names(name, "episodes")
    return _plot(parts, f"episodes by {name}")


def _whole_step(highest: int) -> int:
    """A round distance between grid lines, so that at most six lines are drawn."""
    power: int = 10 ** max(0, len(str(highest)) - 2)
    steps = [factor * power for factor in (1, 2, 5, 10, 20, 50)]
    return next((step for step in steps if highest / step <= 6), steps[-1])


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP - 12)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
