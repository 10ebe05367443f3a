"""The judge's own version of rule lists; ``test_faults.py`` compares it with the published one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.chart import BarChart, LineChart, Reference

from judge.compare.contract import GoldFaultError
from judge.core.submission import Origin
from judge.workbook.cell import CellRef, ComputedValues
from tests.unit.compare.rules.judged import DATA, PAIR, find


def style(*props: str) -> dict[str, Any]:
    return {"type": "style", **PAIR, "props": list(props)}


def chart(*props: str) -> dict[str, Any]:
    return {"type": "chart", **PAIR, "chart_props": list(props)}


def saved(folder: Path, name: str, make: Any) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    rows: list[tuple[Any, ...]] = [("Name", "A", "B"), ("x", 1, 4), ("y", 2, 5), ("z", 3, 6)]
    for row in rows:
        sheet.append(row)
    make(sheet)
    path = folder / name
    book.save(path)
    return path


def test_a_combined_chart_is_compared_as_a_whole(tmp_path: Path) -> None:
    def combined(column: int) -> Any:
        def make(sheet: Any) -> None:
            bars, line = BarChart(), LineChart()
            bars.add_data(Reference(sheet, min_col=2, min_row=2, max_row=4))
            line.add_data(Reference(sheet, min_col=column, min_row=2, max_row=4))
            bars += line
            sheet.add_chart(bars, "F2")

        return make

    gold = saved(tmp_path, "gold.xlsx", combined(3))
    other = saved(tmp_path, "other.xlsx", combined(2))
    found = find([chart("type")], other, gold)
    assert found.record["official_equal"]
    assert not found.agrees
    assert find([chart("type", "title", "direction")], gold, gold).agrees


def test_the_title_counts_as_a_whole(tmp_path: Path) -> None:
    def titled(text: str) -> Any:
        def make(sheet: Any) -> None:
            drawn = LineChart()
            drawn.add_data(Reference(sheet, min_col=2, min_row=2, max_row=4))
            drawn.title = text
            sheet.add_chart(drawn, "F2")

        return make

    gold = saved(tmp_path, "gold.xlsx", titled("Sales\nof May"))
    other = saved(tmp_path, "other.xlsx", titled("Sales\nof June"))
    found = find([chart("title")], other, gold)
    assert found.record["official_equal"]
    assert not found.agrees


class Computed:
    """Engines that know the values of some cells."""

    def __init__(self, values: dict[str, float]) -> None:
        self._values = {CellRef("Sheet1", int(k[1:]), ord(k[0]) - 64): v for k, v in values.items()}

    def fill(
        self, workbook: Any, ranges: Any, *, origin: Origin, like: Any = None
    ) -> ComputedValues:
        del like
        if origin is Origin.GOLD:
            return ComputedValues()
        known = {
            CellRef(each.sheet, cell.row, cell.column)
            for each in ranges
            for cell in workbook.formula_cells(each)
        }
        return ComputedValues(
            values={ref: value for ref, value in self._values.items() if ref in known},
            not_calculated=dict.fromkeys(known - self._values.keys(), "unknown"),
        )

    def answer_conditions(self, *_: Any, **__: Any) -> Any:
        raise AssertionError


def test_formulas_without_a_value_are_computed_first() -> None:
    # 31: two different formulas that nothing has calculated are equal as published
    found = find([DATA], "formula.xlsx", "formula_wrong.xlsx", compute=Computed({"B2": 1.0}))
    assert found.record["official_equal"]
    assert not found.agrees


def test_a_value_that_nothing_could_compute_decides_nothing() -> None:
    found = find([DATA], "formula.xlsx", "formula.xlsx", compute=Computed({}))
    assert not found.agrees
    assert found.undecided


@pytest.mark.parametrize(
    "rule",
    [
        {**DATA, "sheet_idx1": "ENNowhere"},
        {"type": "nope"},
        {**DATA, "sheet_idx0": "XX0"},
        style("nope"),
        {**DATA, "precision": "4"},
        {"type": "zoom", "sheet_idx": 0, "method": "is", "ref": 1},
        {"type": "check_cell", "sheet_idx": 0, "coordinate": "?", "props": {}},
        {"type": "chart", "sheet_idx0": 0},
    ],
)
def test_a_fault_of_the_suite_is_a_bad_test(rule: dict[str, Any]) -> None:
    with pytest.raises(GoldFaultError):
        find([rule], "base.xlsx", "base.xlsx")


def test_every_failing_rule_is_named() -> None:
    found = find(
        [DATA, {"type": "zoom", "sheet_idx": 0, "method": "eq", "ref": 50}, {"type": "sheet_name"}],
        "val5.xlsx",
        "base.xlsx",
    )
    assert found.record["difference_counts"] == {"sheet_data": 1, "zoom": 1}
    assert found.record["differing_cells"] == 2
    assert found.record["cells"] == 3
