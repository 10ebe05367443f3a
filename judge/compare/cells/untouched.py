"""What a solution changed outside the answer range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from judge.compare.cells.differences import Differences
from judge.compare.cells.range_check import differing_keys
from judge.compare.cells.value import Agree, comparator
from judge.compare.profiles import get_profile
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, WHOLE_SHEET, Window, cell_name
from judge.workbook.cell import CellRange, CellValue
from judge.workbook.reader import Workbook


def find_touched(
    before: Workbook, output: Workbook, answer: Sequence[CellRange], found: Differences
) -> int:
    """Adds the cells that a solution changed outside the answer range to what was found.

    A formula that reads as before is untouched, whatever value is stored with it: programs that
    write workbooks often drop the values. Everything else is compared with the input strictly.

    Args:
        before: the input workbook.
        output: the output workbook.
        answer: rectangles of the output that the solution was meant to change.
        found: where differences go.

    Returns:
        How many cells were changed; all cells of a sheet that was removed.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    touched = 0
    agree = comparator(get_profile("strict"))
    for name in before.sheet_names:
        windows = [_window(each) for each in answer if each.sheet == name]
        if name not in output.sheet_names:
            lost = [key for key in _told(before, name) if not _within(key, windows)]
            touched += len(lost)
            found.note_touched(name, "", f"the sheet {name!r} is gone")
            continue
        for key in _changed(before, output, name, agree):
            if not _within(key, windows):
                touched += 1
                _tell(before, output, name, key, found)
    return touched


def _told(workbook: Workbook, sheet: str) -> Mapping[int, CellValue]:
    return workbook.sheet(sheet).values(WHOLE_SHEET)


def _changed(before: Workbook, output: Workbook, name: str, agree: Agree) -> list[int]:
    first, second = before.sheet(name), output.sheet(name)
    changed = set(differing_keys(first.values(WHOLE_SHEET), second.values(WHOLE_SHEET), agree))
    formulas = {*first.formula_keys(WHOLE_SHEET), *second.formula_keys(WHOLE_SHEET)}
    for key in formulas:
        if first.formula(key) == second.formula(key):
            changed.discard(key)
        else:
            changed.add(key)
    return sorted(changed)


def _tell(before: Workbook, output: Workbook, name: str, key: int, found: Differences) -> None:
    first, second = before.sheet(name), output.sheet(name)
    found.note_touched(
        name,
        cell_name(key >> COLUMN_BITS, key & COLUMN_MASK),
        "outside the answer range",
        expected=_told(before, name).get(key),
        actual=_told(output, name).get(key),
        expected_formula=first.formula(key),
        actual_formula=second.formula(key),
    )


def _within(key: int, windows: Iterable[Window]) -> bool:
    row, column = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(window.holds(row, column) for window in windows)


def _window(cell_range: CellRange) -> Window:
    return Window(
        cell_range.min_row, cell_range.min_column, cell_range.max_row, cell_range.max_column
    )
