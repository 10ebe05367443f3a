"""The subsets of the paper's Table 3, found in the published workbooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from judge.core.statistics import wilson
from judge.report.breakdowns import COLUMNS, LAYOUT, ROWS, TABLES, TaskFacts, divisions_for
from judge.report.shapes import ShapeCache, WorkbookShape
from judge.suites import load_suite


def place(division_key: str, **facts: object) -> str | None:
    """Returns the subset of a task with these facts."""
    task = TaskFacts("Cell-Level Manipulation", **facts)  # type: ignore[arg-type]
    (division,) = (
        each for each in divisions_for([task], of_paper=True) if each.key == division_key
    )
    placed = division.part_of(task)
    assert placed is None or placed in {part.key for part in division.parts}
    return placed


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (
            WorkbookShape(50, 10, 1, 1, is_relational=True),
            ("rows_up_to_50", "columns_up_to_10", "single_table", "relational"),
        ),
        (
            WorkbookShape(51, 11, 2, 2, is_relational=False),
            ("rows_over_50", "columns_over_10", "multiple_tables", "non_standard"),
        ),
        (
            WorkbookShape(1, 1, 1, 0, is_relational=None),
            ("rows_up_to_50", "columns_up_to_10", "single_table", "non_standard"),
        ),
        (None, (None, None, None, None)),
    ],
)
def test_where_a_shape_belongs(
    shape: WorkbookShape | None, expected: tuple[str | None, ...]
) -> None:
    assert tuple(place(key, shape=shape) for key in ("rows", "columns", "tables", "layout")) == (
        expected
    )


@pytest.mark.parametrize(
    ("cells", "part"),
    [
        (1, "cells_up_to_1"),
        (2, "cells_up_to_10"),
        (10, "cells_up_to_10"),
        (11, "cells_up_to_100"),
        (1_000, "cells_up_to_1000"),
        (1_001, "cells_over_1000"),
        (None, None),
    ],
)
def test_where_an_answer_range_belongs(cells: int | None, part: str | None) -> None:
    assert place("answer_cells", answer_cells=cells) == part


@pytest.mark.parametrize(
    ("size", "part"),
    [(10_000, "bytes_up_to_10000"), (10_001, "bytes_up_to_20000"), (100_001, "bytes_over_100000")],
)
def test_where_a_workbook_belongs(size: int, part: str) -> None:
    assert place("workbook_bytes", input_bytes=size) == part


def test_one_round_is_not_a_breakdown() -> None:
    keys = [each.key for each in divisions_for([TaskFacts("x", rounds=1)], of_paper=True)]
    assert "rounds" not in keys
    assert "category" not in keys


def test_only_its_own_suites_stand_beside_the_paper() -> None:
    task = TaskFacts("x")
    ours, other = (divisions_for([task], of_paper=of_paper) for of_paper in (True, False))
    assert [each.key for each in ours] == [each.key for each in other]
    assert [each.key for each in ours if each.from_paper] == ["rows", "columns", "tables", "layout"]
    assert not any(each.from_paper for each in other)
    assert all(part.paper_share is None for each in other for part in each.parts)


@pytest.mark.slow
@pytest.mark.data
def test_shares_of_a_part_of_the_benchmark_fit_those_of_the_whole(judge_data: Path) -> None:
    suite = load_suite(str(judge_data / "spreadsheetbench_912_dev300"))
    cache = ShapeCache()
    facts = [
        TaskFacts(task.kind, cache.of(task.cases[0].input_path.read_bytes()))
        for task in suite.tasks
    ]
    assert all(each.shape is not None for each in facts)
    for division in (ROWS, COLUMNS, TABLES, LAYOUT):
        first = division.parts[0]
        found = wilson(sum(division.part_of(each) == first.key for each in facts), len(facts))
        assert (found.low or 1) <= (first.paper_share or 0) <= (found.high or 0), division.key
