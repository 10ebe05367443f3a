"""Cells of a gold that follow from others: answers of an output, formulas of new rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from judge.annotate.answers import value_of
from judge.annotate.edits import Edit, Formula, InsertRows, SetCell
from judge.annotate.rows import move_formula, row_map
from judge.formulas.shift import shift_formula
from judge.workbook.address import MAX_COLUMN, parse_window
from judge.workbook.cell import CellRange, CellRef, CellValue
from judge.workbook.formula_cells import filling_cells
from judge.workbook.reader import Workbook


def answer_changes(
    gold: Workbook,
    gold_range: CellRange,
    output: Workbook,
    output_range: CellRange,
    computed: Mapping[CellRef, CellValue],
) -> Iterable[SetCell]:
    """What to set in a gold so that one of its ranges holds the answer of an output."""
    held = gold.cells(gold_range)
    said: dict[tuple[int, int], CellValue] = {
        place: cell.value for place, cell in output.cells(output_range).items()
    }
    said |= {
        (ref.row, ref.column): value
        for ref, value in computed.items()
        if ref.sheet == output_range.sheet
        and output_range.min_row <= ref.row <= output_range.max_row
        and output_range.min_column <= ref.column <= output_range.max_column
    }
    for place in sorted(held.keys() | said.keys()):
        old, value = held.get(place), said.get(place)
        same = type(value_of(old)) is type(value) and value_of(old) == value
        if not same or (old is not None and old.formula is not None):
            yield SetCell(CellRef(gold_range.sheet, *place), value)


def whole_arrays(gold: Workbook, changes: Sequence[SetCell]) -> list[SetCell]:
    """What else to set so that array formulas are replaced as a whole."""
    found: list[SetCell] = []
    set_already = {change.ref for change in changes}
    for sheet in {change.ref.sheet for change in changes}:
        for source in filling_cells(gold, sheet):
            window = parse_window((source.array_range or "").replace("$", ""))
            if window is None or not any(
                window.holds(each.row, each.column) for each in set_already if each.sheet == sheet
            ):
                continue
            area = CellRange(
                sheet, window.min_row, window.min_column, window.max_row, window.max_column
            )
            held = gold.cells(area)
            found += [
                SetCell(ref, value_of(held.get((row, column))))
                for row in range(area.min_row, area.max_row + 1)
                for column in range(area.min_column, area.max_column + 1)
                if (ref := CellRef(sheet, row, column)) not in set_already
            ]
    return found


def filled_down(gold: Workbook, edits: Sequence[Edit]) -> list[SetCell]:
    """The formulas of an inserted row, where those above and below it are the same formula."""
    inserted = [edit for edit in edits if isinstance(edit, InsertRows)]
    if len(inserted) != 1 or inserted[0].count != 1 or inserted[0].row < 2:
        return []
    sheet, row = inserted[0].sheet, inserted[0].row
    given = {edit.ref for edit in edits if isinstance(edit, SetCell)}
    pair = gold.cells(CellRange(sheet, row - 1, 1, row, MAX_COLUMN))
    rows = row_map(row, 1)
    found = []
    for (above_row, column), cell in pair.items():
        below = pair.get((row, column))
        ref = CellRef(sheet, row, column)
        if above_row != row - 1 or cell.formula is None or below is None or ref in given:
            continue
        if below.formula is None or shift_formula(cell.formula, 1, 0) != below.formula:
            continue
        # The row below has moved: what it refers to is up to date, and one row further down.
        moved = move_formula(below.formula[1:], sheet, sheet, rows)
        found.append(SetCell(ref, Formula(shift_formula(moved, -1, 0)), cell.style))
    return found
