"""Which part of a sheet a grid shows."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from judge.report.grid_window import choose_lines, plan_blocks, spans
from judge.workbook.address import Window
from judge.workbook.cell import CellRange


def ranges(*places: tuple[int, int, int, int], sheet: str = "S") -> list[CellRange]:
    return [CellRange(sheet, *place) for place in places]


def test_ranges_of_one_sheet_that_lie_close_are_one_block() -> None:
    found = plan_blocks(ranges((2, 2, 9, 2), (2, 4, 9, 4)), ranges((2, 2, 9, 2), (2, 4, 9, 4)))
    assert len(found) == 1
    assert found[0].answer == (Window(2, 2, 9, 2), Window(2, 4, 9, 4))
    assert found[0].window == Window(1, 1, 11, 6)
    assert found[0].in_answer(9, 4)
    assert not found[0].in_answer(9, 3)


def test_ranges_that_lie_far_apart_are_blocks_of_their_own() -> None:
    far = ranges((1, 1, 2, 2), (90_000, 1, 90_001, 2))
    assert [each.answer for each in plan_blocks(far, far)] == [
        (Window(1, 1, 2, 2),),
        (Window(90_000, 1, 90_001, 2),),
    ]


def test_blocks_know_the_sheet_that_the_output_lacks() -> None:
    gold = ranges((1, 1, 2, 2)) + ranges((1, 1, 2, 2), sheet="T")
    output = [CellRange("s", 1, 1, 2, 2), None]
    found = plan_blocks(gold, output)
    assert [(each.sheet, each.output_sheet) for each in found] == [("S", "s"), ("T", None)]
    assert [each.output_sheet for each in plan_blocks(gold, ())] == [None, None]


def test_all_rows_where_they_fit() -> None:
    assert choose_lines(3, 12, {5}, 10) == list(range(3, 13))


def test_rows_around_differences_where_not_all_fit() -> None:
    chosen = choose_lines(1, 20_000, {9_000, 15_000}, 60)
    assert len(chosen) == 60
    assert {8_999, 9_000, 9_001, 14_999, 15_000, 15_001, 1, 20_000} <= set(chosen)


@given(
    first=st.integers(1, 50),
    size=st.integers(1, 400),
    limit=st.integers(8, 80),
    data=st.data(),
)
def test_never_more_rows_than_asked_for(
    first: int, size: int, limit: int, data: st.DataObject
) -> None:
    last = first + size - 1
    differing = data.draw(st.sets(st.integers(first, last)))
    chosen = choose_lines(first, last, differing, limit)
    assert len(chosen) == min(size, limit)
    assert chosen == sorted(set(chosen))
    assert first <= chosen[0]
    assert chosen[-1] <= last


@given(st.sets(st.integers(1, 60)))
def test_stretches_say_which_rows_there_are(lines: set[int]) -> None:
    found = spans(sorted(lines))
    again = [line for first, count in found for line in range(first, first + count)]
    assert again == sorted(lines)
    assert all(one + count < two for (one, count), (two, _) in itertools.pairwise(found))
