"""Which cell styles show a number as a date, and the date that a number stands for. Pure.

Source: ECMA-376 part 1, section 18.8.30 (built-in number formats) and 18.17.4 (serial dates).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

_BUILT_IN_DATES = frozenset([*range(14, 23), *range(27, 37), 45, 46, 47, *range(50, 59)])
_NOT_PART_OF_DATES = re.compile(r'"[^"]*+"|\\.|_.|\*.|\[(?!h++\]|m++\]|s++\])[^\]]*+\]')
_LONGEST_CODE = 255
"""Characters that a number format can have; what is longer is cut there before it is looked at."""

_LAST_SERIAL = 2_958_466.0


def date_styles(elements: Iterable[tuple[str, dict[str, str]]]) -> frozenset[int]:
    """Indices of cell formats (the ``s`` of a cell) that show dates or times.

    Args:
        elements: the elements of ``xl/styles.xml`` in order, as (local name, attributes).
    """
    codes: dict[int, str] = {}
    dates: set[int] = set()
    within_cell_formats = False
    index = 0
    for tag, attributes in elements:
        if tag == "numFmt":
            codes[int(attributes.get("numFmtId", -1))] = attributes.get("formatCode", "")
        elif tag in {"cellStyleXfs", "cellXfs", "cellStyles", "dxfs"}:
            within_cell_formats = tag == "cellXfs"
        elif tag == "xf" and within_cell_formats:
            number = int(attributes.get("numFmtId", 0))
            is_date = is_date_code(codes[number]) if number in codes else number in _BUILT_IN_DATES
            if is_date:
                dates.add(index)
            index += 1
    return frozenset(dates)


def is_date_code(code: str) -> bool:
    """Whether a number format's code shows a date or a time."""
    first = _NOT_PART_OF_DATES.sub("", code[:_LONGEST_CODE].split(";", 1)[0])
    return re.search(r"[dmhysDMHYS]", first) is not None and "General" not in first


def as_datetime(serial: float, *, epoch_1904: bool = False) -> datetime | None:
    """The moment that a serial number stands for, to the millisecond; None where it is none.

    A time of day without a date (a serial below 1) is given on 1899-12-31, as the spreadsheet
    program's own day 0.
    """
    if not 0 <= serial < _LAST_SERIAL:
        return None
    if epoch_1904:
        epoch = datetime(1904, 1, 1)  # noqa: DTZ001  workbooks know no time zones
    elif serial < 60:
        epoch = datetime(1899, 12, 31)  # noqa: DTZ001
    else:
        # The program that set the format believes in 29 February 1900.
        epoch = datetime(1899, 12, 30)  # noqa: DTZ001
    return epoch + timedelta(milliseconds=round(serial * 86_400_000))
