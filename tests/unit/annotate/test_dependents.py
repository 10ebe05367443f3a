"""Finds the formulas that depend on a change, in workbooks of any size."""

from __future__ import annotations

from functools import partial

import pytest

from judge.annotate.edit import dependents
from judge.errors import WorkbookError
from judge.workbook.cell import CellRef
from judge.workbook.reader import open_workbook
from tests.bounds import in_bounds
from tests.unit.recalc.fakes import SHEET, package

MEMORY_BYTES = 3 << 30
CPU_S = 40
bounded = partial(in_bounds, cpu_s=CPU_S, memory_bytes=MEMORY_BYTES)


@pytest.mark.parametrize(
    "areas", [["A1:XFD1048576"], [f"A{row}:Z{row + 999}" for row in range(1, 40)]]
)
def test_an_array_formula_over_everything_is_refused_and_not_spelt_out(areas: list[str]) -> None:
    cells = {area.partition(":")[0]: (area, "=1") for area in areas}
    workbook = open_workbook(package(cells | {"C1": 1}))

    def refused() -> None:
        with pytest.raises(WorkbookError, match="fill more than 250,000 cells"):
            dependents(workbook, [CellRef(SHEET, 1, 3)])

    assert bounded(refused) == 0


def test_growing_sums_depend_on_what_they_add() -> None:
    rows = 5_000
    cells = {f"A{row}": f"=SUM(A$1:A{row - 1})" for row in range(2, rows)}
    workbook = open_workbook(package(cells | {"A1": 1}))

    def found() -> None:
        assert len(dependents(workbook, [CellRef(SHEET, 1, 1)])) == rows - 2
        assert dependents(workbook, [CellRef(SHEET, rows, 1)]) == frozenset()

    assert bounded(found) == 0
