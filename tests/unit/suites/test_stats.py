from __future__ import annotations

import pytest

from judge.errors import SuiteError
from judge.suites import load_suite
from judge.suites.validate import compute_stats
from tests.unit.suites.conftest import WriteSuite, task_record


def test_counts(write_suite: WriteSuite) -> None:
    records = [
        task_record(1, instruction="one two three", answer_position="A1,B2"),
        task_record(2, exclude="wrong", answer_sheet="S"),
        task_record("3-1", instruction_type="Sheet-Level Manipulation", style=["fill"]),
    ]
    folder = write_suite(records)
    for extra in ("input", "answer"):
        (folder / f"spreadsheet/3-1/3_3-1_{extra}.xlsx").write_bytes(bytes(1000))
    stats = compute_stats(load_suite(folder))
    assert (stats.tasks, stats.cases, stats.excluded) == (3, 7, 1)
    assert stats.tasks_by_type == {"Cell-Level Manipulation": 2, "Sheet-Level Manipulation": 1}
    assert stats.cases_by_type == {"Cell-Level Manipulation": 4, "Sheet-Level Manipulation": 3}
    assert stats.tasks_by_case_count == {2: 2, 3: 1}
    assert stats.tasks_by_checker == {"cell_range": 2, "cell_range + fill": 1}
    assert (stats.named_sheet, stats.several_ranges) == (1, 1)
    assert stats.median_instruction_words == 5
    assert stats.largest_workbook_bytes == 1000
    assert stats.workbook_bytes == sum(p.stat().st_size for p in folder.rglob("*.xlsx"))


def test_a_workbook_that_went_away(write_suite: WriteSuite) -> None:
    suite = load_suite(write_suite())
    suite.tasks[0].cases[0].input_path.unlink()
    with pytest.raises(SuiteError, match=r"1_101_input\.xlsx cannot be read"):
        compute_stats(suite)
