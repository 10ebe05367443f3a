"""Rules that look at all cells of their range: duplicates, top and bottom, averages, scales. Pure.

Source: ECMA-376 part 1, 18.3.1.10, and the formulas that [MS-XLSB] gives for these kinds.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from judge.compare.cells.value import text_as_number
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.dates import to_serial
from judge.workbook.sheets.sheet_tail import ConditionalRule
from judge.workbook.styles.style import Fill, Palette, resolve_colour
from judge.workbook.xml_numbers import whole_number

Holds = Callable[[int], bool]
"""Whether a rule holds in the cell of a key."""

_ON = {"1", "true"}


def as_number(value: CellValue) -> float | None:
    """The number that a cell counts as among others; None for strings, blanks and the like."""
    if isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta):
        return float(to_serial(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def aggregate(rule: ConditionalRule, values: Mapping[int, CellValue]) -> Holds | str:
    """In which cells of its ranges a rule holds.

    Args:
        rule: a rule of the kinds ``duplicateValues``, ``uniqueValues``, ``top10`` or
            ``aboveAverage``.
        values: the values of its ranges by key.

    Returns:
        Whether it holds in a cell, or why that cannot be determined.
    """
    if rule.kind in {"duplicateValues", "uniqueValues"}:
        return _repeated(values, unique=rule.kind == "uniqueValues")
    numbers = {
        key: number for key, each in values.items() if (number := as_number(each)) is not None
    }
    holds = _ranked(rule, numbers) if rule.kind == "top10" else _averaged(rule, numbers)
    if isinstance(holds, str):
        return holds
    return lambda key: key in numbers and holds(numbers[key])


def _repeated(values: Mapping[int, CellValue], *, unique: bool) -> Holds:
    told = {key: _likeness(value) for key, value in values.items() if value not in {None, ""}}
    counts = Counter(told.values())
    return lambda key: key in told and (counts[told[key]] == 1) is unique


def _likeness(value: CellValue) -> object:
    """What is the same for values that count as duplicates."""
    if isinstance(value, str):
        number = text_as_number(value)
        return value.casefold() if number is None else number
    if isinstance(value, bool | ErrorValue):
        return (type(value).__name__, value)
    return as_number(value)


def _ranked(rule: ConditionalRule, numbers: Mapping[int, float]) -> Callable[[float], bool] | str:
    terms = dict(rule.terms)
    rank = whole_number(terms.get("rank", "10"))
    if rank is None:
        return f"the rank {terms.get('rank', '')[:20]!r}"
    bottom = terms.get("bottom", "0").lower() in _ON
    ranked = sorted(numbers.values(), reverse=not bottom)
    if not ranked:
        return lambda _: False
    count = rank
    if terms.get("percent", "0").lower() in _ON:
        count = max(1, len(ranked) * rank // 100)
    if count < 1:
        return lambda _: False
    last = ranked[min(count, len(ranked)) - 1]
    return (lambda number: number <= last) if bottom else (lambda number: number >= last)


def _averaged(rule: ConditionalRule, numbers: Mapping[int, float]) -> Callable[[float], bool] | str:
    terms = dict(rule.terms)
    deviations = whole_number(terms.get("stdDev", "0"))
    if deviations is None:
        return f"{terms.get('stdDev', '')[:20]!r} standard deviations"
    if not numbers:
        return lambda _: False
    mean = math.fsum(numbers.values()) / len(numbers)
    above = terms.get("aboveAverage", "1").lower() in _ON
    if deviations:
        spread = math.fsum((each - mean) ** 2 for each in numbers.values()) / len(numbers)
        apart = deviations * math.sqrt(spread)
        if above:
            return lambda number: number - mean >= apart
        return lambda number: mean - number >= apart
    if terms.get("equalAverage", "0").lower() in _ON:
        return (lambda number: number >= mean) if above else (lambda number: number <= mean)
    return (lambda number: number > mean) if above else (lambda number: number < mean)


# -- colour scales --------------------------------------------------------------------------------


def scale(
    rule: ConditionalRule, values: Mapping[int, CellValue], palette: Palette
) -> Callable[[int], Fill | None] | str:
    """The colours that a colour scale gives to the cells of its ranges.

    Args:
        rule: a rule of the kind ``colorScale``.
        values: the values of its ranges by key.
        palette: what its colours refer to.

    Returns:
        The fill of a cell, None if it gets none, or why that cannot be determined.
    """
    numbers = {
        key: number for key, each in values.items() if (number := as_number(each)) is not None
    }
    points = [dict(each) for name, each in rule.drawn if name == "cfvo"]
    colours = [resolve_colour(dict(each), palette) for name, each in rule.drawn if name == "color"]
    if len(points) != len(colours) or len(points) not in {2, 3} or None in colours:
        return "an incomplete colour scale"
    if not numbers:
        return lambda _: None
    ranked = sorted(numbers.values())
    places = [_threshold(each, ranked) for each in points]
    stops = [each for each in places if each is not None]
    if len(stops) < len(places):
        return "a colour scale with bounds that have to be computed"
    known = [each for each in colours if each is not None]

    def fill(key: int) -> Fill | None:
        number = numbers.get(key)
        return None if number is None else Fill("solid", (_between(number, stops, known),))

    return fill


def _threshold(point: Mapping[str, str], ranked: Sequence[float]) -> float | None:
    low, high = ranked[0], ranked[-1]
    kind = point.get("type", "")
    if kind in {"min", "max"}:
        return low if kind == "min" else high
    number = text_as_number(point.get("val", ""))
    if number is None or not math.isfinite(number) or kind not in {"num", "percent", "percentile"}:
        return None
    if kind == "num":
        return number
    share = min(max(number / 100, 0.0), 1.0)
    if kind == "percent":
        return low + (high - low) * share
    place = share * (len(ranked) - 1)
    below = int(place)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (place - below)


def _between(number: float, stops: Sequence[float], colours: Sequence[str]) -> str:
    if number <= stops[0]:
        return colours[0]
    for index in range(1, len(stops)):
        if number <= stops[index]:
            first, last = stops[index - 1], stops[index]
            share = (number - first) / (last - first) if last > first else 1.0
            return _mixed(colours[index - 1], colours[index], share)
    return colours[-1]


def _mixed(first: str, last: str, share: float) -> str:
    channels = []
    for at in (0, 2, 4):
        low, high = int(first[at : at + 2], 16), int(last[at : at + 2], 16)
        channels.append(f"{round(low + (high - low) * share):02X}")
    return "".join(channels)
