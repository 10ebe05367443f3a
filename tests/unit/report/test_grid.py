"""What the grid of a case shows for each cell."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from judge.compare.cells.comparison import DifferenceClass
from judge.compare.cells.options import range_spec
from judge.compare.cells.render import computed_to_json
from judge.compare.profiles import get_profile
from judge.core.records.cases import CaseComparison, DifferenceRecord
from judge.core.submission import Answer, Origin
from judge.core.task import Task, TestCase
from judge.grading.case import CaseJudge, GradingRules
from judge.recalc.policy import Recalculator
from judge.report.grid import MARKS, GridRules, KeptWorkbooks, build_grid
from judge.report.grid_marks import is_cut
from judge.report.grid_window import GridBounds
from judge.suites.spreadsheetbench import InstructionType
from judge.workbook.cell import CellRef, CellValue, ComputedValues
from judge.workbook.reader import Workbook, open_workbook
from tests.browser.made_run import Cells, workbook

NEVER = GridRules(recalc_mode="never")
AUTO = GridRules()


def made(tmp_path: Path, gold: Cells, before: Cells, position: str) -> tuple[Task, TestCase]:
    paths = tmp_path / "input.xlsx", tmp_path / "gold.xlsx"
    for path, cells in zip(paths, (before, gold), strict=True):
        path.write_bytes(workbook(cells))
    case = TestCase.of_workbooks(1, *paths)
    return Task("1", "", InstructionType.CELL_LEVEL.value, (case,), range_spec(position)), case


def record(task: Task, case: TestCase, output: bytes, kept: int = 50) -> CaseComparison:
    rules = GradingRules(get_profile("standard"), recalc_mode="never", max_differences=kept)
    recalculator = Recalculator((), mode="never")
    answer = Answer.of_workbook(output, Origin.SOLUTION)
    judged = CaseJudge(recalculator, rules).judge(task, case, answer)
    return judged.comparison


def cells_of(grid: dict[str, Any]) -> dict[str, tuple[str, list[Any]]]:
    """Maps addresses to (mark, entry) in the first block."""
    block = grid["blocks"][0]
    columns = [first + n for _, first, count in block["columns"] for n in range(count)]
    rows = [first + n for first, count in block["rows"] for n in range(count)]
    return {
        f"{chr(64 + columns[entry[0]])}{row}": (MARKS[entry[1] >> 4], entry)
        for row, entries in zip(rows, block["cells"], strict=True)
        for entry in entries
    }


GOLD = {"A1": "n", "A2": 1, "A3": 2, "B2": 10, "B3": 20, "B4": "x"}


def test_each_cell_has_the_class_that_the_comparison_gave_it(tmp_path: Path) -> None:
    task, case = made(tmp_path, GOLD, {"A1": "n", "A2": 1, "A3": 2}, "B2:B5")
    output = workbook({"A1": "n", "A2": 1, "A3": 2, "B2": 10, "B3": 21, "B5": "extra"})
    grid = build_grid(task, case, record(task, case, output), output, NEVER)
    marks = {address: mark for address, (mark, _) in cells_of(grid).items()}
    assert marks == {
        "A1": "",
        "A2": "",
        "A3": "",
        "B2": "agrees",
        "B3": DifferenceClass.WRONG_VALUE,
        "B4": DifferenceClass.MISSING,
        "B5": DifferenceClass.EXTRA,
    }
    assert grid["notes"] == []


def test_differences_beyond_those_on_record_come_from_the_files(tmp_path: Path) -> None:
    gold = {f"B{row}": row for row in range(1, 101)}
    left = {f"B{row}": row if row % 2 else -row for row in range(1, 101)}
    task, case = made(tmp_path, gold, {}, "B1:B100")
    output = workbook(left)
    said = record(task, case, output, kept=3)
    assert is_cut(said)
    grid = build_grid(task, case, said, output, NEVER)
    for address, (mark, _) in cells_of(grid).items():
        even = int(address[1:]) % 2 == 0
        assert mark == (DifferenceClass.WRONG_VALUE if even else "agrees"), address


def test_what_was_computed_and_not_kept_is_said_to_be_unknown(tmp_path: Path) -> None:
    gold = {f"B{row}": row for row in range(1, 11)}
    task, case = made(tmp_path, gold, {}, "B1:B10")
    output = workbook({f"B{row}": f"={row}+1" for row in range(1, 11)})
    first: DifferenceRecord = {
        "kind": "wrong_value",
        "sheet": "Data",
        "cell": "B1",
        "expected": 1,
        "actual": 2,
    }
    said: CaseComparison = {
        "differing_cells": 5,
        "difference_counts": {"wrong_value": 5},
        "differences": [first],
    }
    found = cells_of(build_grid(task, case, said, output, AUTO))
    assert found["B1"][0] == "wrong_value"
    assert found["B1"][1][3] == {"f": "=1+1", "v": 2, "s": "c"}
    assert {found[f"B{row}"][0] for row in range(2, 11)} == {"unknown"}


def test_formulas_that_agree_say_so_without_a_value(tmp_path: Path) -> None:
    task, case = made(tmp_path, {"B1": 2}, {}, "B1")
    said: CaseComparison = {"differing_cells": 0, "difference_counts": {}, "differences": []}
    found = cells_of(build_grid(task, case, said, workbook({"B1": "=1+1"}), AUTO))
    assert found["B1"][0] == "agrees"
    assert found["B1"][1][3] == {"f": "=1+1", "v": None, "s": "a"}


def test_computed_values_on_record_are_shown(tmp_path: Path) -> None:
    task, case = made(tmp_path, {"B1": 2, "B2": 3}, {}, "B1:B4")
    output = workbook({"B1": "=1+1", "B2": "=DATE(2024,1,31)", "B3": "=NA()"})
    computed = {
        "B1": 2,
        "B2": {"date": "2024-01-31T00:00:00"},
        "B3": {"error": "#N/A"},
        "B4": "filled",
    }
    said: CaseComparison = {
        "differing_cells": 0,
        "computed_values": {"gold": {}, "output": {"Data": computed}},
    }
    found = cells_of(build_grid(task, case, said, output, AUTO))
    assert found["B1"][1][3] == {"f": "=1+1", "v": 2, "s": "c"}
    assert found["B2"][1][3]["v"] == {"k": "d", "x": "2024-01-31"}
    assert found["B3"][1][3]["v"] == {"k": "e", "x": "#N/A"}
    # An array formula above filled this one.
    assert found["B4"][1][3] == "filled"


def test_the_grader_puts_computed_values_on_record() -> None:
    values: dict[CellRef, CellValue] = {
        CellRef("S", 2, 1): 1.5,
        CellRef("S", 1, 2): dt.date(2024, 1, 31),
        CellRef("T", 1, 1): "text",
    }
    found = computed_to_json(ComputedValues(values=values), limit=2)
    assert found == {"S": {"B1": {"date": "2024-01-31"}, "A2": 1.5}}


def test_without_output_the_gold_is_shown_unmarked(tmp_path: Path) -> None:
    task, case = made(tmp_path, GOLD, {"B2": 1}, "B2:B5")
    grid = build_grid(task, case, {}, None, AUTO)
    assert {mark for mark, _ in cells_of(grid).values()} == {""}
    assert grid["blocks"][0]["output_sheet"] is None


def test_output_without_the_sheet(tmp_path: Path) -> None:
    task, case = made(tmp_path, GOLD, {}, "'Data'!B2:B3")
    output = workbook({"B2": 10}, "Other")
    found = cells_of(build_grid(task, case, record(task, case, output), output, NEVER))
    assert {found[each][0] for each in ("B2", "B3")} == {DifferenceClass.MISSING_SHEET}


@pytest.mark.parametrize(
    ("broken", "note"),
    [("gold", "the gold cannot be read"), ("output", "the output cannot be read")],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, broken: str, note: str) -> None:
    task, case = made(tmp_path, GOLD, {}, "B2")
    output = workbook(GOLD)
    if broken == "gold":
        case.gold_path.write_bytes(b"no workbook")
    else:
        output = b"no workbook"
    grid = build_grid(task, case, {}, output, AUTO)
    assert any(each.startswith(note) for each in grid["notes"])


def test_bounds(tmp_path: Path) -> None:
    gold = {f"B{row}": row for row in range(1, 501)}
    task, case = made(tmp_path, gold, {}, "B1:B500")
    output = workbook({**gold, "B400": 0})
    bounds = GridBounds(cells=240, columns=10)
    grid = build_grid(task, case, record(task, case, output), output, NEVER, bounds)
    block = grid["blocks"][0]
    rows = [first + n for first, count in block["rows"] for n in range(count)]
    assert len(rows) == len(block["cells"]) == 60
    assert 400 in rows
    assert block["whole_rows"] == 502


def opened_paths(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that grids open from now on; outputs are bytes, and not among them."""
    opened: list[Path] = []

    def noting(source: bytes | Path) -> Workbook:
        if isinstance(source, Path):
            opened.append(source)
        return open_workbook(source)

    monkeypatch.setattr("judge.report.grid.open_workbook", noting)
    return opened


