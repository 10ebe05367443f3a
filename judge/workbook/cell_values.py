"""From the text of a cell to its value, by the cell's type and number format."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import NoReturn

from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.dates import from_iso8601, from_serial, from_whole_serials
from judge.workbook.number_formats import NumberFormats

_DATE_OUT_OF_RANGE = ErrorValue("#VALUE!")


class ValueReader:
    """Reads values as openpyxl does, types included.

    Args:
        formats: number formats, which decide what is a date.
        date_1904: whether serial dates count from 1904.
        fail: called with a reason if some text is not a value of its type; it raises.
    """

    def __init__(
        self, formats: NumberFormats, *, date_1904: bool, fail: Callable[[str], NoReturn]
    ) -> None:
        self._dates = formats.dates
        self._elapsed = formats.elapsed
        self._date_1904 = date_1904
        self._fail = fail

    def is_date(self, style: int) -> bool:
        """Whether numbers of a cell format are dates or times."""
        return style in self._dates

    def number(self, text: str, style: int) -> CellValue:
        """The value of a cell of type ``n``, which may be a date."""
        try:
            number = float(text) if "." in text or "E" in text or "e" in text else int(text)
        except ValueError:
            self._fail(f"the number {text[:30]!r}")
        if style in self._dates:
            try:
                return from_serial(
                    number, date_1904=self._date_1904, elapsed=style in self._elapsed
                )
            except (OverflowError, ValueError):
                return _DATE_OUT_OF_RANGE
        return number

    def days(self, texts: list[str], style: int) -> list[dt.datetime] | None:
        """The dates of many cells of one format at once; None if not all are plain days."""
        if style in self._elapsed:
            return None
        try:
            return from_whole_serials([*map(int, texts)], date_1904=self._date_1904)
        except (OverflowError, ValueError):
            return None

    def typed(self, kind: str, text: str) -> CellValue:
        """The value of a cell of any type except ``n``, ``s`` and ``inlineStr``."""
        if kind == "b":
            return bool(self.integer(text))
        if kind == "e":
            return ErrorValue(text)
        if kind == "d":
            try:
                return from_iso8601(text)
            except ValueError:
                self._fail(f"the date {text[:30]!r}")
        return text

    def integer(self, text: str) -> int:
        """A whole number, such as an index."""
        try:
            return int(text)
        except ValueError:
            self._fail(f"{text[:30]!r} where a whole number belongs")
