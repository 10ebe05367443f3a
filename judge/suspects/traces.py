"""Values that can be recognized wherever they turn up again: names, dates, large numbers. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from judge.compare.cells.value import text_as_number
from judge.workbook.cell import CellValue, ErrorValue

MIN_LETTERS = 3
MIN_NUMBER = 1000
"""Whole numbers below it turn up by chance, as sums and counts do."""
LONGEST = 200
DIGITS = 9


def trace(value: CellValue) -> str | None:
    """The form in which a value is recognized; None if it could be there by chance.

    Small whole numbers, logical values, errors and very short strings turn up anywhere.
    """
    if isinstance(value, str):
        text = " ".join(value.split()).casefold()
        number = text_as_number(text) if text else None
        if number is not None:
            return trace(number)
        return text[:LONGEST] if len(text) >= MIN_LETTERS else None
    if value is None or isinstance(value, bool | ErrorValue):
        return None
    if isinstance(value, int | float):
        if float(value).is_integer() and abs(value) < MIN_NUMBER:
            return None
        return f"{float(value):.{DIGITS}g}"
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return value.date().isoformat()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    return str(value)


@dataclass(frozen=True, slots=True)
class Traces:
    """The recognizable values of some cells.

    Attributes:
        whole: values that are a cell of their own.
        text: all strings in one, for values that are part of one.
    """

    whole: Collection[str]
    text: str

    def holds(self, value: CellValue) -> bool:
        """Whether a value is there, alone or within a string."""
        known = trace(value)
        if known is None:
            return False
        return known in self.whole or (isinstance(value, str) and known in self.text)


def traces_of(values: Iterable[CellValue]) -> Traces:
    """The recognizable values of some cells."""
    known = list(values)
    whole = {found for value in known if (found := trace(value)) is not None}
    texts = (" ".join(value.split()).casefold() for value in known if isinstance(value, str))
    return Traces(frozenset(whole), "\n".join(texts))
