"""Decides whether two cell values agree under the rules of a profile, and how they differ."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from dataclasses import replace

from judge.compare.cells.comparison import DifferenceClass
from judge.compare.profiles import Dates, Profile, TextNumbers, Times
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.number_formats import to_serial

Agree = Callable[[CellValue, CellValue], bool]
"""Whether an expected and an actual value agree."""

# Possessive quantifiers do not backtrack: a megabyte of digits followed by a letter is rejected
# immediately.
_NUMBER = re.compile(r"\s*+[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?\s*+")
_SPACES = re.compile(r"\s+")
_NOT_MEANINGFUL = {
    *("#DIV/0!", "#N/A", "N/A", "NA", "N.A.", "N/M", "NM", "N.M."),
    *("NOT MEANINGFUL", "NOT APPLICABLE", "NOT AVAILABLE"),
    *("-", "--", "---", "\u2013", "\u2014"),
}
_NOISE_SHARE = 1e-9  # relative difference that rounding errors of a sum can have
_SECOND = dt.timedelta(seconds=1)
_SECOND_IN_DAYS = 1 / 86_400
_MINUTES_A_DAY = 1440
_MS_A_MINUTE = 60_000
_EXCELS_LEAP_DAY = dt.date(1900, 2, 28)
_DAY_START = dt.datetime(2000, 1, 1)  # noqa: DTZ001 - any day will do


def text_as_number(text: str) -> float | None:
    """Returns the number that a string spells out; None if it is not a number.

    ``nan``, ``inf`` and ``1_000`` are text: no spreadsheet reads them as numbers.
    """
    return float(text) if _NUMBER.fullmatch(text) else None


def is_not_meaningful(value: CellValue) -> bool:
    """Whether a value is one of the marks that finance uses for "not meaningful"."""
    text = value.code if isinstance(value, ErrorValue) else value
    return isinstance(text, str) and text.strip().upper() in _NOT_MEANINGFUL


def comparator(
    profile: Profile, *, expected_1904: bool = False, actual_1904: bool = False
) -> Agree:
    """Returns the function that decides by a profile's rules whether two values agree.

    Args:
        profile: the rules.
        expected_1904: whether the workbook of the expected values uses the 1904 date system.
        actual_1904: the same for the actual values.

    Source: SpreadsheetBench, rules of its evaluation script; each deviation is listed in
    docs/comparison.md.
    """
    comparable = _comparable(profile)
    numbers = _numbers(profile)
    # A relative tolerance makes no sense for dates: 1 % of a 2024 serial number is over a year.
    days = _numbers(replace(profile, relative_tolerance=0.0, near_zero=0.0))

    def agree(expected: CellValue, actual: CellValue) -> bool:
        if profile.not_meaningful and is_not_meaningful(expected) and is_not_meaningful(actual):
            return True
        first, second = comparable(expected), comparable(actual)
        if isinstance(first, float) and isinstance(second, float):
            return numbers(first, second)
        if first is None or second is None:
            return first is second
        if profile.times_are_numbers and _are_stored_alike(first, second):
            return _stored_agree(
                first, second, _stored(first, expected_1904), _stored(second, actual_1904), profile
            )
        if isinstance(first, dt.datetime):
            return _dates_agree(first, second, profile, days, date_1904=actual_1904)
        if isinstance(second, dt.datetime):
            return _dates_agree(second, first, profile, days, date_1904=expected_1904)
        if isinstance(first, dt.time) or isinstance(second, dt.time):
            return _times_agree(first, second, profile)
        if isinstance(first, dt.timedelta) and isinstance(second, dt.timedelta):
            return abs(first - second) < _SECOND
        return type(first) is type(second) and first == second

    return agree


def _comparable(profile: Profile) -> Callable[[CellValue], CellValue]:
    """Returns a function that gives the same type to values that a profile treats alike."""
    plain_numbers = profile.text_numbers is TextNumbers.PLAIN

    def comparable(value: CellValue) -> CellValue:
        if value is None:
            return 0.0 if profile.blank_is_zero else None
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
        # Rounding alone would separate 5279.174999999999 from 5279.175, which are the same sum.
        apart = abs(expected - actual)
        if apart <= near_zero and 0 in {expected, actual}:
            return True
        if apart < noise and apart <= _NOISE_SHARE * max(abs(expected), abs(actual)):
            return True
        return apart <= max(absolute, relative * max(abs(expected), abs(actual)))

    return agree


def _dates_agree(
    date: dt.datetime,
    other: CellValue,
    profile: Profile,
    days: Callable[[float, float], bool],
    *,
    date_1904: bool,
) -> bool:
    """Whether a date agrees with another value; a number is read in its workbook's date system."""
    if isinstance(other, dt.datetime):
        if abs(date - other) < _SECOND:
            return True
        return profile.dates is Dates.SAME_DAY and date.date() == other.date()
    if not (profile.dates_are_numbers and isinstance(other, float)):
        return False
    return any(
        days(serial, other) or (profile.dates is Dates.SAME_DAY and other == math.floor(serial))
        for serial in _stored(date, date_1904)
    )


