"""Converts numbers to text and text to numbers, as Excel does with English (US) settings. Pure.

Sources: ECMA-376 part 1, 18.17 (formulas); Microsoft's pages on VALUE, NUMBERVALUE, DATEVALUE,
TIMEVALUE, and on the General number format; `benchmarks/conversions.yaml` has cases with their own
source. If Excel's answer follows from none of them, :class:`UnsureError` is raised.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from fractions import Fraction

from judge.recalc.functions.regions import ENGLISH, UNITED_STATES, DayOrder, Region
from judge.workbook.cell import ErrorValue

LAST_SERIAL = 2_958_465
"""The 31st of December 9999, the last day that Excel supports, as a serial number."""

DIGITS = 15
"""Significant decimal digits of a number in Excel."""

_PLAIN_EXPONENT = 19
"""Largest exponent of a number that is written without E notation."""

_PLAIN_LENGTH = 20
"""A number below 1 that needs more characters than this is written in E notation."""

_ROUNDED_EXPONENT = 98
"""Beyond this exponent, Excel rounds the last digit in a way that is not documented."""


VALUE, NUM, DIV0, NA = (ErrorValue(code) for code in ("#VALUE!", "#NUM!", "#DIV/0!", "#N/A"))


class UnsureError(Exception):
    """Excel's result does not follow from its documentation, or is not computed here."""


