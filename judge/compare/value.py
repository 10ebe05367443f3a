"""Whether two cell values agree under the rules of a profile, and how they differ. Pure."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable

from judge.compare.cell import CellValue, ErrorValue
from judge.compare.comparison import DifferenceClass
from judge.compare.dates import to_serial
from judge.compare.profiles import Dates, Profile, TextNumbers, Times

Agree = Callable[[CellValue, CellValue], bool]
"""Whether an expected and an actual value agree."""

_NUMBER = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\s*")
_SPACES = re.compile(r"\s+")
_NOT_MEANINGFUL = {
    *("#DIV/0!", "#N/A", "N/A", "NA", "N.A.", "N/M", "NM", "N.M."),
    *("NOT MEANINGFUL", "NOT APPLICABLE", "NOT AVAILABLE"),
    *("-", "--", "---", "\u2013", "\u2014"),
}
_NOISE_SHARE = 1e-9
_SECOND = dt.timedelta(seconds=1)
_DAY_START = dt.datetime(2000, 1, 1)  # noqa: DTZ001 - any day will do


def text_as_number(text: str) -> float | None:
    """The number that a text spells, or None.

    ``nan``, ``inf`` and ``1_000`` are text: no spreadsheet reads them as numbers.
    """
    return float(text) if _NUMBER.fullmatch(text) else None


def is_not_meaningful(value: CellValue) -> bool:
    """Whether a value is one of finance's marks for a number that means nothing."""
    text = value.code if isinstance(value, ErrorValue) else value
    return isinstance(text, str) and text.strip().upper() in _NOT_MEANINGFUL


def comparator(profile: Profile) -> Agree:
    """The function that decides under a profile's rules whether two values agree.

    Source: SpreadsheetBench, rules of its evaluation script; each deviation is listed in
    docs/comparison.md.
    """
    comparable = _comparable(profile)
    numbers = _numbers(profile)

    def agree(expected: CellValue, actual: CellValue) -> bool:
        if profile.not_meaningful and is_not_meaningful(expected) and is_not_meaningful(actual):
            return True
        first, second = comparable(expected), comparable(actual)
        if isinstance(first, float) and isinstance(second, float):
            return numbers(first, second)
        if isinstance(first, dt.datetime) or isinstance(second, dt.datetime):
            return _dates_agree(first, second, profile, numbers)
        if isinstance(first, dt.time) or isinstance(second, dt.time):
            return _times_agree(first, second, profile)
        if isinstance(first, dt.timedelta) and isinstance(second, dt.timedelta):
            return abs(first - second) < _SECOND
        return type(first) is type(second) and first == second

    return agree


def _comparable(profile: Profile) -> Callable[[CellValue], CellValue]:
    """Turns values that mean the same under a profile into the same kind of value."""
    plain_numbers = profile.text_numbers is TextNumbers.PLAIN

    def comparable(value: CellValue) -> CellValue:
        if isinstance(value, bool):
            return float(value) if profile.booleans_are_numbers else value
        if isinstance(value, int | float):
            return _as_float(value)
        if isinstance(value, ErrorValue):
            return value.code if profile.errors_are_text else value
        if isinstance(value, str):
            if plain_numbers and (number := text_as_number(value)) is not None:
                return number
            value = _fold(value, profile) or None
        if value is None and profile.blank_is_zero:
            return 0.0
        if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
            return dt.datetime.combine(value, dt.time())
        return value

    return comparable


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _fold(text: str, profile: Profile) -> str:
    if profile.ignore_whitespace:
        text = _SPACES.sub(" ", text).strip()
    return text.casefold() if profile.ignore_case else text


def _numbers(profile: Profile) -> Callable[[float, float], bool]:
    decimals = profile.decimals
    noise, near_zero = profile.noise, profile.near_zero
    relative, absolute = profile.relative_tolerance, profile.absolute_tolerance

    def agree(expected: float, actual: float) -> bool:
        if expected == actual or (expected != expected and actual != actual):  # noqa: PLR0124 - NaN
            return True
        if not (math.isfinite(expected) and math.isfinite(actual)):
            return False
        if decimals is not None and round(expected, decimals) == round(actual, decimals):
            return True
        # Rounding alone tells 5279.174999999999 from 5279.175, which are the same sum.
        apart = abs(expected - actual)
        if apart <= near_zero and 0 in {expected, actual}:
            return True
        if apart < noise and apart <= _NOISE_SHARE * max(abs(expected), abs(actual)):
            return True
        return apart <= max(absolute, relative * max(abs(expected), abs(actual)))

    return agree


def _dates_agree(
    expected: CellValue,
    actual: CellValue,
    profile: Profile,
    numbers: Callable[[float, float], bool],
) -> bool:
    if isinstance(expected, dt.datetime) and isinstance(actual, dt.datetime):
        if abs(expected - actual) < _SECOND:
            return True
        return profile.dates is Dates.SAME_DAY and expected.date() == actual.date()
    date, other = (expected, actual) if isinstance(expected, dt.datetime) else (actual, expected)
    if not (profile.dates_are_numbers and isinstance(date, dt.datetime)):
        return False
    if not isinstance(other, float):
        return False
    serial = to_serial(date)
    if numbers(serial, other):
        return True
    return profile.dates is Dates.SAME_DAY and other == math.floor(serial)


def _times_agree(expected: CellValue, actual: CellValue, profile: Profile) -> bool:
    if isinstance(expected, dt.time) and isinstance(actual, dt.time):
        first = dt.datetime.combine(_DAY_START, expected)
        second = dt.datetime.combine(_DAY_START, actual)
        if abs(first - second) < _SECOND:
            return True
        return profile.times is Times.SAME_MINUTE and (
            (expected.hour, expected.minute) == (actual.hour, actual.minute)
        )
    if profile.times is not Times.SAME_MINUTE:
        return False
    time, other = (expected, actual) if isinstance(expected, dt.time) else (actual, expected)
    return isinstance(time, dt.time) and other == f"{time:%H:%M}"


# -- classes --------------------------------------------------------------------------------------


def classify(expected: CellValue, actual: CellValue) -> DifferenceClass:
    """What kind of difference two values show that do not agree."""
    if actual is None or actual == "":
        return DifferenceClass.MISSING
    if expected is None or expected == "":
        return DifferenceClass.EXTRA
    if isinstance(expected, ErrorValue) or isinstance(actual, ErrorValue):
        return DifferenceClass.ERROR_VALUE
    kinds = {_kind(expected), _kind(actual)}
    if kinds == {"number", "text"}:
        number, text = (expected, actual) if isinstance(actual, str) else (actual, expected)
        assert isinstance(number, int | float)
        assert isinstance(text, str)
        spelled = text_as_number(text)
        if spelled is not None and math.isclose(spelled, _as_float(number), rel_tol=_NOISE_SHARE):
            return DifferenceClass.NUMBER_AS_TEXT
    return DifferenceClass.WRONG_VALUE if len(kinds) == 1 else DifferenceClass.TYPE


def _kind(value: CellValue) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, dt.time):
        return "time"
    if isinstance(value, dt.timedelta):
        return "duration"
    return "date"