# -- what cells store -----------------------------------------------------------------------------


def _are_stored_alike(first: CellValue, second: CellValue) -> bool:
    """Whether both values are stored as numbers, and at least one shows a time or a duration."""
    times, numbers = (dt.time, dt.timedelta), (float, dt.time, dt.timedelta, dt.datetime)
    return (isinstance(first, times) or isinstance(second, times)) and (
        isinstance(first, numbers) and isinstance(second, numbers)
    )


def _stored(value: CellValue, date_1904: bool) -> tuple[float, ...]:
    """Returns the numbers that a cell may store for a number, a date, a time or a duration."""
    if isinstance(value, float):
        return (value,)
    assert isinstance(value, dt.datetime | dt.time | dt.timedelta)
    serial = to_serial(value, date_1904=date_1904)
    if isinstance(value, dt.datetime) and value.date() == _EXCELS_LEAP_DAY and not date_1904:
        return serial, serial + 1
    return (serial,)


def _stored_agree(
    first: CellValue,
    second: CellValue,
    expected: tuple[float, ...],
    actual: tuple[float, ...],
    profile: Profile,
) -> bool:
    """Whether two stored numbers of days agree if one of them is a time or a duration.

    They agree to the second, or to the minute if one is a time of day, and within the tolerance
    that is set. Rounding to two decimals, as for other numbers, would allow a quarter of an hour.
    """
    to_minute = profile.times is Times.SAME_MINUTE and (
        isinstance(first, dt.time) or isinstance(second, dt.time)
    )
    for one in expected:
        for other in actual:
            apart = abs(one - other)
            if not math.isfinite(apart):
                continue
            largest = max(abs(one), abs(other))
            allowed = max(profile.absolute_tolerance, profile.relative_tolerance * largest)
            if apart < _SECOND_IN_DAYS or apart <= allowed:
                return True
            if to_minute and 0 <= one < 1 and 0 <= other < 1 and _minute(one) == _minute(other):
                return True
    return False


def _minute(days: float) -> int:
    """Returns the minute of the day that a stored time shows, after rounding to milliseconds."""
    return round(days * _MINUTES_A_DAY * _MS_A_MINUTE) // _MS_A_MINUTE


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


def classify(
    expected: CellValue, actual: CellValue, profile: Profile | None = None
) -> DifferenceClass:
    """Returns the kind of difference between two values that do not agree.

    Args:
        expected: the gold's value.
        actual: the output's value.
        profile: the rules that they break. If these rules compare values of the two
            types with each other, the difference is not one of type. None means that no such rule
            applies.
    """
    if actual is None or actual == "":
        return DifferenceClass.MISSING
    if expected is None or expected == "":
        return DifferenceClass.EXTRA
    if isinstance(expected, ErrorValue) or isinstance(actual, ErrorValue):
        return DifferenceClass.ERROR_VALUE
    kinds = {_kind(expected), _kind(actual)}
    if len(kinds) == 1:
        # Two strings have the same type, even if only one of them can be read as a number.
        return DifferenceClass.WRONG_VALUE
    if kinds == {"number", "text"}:
        number, text = (expected, actual) if isinstance(actual, str) else (actual, expected)
        assert isinstance(number, int | float)
        assert isinstance(text, str)
        spelled = text_as_number(text)
        if spelled is not None and math.isclose(spelled, _as_float(number), rel_tol=_NOISE_SHARE):
            return DifferenceClass.NUMBER_AS_TEXT
    alike = _kind(expected, profile) == _kind(actual, profile)
    return DifferenceClass.WRONG_VALUE if alike else DifferenceClass.TYPE


def _kind(value: CellValue, profile: Profile | None = None) -> str:
    """Returns the type of a value; ``number`` if the profile compares it as a number."""
    if isinstance(value, bool):
        return "number" if profile is not None and profile.booleans_are_numbers else "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        plain = profile is not None and profile.text_numbers is TextNumbers.PLAIN
        return "number" if plain and text_as_number(value) is not None else "text"
    if isinstance(value, dt.time):
        return "number" if profile is not None and profile.times_are_numbers else "time"
    if isinstance(value, dt.timedelta):
        return "number" if profile is not None and profile.times_are_numbers else "duration"
    return "number" if profile is not None and profile.dates_are_numbers else "date"