def decimal_digits(number: float, digits: int = DIGITS) -> tuple[str, int]:
    """The significant digits of a number's absolute value, and the exponent of the first digit.

    Args:
        number: finite.
        digits: how many; zeros at the end are left out.
    """
    mantissa, exponent = f"{abs(number):.{digits - 1}e}".split("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def number_text(number: float) -> str:
    """Writes a number as text, as ``A1&""`` does.

    Raises:
        UnsureError: the number is smaller or larger than the documentation covers.
    """
    if not math.isfinite(number):
        raise UnsureError
    if number == 0:
        return "0"
    digits, exponent = decimal_digits(number)
    if abs(exponent) > _ROUNDED_EXPONENT:
        raise UnsureError
    sign = "-" if number < 0 else ""
    if exponent > _PLAIN_EXPONENT or (
        exponent < 0 and len("0.") - exponent - 1 + len(digits) > _PLAIN_LENGTH
    ):
        return sign + scientific(digits, exponent)
    return sign + written_out(digits, exponent)


def written_out(digits: str, exponent: int) -> str:
    """Writes digits with a decimal point at the position that the exponent gives."""
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    part = digits[exponent + 1 :]
    return f"{whole}.{part}" if part else whole


def scientific(digits: str, exponent: int) -> str:
    """Writes digits in E notation, with at least two digits in the exponent."""
    point = "." if len(digits) > 1 else ""
    return f"{digits[0]}{point}{digits[1:]}E{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


GENERAL_WIDTH = 11
"""How many characters the General format shows, without the sign."""


def general_text(number: float) -> str:
    """Writes a number in the General format, as ``TEXT(A1,"General")`` does.

    Raises:
        UnsureError: the number is not finite.
    """
    if not math.isfinite(number):
        raise UnsureError
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    full, exponent = decimal_digits(number)
    if -4 <= exponent < GENERAL_WIDTH:
        room = GENERAL_WIDTH - (exponent + 2 if exponent >= 0 else 2)
        plain = f"{round_half_up(abs(number), max(room, 0)):f}"
        plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
        if len(plain) <= GENERAL_WIDTH:
            return sign + plain
    elif exponent < 0:
        length = len("0.") - exponent - 1 + len(full)
        if length == GENERAL_WIDTH and len(full) > 1:
            raise UnsureError
        if length <= GENERAL_WIDTH:
            return sign + written_out(full, exponent)
    digits, exponent = decimal_digits(number, 6)
    return sign + scientific(digits, exponent)


def round_half_up(number: float, places: int) -> Decimal:
    """Rounds the 15 digits of a number to some decimal places, half away from zero.

    Args:
        number: finite.
        places: below 0 for tens, hundreds …
    """
    digits, exponent = decimal_digits(number)
    value = Decimal((int(number < 0), tuple(map(int, digits)), exponent - len(digits) + 1))
    if exponent + places < -1:
        return Decimal(0)
    unit = Decimal(1).scaleb(-places)
    rounded = (value / unit).to_integral_value(rounding="ROUND_HALF_UP") * unit
    return rounded.quantize(unit) if places > 0 else rounded


def rounded_towards(number: float, places: int, *, zero: bool) -> float:
    """Rounds a number to some decimal places, towards zero or away from it.

    Raises:
        UnsureError: its 16th and 17th digit decide.
    """
    digits, exponent = decimal_digits(number)
    first = Decimal((int(number < 0), tuple(map(int, digits)), exponent - len(digits) + 1))
    unit = Decimal(1).scaleb(-places)
    rounded = {
        (value / unit).to_integral_value(rounding="ROUND_DOWN" if zero else "ROUND_UP")
        for value in (first, Decimal(repr(number)))
    }
    if len(rounded) > 1:
        raise UnsureError
    return float(rounded.pop() * unit)


# -- text as a number ------------------------------------------------------------------------------

_NUMBER = re.compile(r"(\d+|\d{1,3}(?:,\d{3})+)?(\.\d*)?(?:[eE]([+-]?\d{1,3}))?")
_FRACTION = re.compile(r"(\d+) +(\d{1,5})/(\d{1,5})")
_TIME = re.compile(r"(\d{1,4}):(\d{1,2})(?::(\d{1,2})(\.\d{0,9})?)?( *[AaPp][Mm])?")
_HOUR = re.compile(r"(\d{1,2}) +([AaPp][Mm])")
_MONTHS = tuple(name.lower() for name in ENGLISH.short_months if name)
_MONTH = "(" + "|".join((*(name.lower() for name in ENGLISH.months if name), *_MONTHS)) + ")"
_DATES = (
    (re.compile(r"(?P<m>\d{1,2})([/-])(?P<d>\d{1,2})\2(?P<y>\d{4}|\d{2})"), True),
    (re.compile(r"(?P<y>\d{4})([/-])(?P<m>\d{1,2})\2(?P<d>\d{1,2})"), True),
    (re.compile(rf"(?i)(?P<d>\d{{1,2}})[- /](?P<m>{_MONTH})[- /,]+(?P<y>\d{{4}}|\d{{2}})"), True),
    (re.compile(rf"(?i)(?P<d>\d{{1,2}})(?P<m>{_MONTH})(?P<y>\d{{4}})"), True),
    (re.compile(rf"(?i)(?P<m>{_MONTH})[- ](?P<d>\d{{1,2}}),? +(?P<y>\d{{4}})"), True),
    (re.compile(rf"(?i)(?P<m>{_MONTH})[- ](?P<y>\d{{4}})"), False),
)
_LETTERS_OF_NUMBERS = re.compile(rf"{_MONTH[:-1]}|sept|am|pm|a|p|e)", re.IGNORECASE)
_PLAIN_TEXT = re.compile(r"[\x20-\x7e]*")


def text_number(text: str, region: Region = UNITED_STATES) -> float | None:
    """The number that Excel reads in a string where it expects a number.

    Args:
        text: the string.
        region: how dates in text are read.

    Returns:
        The number; None where Excel shows ``#VALUE!``.

    Raises:
        UnsureError: the result depends on the region, on the day of the calculation, or on
            something that is not documented.
    """
    shown = text.strip(" ")
    if not any(map(str.isdigit, shown)):
        return None
    if not _PLAIN_TEXT.fullmatch(shown) or len(shown) > 64:
        raise UnsureError
    number = _signed(shown)
    if number is None:
        if is_of_other_order(shown, region):
            return None
        number = date_number(shown, region)
        if number is not None and shown != text:
            _check_blanks(text)
            return None
    if number is None and not _is_no_number(shown):
        raise UnsureError
    return number


def _check_blanks(text: str) -> None:
    """Refuses a date with blanks around it: two of Excel's workbooks show that it is not a number.

    Raises:
        UnsureError: there is a blank on one side only.
    """
    if not text.startswith(" ") or not text.endswith(" "):
        raise UnsureError


def _signed(text: str) -> float | None:
    """Reads a number with signs, a currency or a percent sign; None if it is not a number."""
    rest, negative = text, False
    if rest.startswith("(") and rest.endswith(")"):
        rest, negative = rest[1:-1].strip(" "), True
        if rest[:1] in "+-" or rest[-1:] in "+-":
            raise UnsureError
    elif rest[0] in "+-":
        rest, negative = rest[1:].lstrip(" "), rest[0] == "-"
    elif rest[-1] in "+-":
        rest, negative = rest[:-1].rstrip(" "), rest[-1] == "-"
        if not _NUMBER.fullmatch(rest):
            return None
    percent = False
    if rest.startswith("$"):
        rest = rest[1:].lstrip(" ")
        if rest[:1] == "-" and not negative:
            rest, negative = rest[1:], True
    if rest.endswith("%"):
        rest, percent = rest[:-1].rstrip(" "), True
    number = _unsigned(rest)
    if number is None:
        return None
    number = number / 100 if percent else number
    return -number if negative else number


def _unsigned(text: str) -> float | None:
    match = _NUMBER.fullmatch(text)
    if match is not None and (match[1] or (match[2] and len(match[2]) > 1)):
        number = float(_first_digits(text.replace(",", "")))
        if math.isinf(number) or (0 < number < 1e-300) or number > 1e300:
            raise UnsureError
        return number
    match = _FRACTION.fullmatch(text)
    if match is not None:
        if int(match[3]) == 0:
            raise UnsureError
        return float(int(match[1]) + Fraction(int(match[2]), int(match[3])))
    return None


def _first_digits(text: str) -> str:
    """Sets all digits of a number after the 15th to zero, as Excel does when it reads one."""
    value = Decimal(text)
    if len(value.as_tuple().digits) <= DIGITS:
        return text
    sign, digits, _ = value.as_tuple()
    first = next((at for at, digit in enumerate(digits) if digit), len(digits))
    cut = tuple(digit if at < first + DIGITS else 0 for at, digit in enumerate(digits))
    return str(Decimal((sign, cut, value.adjusted() - len(digits) + 1)))


def date_number(text: str, region: Region = UNITED_STATES) -> float | None:
    """Reads the serial number of a date, a time, or both; None if the text is neither.

    Args:
        text: the text.
        region: as for :func:`text_number`.

    Raises:
        UnsureError: the result depends on the region or on the day of the calculation.
    """
    moment = day_and_time(text, region)
    return None if moment is None else moment[0] + moment[1]


def day_and_time(text: str, region: Region = UNITED_STATES) -> tuple[int, float] | None:
    """Reads a date as a day number (day 1 is in 1900) and a time in days; None if it is neither.

    Args:
        text: the text.
        region: as for :func:`text_number`.

    Raises:
        UnsureError: the result depends on the region or on the day of the calculation.
    """
    clock = _time(text)
    if clock is not None:
        return 0, clock
    for at in (position for position, letter in enumerate(text) if letter == " "):
        head, tail = text[:at].rstrip(" ,"), text[at + 1 :].strip(" ")
        clock = _time(tail)
        if clock is not None and clock < 1:
            day = _date(head, region)
            return None if day is None else (day, clock)
    day = _date(text, region)
    return None if day is None else (day, 0.0)


def _time(text: str) -> float | None:
    match = _TIME.fullmatch(text)
    if match is None:
        match = _HOUR.fullmatch(text)
        if match is None:
            return None
        hours, minutes, seconds, half = int(match[1]), 0, Fraction(0), match[2]
    else:
        hours, minutes, half = int(match[1]), int(match[2]), match[5]
        seconds = Fraction(int(match[3] or 0))
        if match[4] and len(match[4]) > 1:
            seconds += Fraction(match[4])
    if half:
        if not 0 <= hours <= 12 or hours == 0:
            raise UnsureError
        hours = hours % 12 + (12 if half.strip().lower() == "pm" else 0)
    if minutes > 59 or seconds >= 60:
        raise UnsureError
    return float((hours * 3600 + minutes * 60 + seconds) / 86_400)


def _date(text: str, region: Region) -> int | None:
    if not region.speaks_english and region.names_month(text):
        raise UnsureError  # which names of another language are read, and where, is not documented
    matches = ((pattern.fullmatch(text), has_day) for pattern, has_day in _DATES)
    match, has_day = next((pair for pair in matches if pair[0] is not None), (None, False))
    if match is None:
        return None
    month_text = match["m"].lower()
    month = int(month_text) if month_text.isdigit() else _MONTHS.index(month_text[:3]) + 1
    year, day = int(match["y"]), int(match["d"]) if has_day else 1
    if match.re is _DATES[0][0] and region.day_order is DayOrder.DAY_FIRST:
        month, day = day, month
    if len(match["y"]) == 2:
        year += 2000 if year < 30 else 1900
    if year < 1900:
        return None
    if (year, month, day) == (1900, 2, 29):
        return 60
    try:
        return day_number(dt.date(year, month, day))
    except ValueError:
        # With the settings of another region, the day may come first.
        raise UnsureError from None


_IN_SOME_ORDER = re.compile(r"(\d{1,2})([/-])(\d{1,2})\2\d{4}(?: [\d:. APMapm]*)?")


def is_of_other_order(text: str, region: Region) -> bool:
    """Whether text is not a date because its second or first number cannot be a month.

    In a year of two digits, the numbers may be in a third order.
    """
    order = region.day_order
    match = None if order is DayOrder.UNKNOWN else _IN_SOME_ORDER.fullmatch(text)
    if match is None:
        return False
    first, second = int(match[1]), int(match[3])
    month, day = (second, first) if order is DayOrder.DAY_FIRST else (first, second)
    return 1 <= day <= 12 < month <= 31


_DAY_OF_YEAR = (
    re.compile(rf"(?i)(?P<d>\d{{1,2}})[- /]?(?P<m>{_MONTH})"),
    re.compile(rf"(?i)(?P<m>{_MONTH})[- ](?P<d>\d{{1,2}})"),
)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def month_and_day(text: str, region: Region) -> tuple[int, int] | None:
    """Reads a day of the current year, such as ``1Sep``; None if the text is not one.

    Raises:
        UnsureError: the names of months are not English.
    """
    for pattern in _DAY_OF_YEAR:
        match = pattern.fullmatch(text)
        if match is not None:
            if not region.speaks_english:
                raise UnsureError
            month, day = _MONTHS.index(match["m"].lower()[:3]) + 1, int(match["d"])
            return (month, day) if 1 <= day <= _DAYS[month - 1] else None
    return None


def _is_no_number(text: str) -> bool:
    """Whether text with digits is certainly not a number, a date or a time."""
    words = re.findall("[A-Za-z]+", text)
    return any(not _LETTERS_OF_NUMBERS.fullmatch(word) for word in words) or "_" in text


# -- days ------------------------------------------------------------------------------------------

_DAY_ONE = dt.date(1899, 12, 31)
_AFTER_LEAP = dt.date(1900, 3, 1)
_FIRST_DAYS = (1, 32)
"""Serial numbers of the first days of January and February 1900."""


def day_number(day: dt.date) -> int:
    """The serial number of a day in the 1900 system, in which February 1900 has 29 days."""
    return (day - _DAY_ONE).days + (day >= _AFTER_LEAP)


def day_parts(number: int) -> tuple[int, int, int]:
    """Year, month and day of a serial number in the 1900 system.

    Day 0 is the 0th of January 1900 to Excel, and day 60 the 29th of February.
    """
    if number == 0:
        return 1900, 1, 0
    if number == 60:
        return 1900, 2, 29
    day = _DAY_ONE + dt.timedelta(days=number - (number > 60))
    return day.year, day.month, day.day


def date_serial(year: int, month: int, day: int) -> int | None:
    """The serial number that DATE returns; None where it is ``#NUM!``.

    Raises:
        UnsureError: the result is not documented: the month is before 1900, but counting the days
            leads to 1900 or later; or the year is beyond 9999.
    """
    if not 0 <= year < 10_000:
        return None
    if year < 1900:
        year += 1900
    years, months = divmod(month - 1, 12)
    year += years
    if year < 1900:
        before = year < 1 or (dt.date(year, months + 1, 1) - _DAY_ONE).days + day - 1 < 0
        if before:
            return None
        raise UnsureError
    if year == 1900 and months < len(_FIRST_DAYS):
        number = _FIRST_DAYS[months] + day - 1
        return number if number >= 0 else None
    if year > 9999:
        number = LAST_SERIAL + day + 28 * months
        if number - 400 > LAST_SERIAL and year > 10_050:
            return None
        if day >= 1 - 31 * months and months >= 0:
            return None
        raise UnsureError
    number = day_number(dt.date(year, months + 1, 1)) + day - 1
    return number if 0 <= number <= LAST_SERIAL else None


# -- text in order, and in patterns ----------------------------------------------------------------

_ORDERED = re.compile(r"[a-z]*|[0-9]*")


def text_order(first: str, second: str, operator: str) -> bool:
    """Whether two strings are in the order of an operator such as ``<``; case does not matter.

    Raises:
        UnsureError: the order depends on the region, as a string mixes letters and other
            characters.
    """
    one, two = first.lower(), second.lower()
    if one != two and not (_ORDERED.fullmatch(one) and _ORDERED.fullmatch(two)):
        raise UnsureError
    return {"<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two}[operator]


def fits(text: str, pattern: str) -> bool:
    """Whether a string matches a pattern with ``*``, ``?`` and ``~``.

    The time is proportional to the product of their lengths.
    """
    parts = _pattern_parts(pattern)
    at = part_index = 0
    star, resumed = -1, 0
    while at < len(text):
        part = parts[part_index] if part_index < len(parts) else None
        if part is not None and part[0] != "*" and (part[0] == "?" or part[1] == text[at]):
            at, part_index = at + 1, part_index + 1
        elif part is not None and part[0] == "*":
            star, resumed = part_index, at
            part_index += 1
        elif star >= 0:
            resumed += 1
            at, part_index = resumed, star + 1
        else:
            return False
    return all(part[0] == "*" for part in parts[part_index:])


def _pattern_parts(pattern: str) -> list[tuple[str, str]]:
    parts: list[tuple[str, str]] = []
    at = 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "~" and pattern[at + 1 : at + 2] and pattern[at + 1] in "*?~":
            at += 1
            parts.append(("", pattern[at]))
        elif letter in "*?":
            parts.append((letter, letter))
        else:
            parts.append(("", letter))
        at += 1
    return parts
