"""Looks of cells as swatches: fill, font and number format of single cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judge.compare.rules.book import Book
from judge.compare.rules.values import text_of
from judge.compare.rules.whole_looks import WholeLooks, differing_formats
from judge.core.records.cases import DifferingCellRecord
from judge.report.findings.rows import clip
from judge.workbook.address import WHOLE_SHEET, cell_key, parse_cell

_MAX_CELLS = 50
_SAMPLE = "Abc 123"
_MAX_SAMPLE_LENGTH = 24


class Side:
    """A sheet whose cells are shown.

    Args:
        book: the workbook.
        sheet: name of the sheet.
    """

    def __init__(self, book: Book, sheet: str) -> None:
        self.looks = WholeLooks(book, sheet)
        self._values = book.workbook.sheet(sheet).values(WHOLE_SHEET)

    def swatch(self, key: int) -> dict[str, Any]:
        """The look of a cell.

        Returns:
            ``text`` (what the cell shows, or a sample), ``blank``, ``fill`` and ``ink`` (six
            hexadecimal digits; null without a fill), ``pattern``, ``bold``, ``italic``,
            ``underline``, ``font`` (name and size) and ``number_format``.

        Raises:
            WorkbookError: the style sheet is broken or over a limit.
        """
        look = self.looks.book.workbook.style(self.looks.styles.get(key, 0))
        shown = text_of(self._values.get(key))
        size = self.looks.property("font_size", key)
        font = [
            self.looks.property("font_name", key),
            f"{size:g}" if isinstance(size, float) else "",
        ]
        return {
            "text": (shown or _SAMPLE)[:_MAX_SAMPLE_LENGTH],
            "blank": not shown,
            "fill": next((colour for colour in look.fill.colours if colour), None),
            "pattern": look.fill.pattern,
            "ink": look.font_color,
            "bold": look.bold,
            "italic": look.italic,
            "underline": look.underline != "none",
            "font": " ".join(str(each) for each in font if each)[:60],
            "number_format": look.number_format[:60],
        }


def show_looks(
    gold: Side | None,
    output: Side,
    asked: Sequence[str],
    cells: Sequence[DifferingCellRecord],
    all_cells: int,
) -> dict[str, Any]:
    """Differing cells as swatches.

    Args:
        gold: the sheet that shows what is right; None without one.
        output: the sheet that is judged.
        asked: names of the properties that count.
        cells: the first cells that differ, as they are on record; empty if it does not say.
        all_cells: how many differ.

    Returns:
        ``cells``, each with ``cell``, ``how`` (a line), ``gold`` and ``output`` (see
        :meth:`Side.swatch`; null without one), and ``more``: how many are not shown.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: a workbook is broken or over a limit.
    """
    listed: list[tuple[str, str]]
    if cells or gold is None:
        listed = [(cell["cell"], _how(cell)) for cell in cells]
    else:
        listed = list(differing_formats(gold.looks, output.looks, asked).items())
        all_cells = len(listed)
    shown = []
    for name, how in listed[:_MAX_CELLS]:
        place = parse_cell(name)
        if place is None:
            continue
        key = cell_key(*place)
        shown.append(
            {
                "cell": name,
                "how": clip(how),
                "gold": None if gold is None else gold.swatch(key),
                "output": output.swatch(key),
            }
        )
    return {"cells": shown, "more": max(0, all_cells - len(shown))}


def _how(cell: DifferingCellRecord) -> str:
    if "detail" in cell:
        return cell["detail"]
    return f"{cell.get('expected')}; found {cell.get('actual')!r}"