def test_samples_of_a_case_share_its_opened_gold_and_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, case = made(tmp_path, GOLD, {"A1": "n", "D7": "far"}, "B2:B5")
    outputs = [workbook({"B2": 10, "B3": 21}), None, workbook({"B2": 11, "C9": "x"})]
    records: list[CaseComparison] = [
        {} if output is None else record(task, case, output) for output in outputs
    ]
    judged = list(zip(records, outputs, strict=True))
    alone = [build_grid(task, case, said, output, NEVER) for said, output in judged]
    opened = opened_paths(monkeypatch)
    kept = KeptWorkbooks()
    shared = [build_grid(task, case, said, output, NEVER, kept=kept) for said, output in judged]
    assert shared == alone
    assert sorted(opened) == sorted([case.gold_path, case.input_path])


def test_a_gold_that_changed_is_opened_again(tmp_path: Path) -> None:
    task, case = made(tmp_path, GOLD, {}, "B2:B5")
    kept = KeptWorkbooks()
    before = cells_of(build_grid(task, case, {}, None, AUTO, kept=kept))
    (tmp_path / "gold.xlsx").write_bytes(workbook({**GOLD, "B3": 7, "B5": "another"}))
    after = cells_of(build_grid(task, case, {}, None, AUTO, kept=kept))
    assert (before["B3"][1][2], after["B3"][1][2]) == (20, 7)


def test_a_workbook_that_used_up_much_of_its_limits_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, case = made(tmp_path, GOLD, {}, "B2:B5")
    opened = opened_paths(monkeypatch)
    kept = KeptWorkbooks()
    with kept.lend(case.input_path) as lent:
        lent.package.budget.take_cells(lent.package.budget.limits.cells // 4)
    for _ in range(2):
        build_grid(task, case, {}, None, AUTO, kept=kept)
    assert opened.count(case.input_path) == 2
