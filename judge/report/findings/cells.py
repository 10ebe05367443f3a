"""Shows cells that differ: values in a grid or a table, formats as swatches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judge.compare.cells.comparison import DifferenceClass
from judge.compare.rules.book import Book
from judge.compare.rules.looks import WholeLooks, differing_formats
from judge.compare.rules.values import text_of, values_agree
from judge.core.records.cases import AboutRecord, DifferenceRecord, DifferingCellRecord
from judge.report.findings.tables import clip, row
from judge.report.grid import GridRules, Sides, encode_block
from judge.report.grid_marks import Marks
from judge.report.grid_window import Block, GridBounds
from judge.workbook.address import WHOLE_SHEET, Window, cell_key, parse_cell
from judge.workbook.reader import Workbook

_MAX_ROWS = 50


def cell_rows(cells: Sequence[DifferingCellRecord]) -> list[dict[str, Any]]:
    """Single cells that differ, as a table."""
    return [
        row(cell["cell"], cell.get("expected"), cell.get("actual")) for cell in cells[:_MAX_ROWS]
    ]


def show_values(
    gold: tuple[Workbook, str],
    output: tuple[Workbook, str],
    before: Workbook | None,
    about: AboutRecord,
    rules: GridRules,
    bounds: GridBounds,
) -> dict[str, Any]:
    """Two sheets, shown as a block of a grid.

    Args:
        gold: the workbook with the right answer, and its sheet.
        output: the workbook that is judged, and its sheet.
        before: the input; None if the case has no input.
        about: the record of the difference.
        rules: how the run was judged.
        bounds: how much is shown.

    Returns:
        See :func:`judge.report.grid.encode_block`.

    Raises:
        WorkbookError: a workbook is broken or over a limit.
    """
    window = _window(gold, output)
    sides = Sides(gold[0], output[0], before, rules)
    block = Block(gold[1], output[1], (window,), window)
    return encode_block(block, sides, _marks(gold, output, about), bounds)


def _window(*sheets: tuple[Workbook, str]) -> Window:
    """The rectangle from A1 that covers the cells in use on both sheets."""
    used = [
        window for book, name in sheets if (window := book.sheet(name).used_window()) is not None
    ]
    return Window(
        1,
        1,
        max((window.max_row for window in used), default=1),
        max((window.max_column for window in used), default=1),
    )


def _marks(gold: tuple[Workbook, str], output: tuple[Workbook, str], about: AboutRecord) -> Marks:
    """The cells that differ: those on record, and those found in the files."""
    sheet = gold[1]
    recorded: dict[tuple[str, int], DifferenceRecord] = {}
    for cell in about.get("cells", ()):
        position = parse_cell(cell["cell"])
        if position is not None:
            recorded[sheet, cell_key(*position)] = _difference(sheet, cell)
    kinds = {position: difference["kind"] for position, difference in recorded.items()}
    doubtful = not recorded or about.get("all_cells", 0) > len(recorded)
    if doubtful:
        for key, kind in _stored_differences(gold, output, about.get("decimals", 4)).items():
            kinds.setdefault((sheet, key), kind)
    return Marks(kinds, recorded, doubtful=doubtful)


def _difference(sheet: str, cell: DifferingCellRecord) -> DifferenceRecord:
    expected, actual = cell.get("expected"), cell.get("actual")
    kind = _kind(expected, actual)
    return {
        "kind": kind, "sheet": sheet, "cell": cell["cell"], "expected": expected, "actual": actual,
    }  # fmt: skip


def _kind(expected: object, actual: object) -> str:
    if actual is None:
        return DifferenceClass.MISSING.value
    return (DifferenceClass.EXTRA if expected is None else DifferenceClass.WRONG_VALUE).value


def _stored_differences(
    gold: tuple[Workbook, str], output: tuple[Workbook, str], decimals: int
) -> dict[int, str]:
    """Cells whose stored values differ, unless one of the two is a formula."""
    sheets = [book.sheet(name) for book, name in (gold, output)]
    first, second = (sheet.values(WHOLE_SHEET) for sheet in sheets)
    computed = {key for sheet in sheets for key in sheet.formula_keys(WHOLE_SHEET)}
    return {
        key: _kind(first.get(key), second.get(key))
        for key in first.keys() | second.keys()
        if key not in computed and not values_agree(first.get(key), second.get(key), decimals)
    }


_MAX_CELLS = 50
_SAMPLE = "Abc 123"
_MAX_SAMPLE_LENGTH = 24


class StyledSheet:
    """A sheet with the styles of its cells.

    Args:
        book: the workbook.
        sheet: name of the sheet.
    """

    def __init__(self, book: Book, sheet: str) -> None:
        self.looks = WholeLooks(book, sheet)
        self._values = book.workbook.sheet(sheet).values(WHOLE_SHEET)

    def swatch(self, key: int) -> dict[str, Any]:
        """The appearance of a cell.

        Returns:
            ``text`` (as the cell shows it, or a sample), ``blank``, ``fill`` and ``ink`` (six
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
            "font": " ".join(str(part) for part in font if part)[:60],
            "number_format": look.number_format[:60],
        }


def show_looks(
    gold: StyledSheet | None,
    output: StyledSheet,
    counted: Sequence[str],
    cells: Sequence[DifferingCellRecord],
    all_cells: int,
) -> dict[str, Any]:
    """Differing cells as swatches.

    Args:
        gold: the sheet with the right answer; None if no sheet has it.
        output: the sheet that is judged.
        counted: names of the properties that count.
        cells: the first cells that differ, as recorded; empty if they are not on record.
        all_cells: how many cells differ.

    Returns:
        ``cells``, each with ``cell``, ``how`` (a line), ``gold`` and ``output`` (see
        :meth:`StyledSheet.swatch`; null if the sheet does not exist), and ``more``: how many cells
        are not shown.

    Raises:
        PublishedError: there is no such property.
        WorkbookError: a workbook is broken or over a limit.
    """
    listed: list[tuple[str, str]]
    if cells or gold is None:
        listed = [(cell["cell"], _how(cell)) for cell in cells]
    else:
        listed = list(differing_formats(gold.looks, output.looks, counted).items())
        all_cells = len(listed)
    shown = []
    for name, how in listed[:_MAX_CELLS]:
        position = parse_cell(name)
        if position is None:
            continue
        key = cell_key(*position)
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
