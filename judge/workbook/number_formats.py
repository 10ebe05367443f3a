"""Number formats: the code of each cell format, which codes show dates, and conversion of dates.

The rules for dates are those of openpyxl, with which the published verdicts were produced, so that
a value that is read here has the same type and the same digits.
"""

from __future__ import annotations

import datetime as dt
import functools
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from judge.errors import WorkbookError
from judge.workbook.package import Package
from judge.workbook.sheets.shared_formulas import UNUSUAL_ENTITY, unescape
from judge.workbook.xml_parts import (
    MAIN,
    SHEET_NAMES,
    STRICT_MAIN,
    PartParser,
    RecentParts,
    local_name,
    whole_number,
)

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
"""Largest number of characters of a number format; a longer format is cut to this length before it
is examined."""


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
        raise ValueError("serial numbers of days before March 1900 are converted one by one")
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
    def digest(self) -> bytes:
        """Identifies the formats, in a few bytes."""
        return hashlib.sha256(repr((self.ids, self.custom)).encode()).digest()

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


_SECTION = b"<(%b)(?: [^<>]*)?>(.*?)</\\1>"
_CUSTOM = re.compile(_SECTION % b"numFmts", re.DOTALL)
_FORMATS = re.compile(_SECTION % b"cellXfs", re.DOTALL)
_NO_CUSTOM = re.compile(b"<numFmts[^<>]*/>")
_XF = re.compile(b'<xf ((?:[A-Za-z]+="[^"<>&]*" ?)*)/?>')
_CHILD = rb'\s*+<(?:alignment|protection)(?: [A-Za-z]++="[^"<>]*+")*+ ?/>'
_ONLY_FORMATS = re.compile(
    rb'(?:\s*+<xf(?: [A-Za-z]++="[^"<>&]*+")*+ ?(?:/>|>(?:%b)*+\s*+</xf>))*+\s*+' % _CHILD
)
_ONLY_NUMBER_FORMATS = re.compile('(?:\\s*+<numFmt(?: [A-Za-z]++="[^"<>]*+")*+ ?/>)*+\\s*+')
_NUMBER = re.compile(b'(?:^| )numFmtId="([0-9]+)"')
_NUMBER_FORMAT = re.compile('<numFmt ((?:[A-Za-z]+="[^"<>]*" ?)*)/?>')
_ATTRIBUTE = re.compile('([A-Za-z]+)="([^"]*)"')
_ROOT = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?:<\?xml [^<>?]*\?>)?\s*<styleSheet(?=[^<>]*\sxmlns=["']"""
    + re.escape(MAIN.encode())
    + rb"""["'])(?:[^<>"']++|"[^"<]*+"|'[^'<]*+')*+>"""
)
_ODD_END = re.compile(rb"/>(?!\s*<|\s*\Z)")
_SECTIONS = frozenset({"numFmts", "fonts", "fills", "borders", "cellStyleXfs", "cellXfs", "dxfs"})

_LISTS = {"numFmts": "numFmt", "cellXfs": "xf"}
"""The lists that decide which cells hold dates: element of the list -> element of its entries."""

_PARENTS = {"numFmt": {"numFmts", "dxf"}, "xf": {"cellXfs", "cellStyleXfs"}}


def read_number_formats(package: Package, part: str | None) -> NumberFormats:
    """Number formats by cell format; none if the workbook has no style sheet.

    Raises:
        WorkbookError: the style sheet is broken or over a limit.
    """
    if part is None or part not in package:
        return NumberFormats()
    data = package.read(part)
    if (read := _recent.get(package, part, data)) is not None:
        return read
    plain = _read_plainly(data)
    if plain is None:
        return _parse(package, part)
    # Only the formats were checked, but a fault elsewhere also makes the part unreadable.
    PartParser(package, part).feed(data, final=True)
    _recent.keep(package, part, data, plain)
    return plain


_recent = RecentParts[NumberFormats]()


def _read_plainly(data: bytes) -> NumberFormats | None:
    """Reads a style sheet in its usual form; None if the parser must read it.

    Only two sections of it matter, and they are found by their names. This is exact if the part
    contains only elements, because the names can then occur nowhere else.
    """
    if not _is_plain(data):
        return None
    formats = _FORMATS.findall(data)
    sections = _CUSTOM.findall(data.partition(b"<cellXfs")[0])
    if len(formats) != 1 or _ONLY_FORMATS.fullmatch(formats[0][1]) is None:
        return None
    elements = _XF.findall(formats[0][1])
    if len(elements) != formats[0][1].count(b"<xf"):
        return None
    ids = []
    for attributes in elements:
        number = _NUMBER.search(attributes)
        if number is None:
            return None
        identity = whole_number(number[1].decode("ascii", "replace"))
        if identity is None:
            return None
        ids.append(identity)
    custom: dict[int, str] | None = {}
    if sections:
        custom = _read_custom(sections[0][1])
    elif data.count(b"<numFmts") != len(_NO_CUSTOM.findall(data)):
        return None
    return None if custom is None else NumberFormats(tuple(ids), custom)


def _read_custom(section: bytes) -> dict[int, str] | None:
    """Custom formats by number; None if the section is not in the usual form."""
    try:
        text = section.decode()
    except UnicodeDecodeError:
        return None
    formats = _NUMBER_FORMAT.findall(text)
    spaced = "\n" in text or "\t" in text or "\r" in text
    if len(formats) != text.count("<numFmt") or spaced or UNUSUAL_ENTITY.search(text):
        return None
    if _ONLY_NUMBER_FORMATS.fullmatch(text) is None:
        return None
    custom: dict[int, str] = {}
    for attributes in formats:
        given = dict(_ATTRIBUTE.findall(attributes))
        identity = whole_number(given.get("numFmtId"))
        if identity is None or "formatCode" not in given:
            return None
        custom[identity] = unescape(given["formatCode"])
    return custom


def _is_plain(data: bytes) -> bool:
    """Whether a style sheet contains only elements, and each section at most once."""
    root = _ROOT.match(data)
    if root is None or b"<!" in data or data.count(b"<?") > 1 or b"&#" in data:
        return False
    if b":MustUnderstand" in data or data.count(b":Ignorable") > root[0].count(b":Ignorable"):
        return False
    if root[0].count(MAIN.encode()) != 1 or STRICT_MAIN.encode() in root[0]:
        return False
    # The end of a section that is never closed would be searched for up to the end of the part.
    if data.count(b"<cellXfs") != 1 or data.count(b"<numFmts") > 1:
        return False
    # They are the root's own, and nothing of another name or namespace can stand in for them.
    before = data[root.end() : data.index(b"<cellXfs")]
    return (
        data.count(b"xmlns=") + data.count(b"xmlns ") == 1
        and b":cellXfs" not in data
        and b":numFmt" not in data
        and b":xf" not in data
        and _is_balanced(before)
        and _is_balanced(before.partition(b"<numFmts")[0])
    )


def _is_balanced(markup: bytes) -> bool:
    """Whether every element that begins in some markup also ends there."""
    return _ODD_END.search(markup) is None and markup.count(b"<") == 2 * markup.count(
        b"</"
    ) + markup.count(b"/>")


def _parse(package: Package, part: str) -> NumberFormats:
    reader = _FormatReader(package, part)
    for chunk in package.chunks(part):
        reader.parser.feed(chunk)
    reader.parser.feed(b"", final=True)
    return NumberFormats(tuple(reader.ids), reader.custom)


class _FormatReader:
    """Handlers for a style sheet; a format is only read as a child of its own list.

    Attributes:
        parser: the parser that calls it.
        custom: code of each number format, by number.
        ids: number of the number format of each cell format.
    """

    def __init__(self, package: Package, part: str) -> None:
        self.parser = PartParser(package, part)
        self.custom: dict[int, str] = {}
        self.ids: list[int] = []
        self._part = part
        self._deepest = package.budget.limits.depth
        self._path: list[str] = []
        self._seen: set[str] = set()
        self.parser.expat.StartElementHandler = self._start
        self.parser.expat.EndElementHandler = self._end

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = SHEET_NAMES[tag]
        path = self._path
        self.parser.check_compatibility(attributes)
        if not path and name != "styleSheet":
            raise WorkbookError(f"{self._part} is not a style sheet: it begins with {name[:80]}")
        self._check_place(name)
        path.append(name)
        if len(path) > self._deepest:
            raise WorkbookError(f"{self._part} nests too many elements")
        if path[1:] == ["cellXfs", "xf"]:
            self.ids.append(_whole_number(attributes.get("numFmtId") or "0", self._part))
        elif path[1:] == ["numFmts", "numFmt"]:
            number = _whole_number(attributes.get("numFmtId", ""), self._part)
            if "formatCode" not in attributes:
                raise WorkbookError(f"{self._part} has the number format {number} without a code")
            self.custom[number] = attributes["formatCode"]

    def _check_place(self, name: str) -> None:
        """Refuses formats in foreign namespaces, or where other programs may not read them."""
        path, local = self._path, local_name(name)
        above = path[-1] if path else ""
        misplaced = local in _LISTS and len(path) != 1
        misplaced = misplaced or (local in _PARENTS and above not in _PARENTS[local])
        if len(path) == 1 and local in _SECTIONS:
            # openpyxl reads these elements in any namespace.
            misplaced = misplaced or name != local or name in self._seen
            self._seen.add(name)
        elif len(path) == 2 and above in _SECTIONS:
            misplaced = misplaced or name != local or name != _LISTS.get(above, name)
        if misplaced:
            raise WorkbookError(
                f"{self._part} has {name[:80]} in {above[:80]}, where it does not belong, or twice"
            )

    def _end(self, _: str) -> None:
        self._path.pop()


def _whole_number(text: str, part: str) -> int:
    number = whole_number(text)
    if number is None:
        raise WorkbookError(f"{part} holds {text[:30]!r} where a whole number belongs")
    return number
