"""Scales of charts: values on a line, with ticks at round numbers. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_STEPS = (1, 2, 2.5, 5, 10)
_TICKS = 5
_LARGEST = 1e200
"""Larger values cannot be drawn next to others."""


def drawable(value: object) -> float | None:
    """A value as a number that can be drawn; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and abs(number) <= _LARGEST else None


@dataclass(frozen=True, slots=True)
class Scale:
    """A stretch of values on a line.

    Attributes:
        low, high: the values at its ends.
        start, end: where the ends are.
        ticks: round values between.
    """

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Where a value is; values beyond the ends are at the ends."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def base(self) -> float:
        """Where bars begin: at zero, or at the end that is next to it."""
        return self.at(0.0)


def scale_of(
    values: Iterable[float],
    start: float,
    end: float,
    *,
    from_zero: bool = True,
    bounds: Sequence[float | None] = (None, None),
) -> Scale:
    """A scale that holds some values.

    Args:
        values: what has to be on it.
        start: where its low end is.
        end: where its high end is.
        from_zero: whether zero has to be on it.
        bounds: its ends, if they are set.
    """
    known = [*values, *([0.0] if from_zero else [])] or [0.0, 1.0]
    low, high = min(known), max(known)
    if low == high:
        low, high = (min(low, 0.0), max(high, 0.0)) if low else (0.0, 1.0)
    step = _step((high - low) / _TICKS)
    low, high = math.floor(low / step) * step, math.ceil(high / step) * step
    first, last = (drawable(bound) for bound in bounds)
    if first is not None or last is not None:
        wanted = low if first is None else first, high if last is None else last
        if wanted[0] < wanted[1]:
            low, high = wanted
            step = _step((high - low) / _TICKS)
    count = min(50, int((high - low) / step + 1.000001))
    begin = math.ceil(low / step - 1e-9) * step
    ticks = tuple(begin + place * step for place in range(count + 1))
    return Scale(low, high, start, end, tuple(tick for tick in ticks if low <= tick <= high))


def _step(rough: float) -> float:
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(each * power for each in (*_STEPS, 20) if each * power >= rough * 0.999)


def tick_label(value: float) -> str:
    """A value along an axis, short."""
    size = abs(value)
    if size < 1e-12:
        return "0"
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if limit <= size < limit * 1e3:
            return f"{value / limit:.4g}{unit}"
    if size >= 1e15 or size < 1e-4:
        return f"{value:.3g}"
    return f"{round(value, 6):,.6g}" if size < 1e3 else f"{value:,.0f}"
