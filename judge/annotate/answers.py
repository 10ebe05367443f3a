"""What the answer of a gold is made of, and how two golds differ in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.annotate.drafts import CaseData
from judge.annotate.edits import Edit, SetCell, address
from judge.compare.cell import Cell, CellRange, CellRef, CellValue
from judge.compare.checker import prepare
from judge.compare.profiles import get_profile
from judge.compare.reader import Workbook, open_workbook
from judge.compare.value import comparator
from judge.recalc.formula import references
from judge.task import Task


@dataclass(frozen=True, slots=True)
class Moved:
    """A cell of the answer whose value is another one than in the base case's gold."""

    ref: CellRef
    before: CellValue
    after: CellValue


def formulas_problem(task: Task, base: CaseData, edits: Sequence[Edit]) -> str:
    """Why the formulas of a case's gold cannot say what the answer is; empty where they can.

    They can where every cell of the answer that the gold has otherwise than the input holds a
    formula, and where the formulas name every cell that the edits fill beyond the data.

    Raises:
        WorkbookError, PositionError: the workbooks cannot be read.
    """
    gold, before = open_workbook(base.gold), open_workbook(base.input)
    ranges = gold_ranges(task, gold)
    found: list[str] = []
    for area in ranges:
        cells = gold.cells(area)
        stored = before.cells(area) if area.sheet in before.sheet_names else {}
        for place, cell in cells.items():
            if cell.formula is not None:
                found.append(cell.formula)
            elif cell.value is not None and not same_cell(stored.get(place), cell):
                where = address(CellRef(area.sheet, *place))
                return f"{where} of the gold is an answer without a formula"
    if not found:
        return "the gold's answer holds no formulas"
    reached = {each for formula in set(found) for each in references(formula)}
    for edit in edits:
        if isinstance(edit, SetCell) and edit.content is not None:
            used = before.used_range(edit.ref.sheet)
            inside = used is not None and (
                edit.ref.row <= used.max_row and edit.ref.column <= used.max_column
            )
            if not inside and not any(
                each.min_row <= edit.ref.row <= each.max_row
                and each.min_column <= edit.ref.column <= each.max_column
                for each in reached
            ):
                return f"no formula of the gold reaches {address(edit.ref)}"
    return ""


def moved_cells(task: Task, before: bytes, after: bytes) -> tuple[Moved, ...]:
    """Cells of the answer in which two golds of a task differ, by the default rules.

    Raises:
        WorkbookError, PositionError: a gold cannot be read.
    """
    old, new = open_workbook(before), open_workbook(after)
    agree = comparator(get_profile("standard"))
    moved = []
    for old_range, new_range in zip(gold_ranges(task, old), gold_ranges(task, new), strict=True):
        first, second = old.cells(old_range), new.cells(new_range)
        for place in sorted(first.keys() | second.keys()):
            was, now = value_of(first.get(place)), value_of(second.get(place))
            if not agree(was, now):
                moved.append(Moved(CellRef(new_range.sheet, *place), was, now))
    return tuple(moved)


def gold_ranges(task: Task, gold: Workbook) -> tuple[CellRange, ...]:
    """The rectangles of a gold that are compared.

    Raises:
        WorkbookError, PositionError: the gold cannot be read, or the position does not fit it.
    """
    return prepare(
        task.checker,
        answer_position=task.answer_position,
        answer_sheet=task.answer_sheet,
        gold=gold,
        output=None,
    ).gold_ranges


def value_of(cell: Cell | None) -> CellValue:
    """The value of a stored cell; None where nothing is stored."""
    return None if cell is None else cell.value


def same_content(first: Workbook, second: Workbook, ref: CellRef) -> bool:
    """Whether a cell holds the same constant or formula in two workbooks."""
    if ref.sheet not in second.sheet_names or ref.sheet not in first.sheet_names:
        return False
    area = CellRange(ref.sheet, ref.row, ref.column, ref.row, ref.column)
    place = (ref.row, ref.column)
    return same_cell(first.cells(area).get(place), second.cells(area).get(place))


def same_cell(first: Cell | None, second: Cell | None) -> bool:
    """Whether two stored cells hold the same constant or formula."""
    if (first.formula if first else None) != (second.formula if second else None):
        return False
    agree = comparator(get_profile("strict"))
    return (first is not None and first.formula is not None) or agree(
        value_of(first), value_of(second)
    )
