"""Converts the text of a cell to its value, by the cell's type and number format.

The formatting of rich text, which consists of runs with their own formats, is ignored.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from typing import NoReturn

from judge.errors import WorkbookError
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.number_formats import (
    NumberFormats,
    from_iso8601,
    from_serial,
    from_whole_serials,
)

CELL_TYPES = frozenset({"n", "s", "str", "inlineStr", "b", "e", "d"})
"""The types of cells: ECMA-376 part 1, 18.18.11."""

ODD_NUMBER = re.compile(r"[^0-9.eE+\-\0]|[eE][+-]?[0-9]{3}|[0-9]{300}")
"""Characters that never occur in plain numbers joined by zero bytes. If one occurs, each number
must be checked: Python accepts underscores, other scripts' digits and ``nan``."""

_NUMBER = re.compile(r" *[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)? *")
_INDEX = re.compile(r"[0-9]{1,9}")
_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,3})?Z?"
_DATE_TIME = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:T{_CLOCK})?|{_CLOCK}")
_FIRST_DAY = "1900-03-01"
"""From this day on, programs agree; on earlier days they differ, because Excel has a 1900-02-29."""
_ESCAPE = re.compile("_x([0-9A-Fa-f]{4})_")
_ESCAPE_AHEAD = re.compile(
    "_(?=x(?!(?:00(?:0[0-8bBcCeEfF]|1[0-9A-Fa-f])|[dD][89A-Fa-f]..|[fF]{3}[eEfF])_)[0-9A-Fa-f]{4}_)"
)
_NOT_WRITTEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that stay escaped, because values are written to reports, files and terminals."""

_ERRORS = frozenset(
    {
        *("#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#GETTING_DATA"),
        *("#SPILL!", "#CALC!", "#FIELD!", "#BLOCKED!", "#CONNECT!", "#UNKNOWN!", "#EXTERNAL!"),
        *("#BUSY!", "#PYTHON!", "#TIMEOUT!", "#ERROR!"),
        *(f"Err:{number}" for number in range(501, 541)),
    }
)
"""The error values of Excel (including its newer versions), of Google Sheets (``#ERROR!``) and of
LibreOffice (``Err:502``)."""

_TRUTH = {"0": False, "1": True}

_DATE_OUT_OF_RANGE = ErrorValue("#VALUE!")


def read_string(text: str) -> str:
    """Decodes the text of a cell, a run or a shared string.

    ``_xHHHH_`` is the character with that code, and ``_x005F_`` is the underscore of text that only
    looks like such an escape. Escapes of control characters stay as they are.

    Source: ECMA-376 part 1, 22.9.2.19 (``ST_Xstring``).
    """
    return _ESCAPE.sub(_character, text) if "_x" in text else text


def write_string(string: str) -> str:
    """Encodes a string as text of a file; the reverse of :func:`read_string`."""
    written = _ESCAPE_AHEAD.sub("_x005F_", string) if "_x" in string else string
    # An XML parser takes it for the end of a line.
    return written.replace("\r", "_x000D_")


def written_controls(string: str) -> str:
    """Escapes the control characters of a string, as :func:`read_string` leaves them."""
    return _NOT_WRITTEN.sub(lambda match: f"_x{ord(match[0]):04X}_", string)


def _character(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    return escape[0] if _NOT_WRITTEN.match(character) else character


class ValueReader:
    """Reads values as openpyxl does, with the same types.

    Args:
        formats: number formats, which decide which numbers are dates.
        date_1904: whether serial dates count from 1904.
        fail: called with a reason if some text is not a value of its type; it raises.
    """

    def __init__(
        self, formats: NumberFormats, *, date_1904: bool, fail: Callable[[str], NoReturn]
    ) -> None:
        self._dates = formats.dates
        self._formats = max(1, len(formats.ids))
        self._elapsed = formats.elapsed
        self._date_1904 = date_1904
        self._fail = fail

    def is_date(self, style: int) -> bool:
        """Whether numbers of a cell format are dates or times."""
        return style in self._dates

    def number(self, text: str, style: int) -> CellValue:
        """The value of a cell of type ``n``, which may be a date."""
        if _NUMBER.fullmatch(text) is None:
            self._fail(f"the number {text[:30]!r}")
        try:
            number = float(text) if "." in text or "E" in text or "e" in text else int(text)
        except ValueError:  # thousands of digits
            self._fail(f"the number {text[:30]!r}")
        if isinstance(number, float) and not math.isfinite(number):
            self._fail(f"the number {text[:30]!r}, which is too large")
        if style in self._dates:
            try:
                return from_serial(
                    number, date_1904=self._date_1904, elapsed=style in self._elapsed
                )
            except (OverflowError, ValueError):
                return _DATE_OUT_OF_RANGE
        return number

    def days(self, texts: list[str], style: int) -> list[dt.datetime] | None:
        """Reads many dates of the same cell format together; None if not all are plain days."""
        if style in self._elapsed:
            return None
        try:
            return from_whole_serials([*map(int, texts)], date_1904=self._date_1904)
        except (OverflowError, ValueError):
            return None

    def typed(self, kind: str, text: str, style: int) -> CellValue:
        """The value of a cell of the type ``str``, ``b``, ``e`` or ``d``."""
        if kind == "b":
            if text not in _TRUTH:
                self._fail(f"the truth value {text[:30]!r}")
            return _TRUTH[text]
        if kind == "e":
            if text not in _ERRORS:
                self._fail(f"the error {text[:30]!r}")
            return ErrorValue(text)
        if kind == "d":
            # LibreOffice reads it as a number if the cell does not have a date format.
            if _DATE_TIME.fullmatch(text) is None or style not in self._dates:
                self._fail(f"the date {text[:30]!r} in the cell format {style}")
            if "-" in text and text < _FIRST_DAY:
                self._fail(f"the date {text[:30]!r}, which is too early")
            try:
                return from_iso8601(text)
            except ValueError:
                self._fail(f"the date {text[:30]!r}")
        return read_string(text)

    def index(self, text: str) -> int:
        """A whole number from the file, such as the index of a string."""
        if _INDEX.fullmatch(text) is None:
            self._fail(f"{text[:30]!r} where a whole number belongs")
        return int(text)

    def style(self, text: str) -> int:
        """Reads the index of a cell format, which the workbook has to contain."""
        number = self.index(text)
        if number >= self._formats:
            self._fail(f"the cell format {number}, but the workbook has only {self._formats}")
        return number


_CHILDREN = {
    "": {"t", "r", "rPh", "phoneticPr"},
    "r": {"t", "rPr"},
    "rPh": {"t"},
    "t": set(),
    "phoneticPr": set(),
}
"""Element -> the elements that it may contain; a run's format may contain any element."""

_MAX_DEPTH = 64  # elements inside each other


class InlineText:
    """Text made of a plain part and formatted runs; phonetic hints are left out.

    Args:
        part: name of the part, for messages.
    """

    __slots__ = ("_in_run", "_part", "_path", "_plain", "_runs", "_seen")

    def __init__(self, part: str) -> None:
        self._part = part
        self._plain = ""
        self._runs: list[str] = []
        self._path: list[str] = []
        self._seen: set[str] = set()
        self._in_run: set[str] = set()

    def start(self, tag: str) -> None:
        """Called for each element within, with its short name.

        Raises:
            WorkbookError: the element does not belong there, or is there twice.
        """
        above = self._path[-1] if self._path else ""
        path = self._path
        path.append(tag)
        if "rPr" in path[:-1]:
            if len(path) > _MAX_DEPTH:
                raise WorkbookError(f"a string of {self._part} nests too many elements")
            return
        misplaced = tag not in _CHILDREN.get(above, ())
        if not above:
            # The plain part comes first, and only once.
            misplaced = misplaced or (tag == "t" and bool(self._seen))
            self._seen.add(tag)
            self._in_run.clear()
        elif above == "r":
            misplaced = misplaced or tag in self._in_run
            self._in_run.add(tag)
        if misplaced:
            raise WorkbookError(
                f"{self._part} holds {tag[:80]} in a string, which must not contain it"
            )

    def end(self, tag: str, text: list[str]) -> None:
        """Called at the end of each nested element, with the text read since its start."""
        path = self._path
        path.pop()
        if tag == "t" and "rPr" not in path:
            if not path:
                self._plain = read_string("".join(text))
            elif path == ["r"]:
                self._runs.append(read_string("".join(text)))

    @property
    def content(self) -> str:
        """The text without formatting."""
        return self._plain + "".join(self._runs) if self._runs else self._plain
