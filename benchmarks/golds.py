"""Turns the golds of a suite into problems for calculation engines: formulas without values."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from judge.compare.cells.answer_range import prepare
from judge.compare.published.spreadsheetbench import ScriptError, official_agree
from judge.errors import JudgeError
from judge.formulas.traits import traits
from judge.recalc.rewrite import without_values
from judge.suites.suite import load_suite
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue
from judge.workbook.dependency import FormulaIndex, dependencies
from judge.workbook.reader import Workbook, open_workbook, sheet_formulas

STALE = Path(__file__).with_name("stale.yaml")


@dataclass(frozen=True, slots=True)
class Gold:
    """One gold workbook with formulas.

    Attributes:
        name: name of its file.
        saved: the workbook as the suite has it.
        stripped: the workbook without the values of its formula cells.
        cells: the formula cells in which Excel stored a value.
        expected: Excel's values of these cells, as the reader returns them.
        volatile: those of these cells whose value depends on a volatile function.
        answer: those of these cells that are in the answer range.
        ranges: the used ranges of its sheets.
        index: all its formulas.
        date_1904: whether it counts days from 1904.
    """

    name: str
    saved: bytes
    stripped: bytes
    cells: dict[CellRef, Cell]
    expected: dict[CellRef, CellValue]
    volatile: frozenset[CellRef]
    answer: frozenset[CellRef]
    ranges: tuple[CellRange, ...]
    index: FormulaIndex
    date_1904: bool


def golds(suite: Path, limit: int | None = None, every: int = 1) -> Iterator[Gold]:
    """Yields every gold of a suite that has formulas with values.

    Args:
        suite: the suite's folder.
        limit: how many golds to read; None for all.
        every: reads only one gold out of this many.
    """
    looked_at = 0
    for task in load_suite(suite).tasks:
        for case in task.cases:
            if looked_at == limit:
                return
            looked_at += 1
            if (looked_at - 1) % every:
                continue
            workbook = open_workbook(case.gold_path)
            try:
                plan = prepare(
                    task.checker,
                    gold=workbook,
                    output=None,
                )
                answer = plan.gold_ranges
            except JudgeError:
                answer = ()
            gold = read_gold(case.gold_path.name, workbook, answer)
            if gold is not None:
                yield gold


def stale_golds() -> dict[str, str]:
    """Reads the golds whose values Excel did not compute from the file's contents, with reasons."""
    return {str(k): str(v) for k, v in yaml.safe_load(STALE.read_text(encoding="utf-8")).items()}


def read_gold(name: str, workbook: Workbook, answer: tuple[CellRange, ...]) -> Gold | None:
    """Makes the problem from a gold; None if it has no formula with a value."""
    formulas = {sheet: sheet_formulas(workbook, sheet) for sheet in workbook.sheet_names}
    # Every cell is requested separately, so the limit on the work for a workbook is irrelevant.
    index = FormulaIndex(workbook.sheet_names, lambda sheet: formulas[sheet], work=sys.maxsize)
    cells = {
        CellRef(sheet, cell.row, cell.column): cell
        for sheet, cells in formulas.items()
        for cell in cells
        if cell.has_cached_value and cell.formula != "=TABLE()"
    }
    if not cells:
        return None
    used = (workbook.used_range(sheet) for sheet in workbook.sheet_names)
    return Gold(
        name=name,
        saved=workbook.data,
        stripped=without_values(workbook.data),
        cells=cells,
        expected={ref: cell.value for ref, cell in cells.items()},
        volatile=_volatile(cells, index),
        answer=frozenset(ref for ref in cells if any(_holds(area, ref) for area in answer)),
        ranges=tuple(area for area in used if area is not None),
        index=index,
        date_1904=workbook.facts.date_1904,
    )


def _volatile(cells: dict[CellRef, Cell], index: FormulaIndex) -> frozenset[CellRef]:
    if not any(traits(cell.formula or "").volatile for cell in index.every()):
        return frozenset()
    dependent = set()
    for ref, cell in cells.items():
        below = dependencies([(ref.sheet, cell)], index)
        # If a formula reads cells that its text does not name, it may depend on any formula.
        if below.volatile:
            dependent.add(ref)
    return frozenset(dependent)


def _holds(area: CellRange, ref: CellRef) -> bool:
    return (
        area.sheet == ref.sheet
        and area.min_row <= ref.row <= area.max_row
        and area.min_column <= ref.column <= area.max_column
    )


def agrees(expected: CellValue, actual: CellValue) -> bool:
    """Returns whether a computed value is Excel's, by the value rules of the published script."""
    try:
        return official_agree(expected, actual)
    except ScriptError:
        return False
