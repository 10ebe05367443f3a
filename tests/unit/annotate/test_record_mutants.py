from __future__ import annotations

import random
from decimal import Decimal

import pytest

from judge.annotate.edits import SetCell
from judge.annotate.idea import Idea, Subject
from judge.annotate.row_mutants import (
    same_key_records,
    short_sum,
    sums_at_a_limit,
    text_keys,
)
from judge.annotate.support import Support, find_groups
from judge.annotate.tables import find_tables
from judge.workbook.address import cell_name
from judge.workbook.cell import CellRange
from judge.workbook.reader import open_workbook
from tests.unit.annotate.books import table


def subject(*rows: tuple[object, ...], limits: tuple[float, ...] = ()) -> Subject:
    workbook = open_workbook(table(*rows))
    answer = CellRange("Sheet", 2, 20, 9, 20)
    tables = find_tables(workbook, [answer])
    return Subject(
        tables=tuple(tables),
        sheets=workbook.sheet_names,
        date_1904=False,
        has_dates=False,
        answer=(answer,),
        named=frozenset(),
        limits=limits,
        groups=tuple(find_groups(workbook, [answer], Support(), tables)),
    )


def contents(idea: Idea) -> dict[str, object]:
    return {
        cell_name(each.ref.row, each.ref.column): each.content
        for each in idea.edits
        if isinstance(each, SetCell)
    }


def test_a_key_with_a_letter_is_put_at_both_ends_of_its_list() -> None:
    across = subject(
        ("key", None, "a", "b", "c", "d"), (11, None, 9, 10, 11, 12), (500, None, 1, 2, 3, 4)
    )
    assert [contents(each) for each in text_keys(across, random.Random(1))] == [
        {"A2": "9B", "C2": "9B"},
        {"A2": "12B", "F2": "12B"},
    ]


def test_a_record_shares_all_but_one_text_with_another() -> None:
    book = subject(
        ("day", "brand", "batch", "amount"),
        (1, "camera", "c1", 10),
        (2, "camera", "c1", 20),
        (3, "film", "f1", 30),
        (4, "film", "f1", 40),
    )
    found = [contents(each) for each in same_key_records(book, random.Random(1))]
    assert any(
        set(each.values()) == {2, "camera", 20} and {name[0] for name in each} == set("ABD")
        for each in found
    )


@pytest.mark.parametrize("limit", [2, 2.5, 5, 10, 20, 100])
def test_decimals_fall_short_of_their_sum(limit: float) -> None:
    parts = short_sum(limit)
    assert parts is not None
    assert parts[0] + parts[1] + parts[2] < limit
    assert sum(Decimal(repr(each)) for each in parts) == Decimal(repr(limit))


def test_no_decimals_are_made_for_a_limit_that_has_more_digits() -> None:
    assert short_sum(0.125) is None
    assert short_sum(10.25) is None


def test_the_row_times_ten_equals_a_sum_at_its_limit() -> None:
    book = subject(
        ("a", "b", "c", "goal"), (5, 5, 1, 10), (2, 3, 4, 10), (1, 1, 1, 10), limits=(10, 6)
    )
    idea = next(sums_at_a_limit(book, random.Random(3)))
    (twin,) = idea.twins
    added = [each for each in contents(idea).values() if isinstance(each, float)]
    scaled = contents(Idea("", "", twin.edits))
    assert sum(Decimal(repr(each)) for each in added) == 10
    assert sorted(scaled.values()) == sorted([*(round(each * 10) for each in added), 100])  # type: ignore[type-var]
    assert 100 in contents(Idea("", "", idea.premise)).values()
