"""Number formats: the code of each cell format, which codes show dates, and conversion of dates.

The rules for dates are those of openpyxl, which produced the published verdicts; so a value that is
read here has the same type and the same digits.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

EPOCH_1900 = dt.datetime(1899, 12, 30)  # noqa: DTZ001 - spreadsheet dates have no time zone
EPOCH_1904 = dt.datetime(1904, 1, 1)  # noqa: DTZ001
DAYS_BETWEEN_SYSTEMS = 1462
_MS_PER_DAY = 86_400_000

# Quoted text, and brackets (colours, locales, conditions) other than those of elapsed time.
_NOT_A_CODE = re.compile(r'"[^"\n]*+"|\[(?!hh?\]|mm?\]|ss?\])[^\]]*+\]')
_DATE_LETTER = re.compile(r"(?<![_\\])[dmhysDMHYS]")
_ELAPSED = re.compile(r"\[(?:hh?|mm?|ss?)\]", re.IGNORECASE)

_ISO = re.compile(
    r"(?P<date>(\d{4})-(\d{2})-(\d{2}))?T?"
    r"(?P<time>(\d{2}):(\d{2})(?::(\d{2})(\.\d{1,3})?)?)?Z?"
)
_ISO_DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,3})?)S)?")


MAX_CODE_LENGTH = 255
"""Most characters that a number format can have; a longer one is cut to this length first."""


@functools.lru_cache(maxsize=4096)
def is_date_format(code: str) -> bool:
    """Whether a number format shows dates or times; only its first section counts."""
    section = code[:MAX_CODE_LENGTH].split(";", maxsplit=1)[0]
    return _DATE_LETTER.search(_NOT_A_CODE.sub("", section)) is not None


@functools.lru_cache(maxsize=4096)
def is_elapsed_format(code: str) -> bool:
    """Whether a number format shows elapsed time, such as ``[h]:mm``."""
    return _ELAPSED.search(code[:MAX_CODE_LENGTH].split(";", maxsplit=1)[0]) is not None


def from_serial(
    serial: float, *, date_1904: bool = False, elapsed: bool = False
) -> dt.datetime | dt.time | dt.timedelta:
    """Converts a serial number to a date, time or duration.

    Args:
        serial: days since the workbook's epoch.
        date_1904: whether the workbook counts from 1904.
        elapsed: whether the number format shows elapsed time.

    Returns:
        A duration for elapsed time, a time of day for serials from 0 up to 1, otherwise a
        date-time; all to the millisecond. Serials 1 to 59 count from 1900-01-01, since Excel
        includes 1900-02-29.

    Raises:
        OverflowError, ValueError: the serial is outside the range of dates.
    """
    if elapsed:
        span = dt.timedelta(days=serial)
        if span.microseconds:
            # Seconds are rounded down to whole ones, and the rest is rounded to milliseconds.
            span = dt.timedelta(
                seconds=span.total_seconds() // 1, microseconds=round(span.microseconds, -3)
            )
        return span
    day, fraction = divmod(serial, 1)
    of_day = dt.timedelta(milliseconds=round(fraction * _MS_PER_DAY))
    if 0 <= serial < 1 and of_day.days == 0:
        return (EPOCH_1900 + of_day).time()
    epoch = EPOCH_1904 if date_1904 else EPOCH_1900
    if 0 < serial < 60 and not date_1904:
        day += 1
    return epoch + dt.timedelta(days=day) + of_day


def from_whole_serials(serials: Sequence[int], *, date_1904: bool = False) -> list[dt.datetime]:
    """Converts many whole serial numbers from 60 on to dates, like :func:`from_serial`.

    Raises:
        OverflowError, ValueError: a serial is below 60, or outside the range of dates.
    """
    if min(serials) < 60:
        raise ValueError("serial numbers of days before March 1900 have to be read one by one")
    epoch = EPOCH_1904 if date_1904 else EPOCH_1900
    return [*map(dt.datetime.fromordinal, map(epoch.toordinal().__add__, serials))]


def from_iso8601(text: str) -> dt.datetime | dt.date | dt.time | dt.timedelta:
    """Reads the text of a cell of type ``d``.

    Raises:
        ValueError: the text is not a date, time or duration.
    """
    if (match := _ISO.match(text)) and (match["date"] or match["time"]):
        _, year, month, day, _, hour, minute, second, fraction = match.groups()
        microsecond = int(float(fraction or 0) * 1_000_000)
        date = dt.date(int(year), int(month), int(day)) if match["date"] else None
        time = (
            dt.time(int(hour), int(minute), int(second or 0), microsecond)
            if match["time"]
            else None
        )
        if date is not None and time is not None:
            return dt.datetime.combine(date, time)
        return date or time or dt.time()
    if (match := _ISO_DURATION.match(text)) and any(match.groups()):
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
    raise ValueError(f"{text!r} is not an ISO 8601 date or time")


def to_serial(
    value: dt.datetime | dt.date | dt.time | dt.timedelta, *, date_1904: bool = False
) -> float:
    """The serial number of a date, time or duration with its fraction, in days.

    Args:
        value: the value. 1900-02-28 becomes 59, although 60 is read as the same date, since Excel
            includes 1900-02-29 (see :func:`from_serial`).
        date_1904: whether dates count from 1904; times and durations are the same in both systems.
    """
    if isinstance(value, dt.timedelta):
        return value.total_seconds() / 86_400
    if isinstance(value, dt.time):
        return (
            value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
        ) / 86_400
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    span = value - (EPOCH_1904 if date_1904 else EPOCH_1900)
    days = span.days - 1 if 0 < span.days <= 60 and not date_1904 else span.days
    return days + (span.seconds + span.microseconds / 1e6) / 86_400


_Predicate = Callable[[str], bool]

GENERAL = "General"

_MONEY = '"$"#,##0'
_MONEY_2 = '"$"#,##0.00'
BUILTIN_FORMATS: dict[int, str] = {
    0: GENERAL,
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    5: f"{_MONEY}_);({_MONEY})",
    6: f"{_MONEY}_);[Red]({_MONEY})",
    7: f"{_MONEY_2}_);({_MONEY_2})",
    8: f"{_MONEY_2}_);[Red]({_MONEY_2})",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "mm-dd-yy",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "m/d/yy h:mm",
    37: "#,##0_);(#,##0)",
    38: "#,##0_);[Red](#,##0)",
    39: "#,##0.00_);(#,##0.00)",
    40: "#,##0.00_);[Red](#,##0.00)",
    41: r'_(* #,##0_);_(* \(#,##0\);_(* "-"_);_(@_)',
    42: r'_("$"* #,##0_);_("$"* \(#,##0\);_("$"* "-"_);_(@_)',
    43: r'_(* #,##0.00_);_(* \(#,##0.00\);_(* "-"??_);_(@_)',
    44: r'_("$"* #,##0.00_)_("$"* \(#,##0.00\)_("$"* "-"??_)_(@_)',
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mmss.0",
    48: "##0.0E+0",
    49: "@",
}
"""Codes of the number formats that files name only by id, as openpyxl writes them."""


@dataclass(frozen=True)
class NumberFormats:
    """Number formats by cell format.

    Attributes:
        ids: id of the number format of each cell format (``cellXfs``), by index.
        custom: code of each number format that the workbook defines, by id.
    """

    ids: tuple[int, ...] = ()
    custom: dict[int, str] = field(default_factory=dict)

    def code(self, style: int) -> str:
        """The number format code of a cell format; ``General`` if none is defined."""
        if not 0 <= style < len(self.ids):
            return GENERAL
        number = self.ids[style]
        return self.custom.get(number) or BUILTIN_FORMATS.get(number, GENERAL)

    @cached_property
    def dates(self) -> frozenset[int]:
        """Cell formats whose numbers are dates or times."""
        return self._where(is_date_format)

    @cached_property
    def elapsed(self) -> frozenset[int]:
        """Cell formats whose numbers are elapsed times."""
        return self._where(is_elapsed_format)

    def _where(self, holds: _Predicate) -> frozenset[int]:
        codes = BUILTIN_FORMATS | self.custom
        numbers = {number for number in set(self.ids) if holds(codes.get(number, GENERAL))}
        return frozenset(style for style, number in enumerate(self.ids) if number in numbers)
