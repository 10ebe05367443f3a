"""How large a chart is on its sheet, whatever kind of anchor holds it."""

from __future__ import annotations

import math

from judge.compare.rules.book import Book
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.facts.chart_model import Anchor
from judge.workbook.facts.reading import is_on, number, whole
from judge.workbook.workbook_parts import Tab

_EMU_PER_CM = 360_000
_EMU_PER_POINT = 12_700
_EMU_PER_PIXEL = 9_525
_PIXELS_PER_CHARACTER = 7
"""Of the default font, Calibri 11."""

_DEFAULT_WIDTH = 64 / _PIXELS_PER_CHARACTER
_DEFAULT_HEIGHT = 15.0


def chart_size(book: Book, tab: Tab, anchor: Anchor | None) -> tuple[int, int] | tuple[None, None]:
    """Width and height of a chart in whole centimetres.

    Programs store a chart's size in different ways, and round differently when they convert it. The
    steps are at three quarters of a centimetre, away from the sizes that programs give charts.

    Raises:
        WorkbookError: the sheet is broken or over a limit.
    """
    if anchor is None:
        return None, None
    if anchor.extent is not None:
        return _centimetres(anchor.extent[0]), _centimetres(anchor.extent[1])
    if anchor.start is None or anchor.end is None:
        return None, None
    left, top, right, bottom = anchor.offsets
    width = _columns(book, tab, anchor.start[0], anchor.end[0]) + right - left
    height = _rows(book, tab, anchor.start[1], anchor.end[1]) + bottom - top
    return _centimetres(width), _centimetres(height)


def _centimetres(emu: float) -> int:
    return math.floor(emu / _EMU_PER_CM + 0.25)


def _columns(book: Book, tab: Tab, first: int, last: int) -> float:
    """How wide the columns from one index to before another are, in EMU."""
    first, last = max(0, first), min(last, MAX_COLUMN)
    root = book.facts.tree(tab)
    form = root.child("sheetFormatPr")
    usual = (form and number(form.attributes.get("defaultColWidth"))) or _DEFAULT_WIDTH
    total = max(0, last - first) * usual
    for holder in root.all("cols"):
        for each in holder.all("col"):
            start = max(first, (whole(each.attributes.get("min")) or 1) - 1)
            end = min(last, whole(each.attributes.get("max")) or 0)
            width = number(each.attributes.get("width"))
            own = 0.0 if is_on(each.attributes.get("hidden")) else usual if width is None else width
            total += max(0, end - start) * (own - usual)
    return total * _PIXELS_PER_CHARACTER * _EMU_PER_PIXEL


def _rows(book: Book, tab: Tab, first: int, last: int) -> float:
    """How high the rows from one index to before another are, in EMU."""
    first, last = max(0, first), min(last, MAX_ROW)
    form = book.facts.tree(tab).child("sheetFormatPr")
    usual = (form and number(form.attributes.get("defaultRowHeight"))) or _DEFAULT_HEIGHT
    total = max(0, last - first) * usual
    for row, attributes in book.facts.row_attributes(tab).items():
        if first < row <= last:
            height = number(attributes.get("ht"))
            own = 0.0 if is_on(attributes.get("hidden")) else usual if height is None else height
            total += own - usual
    return total * _EMU_PER_POINT
