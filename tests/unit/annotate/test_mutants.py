# ruff: noqa: DTZ001 - spreadsheet dates have no time zone
from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from judge.annotate.carried import RELATIONS
from judge.annotate.edit import apply_edits
from judge.annotate.edits import MergeCells, RenameSheet, SetCell, SetDateSystem
from judge.annotate.idea import Idea, Subject
from judge.annotate.mutants import CONTESTED, MUTATORS, NAMES, ideas
from judge.annotate.relations import RELATION_NAMES
from judge.annotate.support import Support, find_groups
from judge.annotate.tables import Kind, find_tables
from judge.workbook.address import cell_name
from judge.workbook.cell import CellRange
from judge.workbook.reader import open_workbook
from tests.unit.annotate.books import table, values

ROWS: tuple[tuple[object, ...], ...] = (
    ("name", "city", "day", "amount", "result"),
    ("ann", "Rome", dt.datetime(2024, 5, 1), 10, None),
    ("bob", "Rome", dt.datetime(2024, 5, 2), 0, None),
    ("cyd", "Oslo", dt.datetime(2024, 5, 3), 30.5, None),
    ("dan", "Oslo", dt.datetime(2024, 5, 4), 40, None),
    ("eve 1 of 2", "12", dt.datetime(2024, 5, 5), 50, None),
)
BOOK = table(*ROWS)
ANSWER = CellRange("Sheet", 2, 5, 30, 5)


OTHER_BOOKS = {"renamed-sheet", "ten-times-the-rows", "lookup-edges", "limits", "equal-columns"}
OTHER_BOOKS |= {"minority-kinds", "other-key", "key-as-text", "swapped-pair", "one-more-column"}
OTHER_BOOKS |= {"blank-numbers-of-a-row", "times-of-day", "text-key", "sum-at-limit"}
OTHER_BOOKS |= {*RELATION_NAMES, *RELATIONS}
"""Mutators that need another workbook, and have separate tests."""


def subject(book: bytes = BOOK, answer: CellRange = ANSWER) -> Subject:
    workbook = open_workbook(book)
    tables = find_tables(workbook, [answer])
    return Subject(
        tables=tuple(tables),
        sheets=workbook.sheet_names,
        date_1904=False,
        has_dates=True,
        answer=(answer,),
        named=frozenset(),
        limits=(40,),
        words=("Oslo", "Bern"),
        groups=tuple(find_groups(workbook, [answer], Support(), tables)),
    )


def found(name: str, seed: str = "7/0", **changes: object) -> list[Idea]:
    everything = ideas(subject(**changes), seed)  # type: ignore[arg-type]
    return [each for each in everything if each.mutator == name]


def test_a_table_is_found_with_the_kinds_of_its_columns() -> None:
    (only,) = find_tables(open_workbook(BOOK), [ANSWER])
    assert (only.head_row, only.first_row, only.last_row, only.free_below) == (1, 2, 6, True)
    assert [(each.kind, each.is_answer) for each in only.columns] == [
        (Kind.TEXT, False),
        (Kind.TEXT, False),
        (Kind.DATE, False),
        (Kind.NUMBER, False),
        (Kind.BLANK, True),
    ]


def test_a_table_goes_on_after_a_few_blank_rows() -> None:
    blank: tuple[object, ...] = (None, None)
    book = table(("n", "m"), (1, "a"), blank, blank, (2, "b"), *[blank] * 4, ("note", None))
    (only,) = find_tables(open_workbook(book), [])
    assert (only.first_row, only.last_row, only.free_below) == (2, 5, False)
    assert list(only.columns[0].cells) == [2, 5]


def test_where_everything_is_the_answer_the_data_is_read() -> None:
    (only,) = find_tables(open_workbook(BOOK), [CellRange("Sheet", 1, 1, 6, 5)])
    assert not any(each.is_answer for each in only.columns)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OTHER_BOOKS])
def test_ideas_are_reproducible_and_fit_the_workbook(name: str) -> None:
    first = found(name)
    assert first == found(name)
    assert first
    for idea in first:
        assert idea.mutator == name
        assert not any(
            isinstance(edit, SetCell) and (edit.ref.column == 5 or edit.ref.row == 1)
            for edit in idea.edits
        )
        assert apply_edits(BOOK, idea.edits).data != BOOK


def test_another_seed_gives_other_ideas() -> None:
    assert [found("blank-cells", str(seed)) for seed in range(5)].count(found("blank-cells")) < 5


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("one-row", {(row, column): None for row in range(3, 7) for column in range(1, 5)}),
        ("no-row", {(row, column): None for row in range(2, 7) for column in range(1, 5)}),
        ("text-as-numbers", {(6, 2): 12}),
    ],
)
def test_what_they_change(name: str, expected: dict[tuple[int, int], object]) -> None:
    (idea,) = found(name)
    edits = [each for each in idea.edits if isinstance(each, SetCell)]
    assert {(each.ref.row, each.ref.column): each.content for each in edits} == expected


def test_shuffled_rows_stay_together() -> None:
    (idea,) = found("shuffled-rows")
    after = values(apply_edits(BOOK, idea.edits).data)
    rows = {tuple(after.get((row, column)) for column in range(1, 5)) for row in range(2, 7)}
    assert rows == {each[:4] for each in ROWS[1:]}


def test_rows_are_added_only_where_the_answer_has_room() -> None:
    (idea,) = found("ten-times-the-rows", answer=CellRange("Sheet", 2, 5, 100, 5))
    after = values(apply_edits(BOOK, idea.edits).data)
    assert max(row for row, _ in after) == 51
    assert found("ten-times-the-rows") == []
    assert found("one-more-row", answer=CellRange("Sheet", 2, 5, 6, 5)) == []
    assert len(found("one-more-row", answer=CellRange("Sheet", 3, 9, 3, 9))) == 1


def test_the_workbook_as_a_whole() -> None:
    assert [each.edits for each in found("date-system")] == [(SetDateSystem(date_1904=True),)]
    assert isinstance(found("merged-cells")[0].edits[0], MergeCells)
    assert found("renamed-sheet") == []
    two = Subject((), ("Data", "Result"), False, False, (), frozenset({"result"}))
    (idea,) = ideas(two, "0")
    assert idea.edits == (RenameSheet("Data", "Data new"),)


def test_nothing_comes_of_what_is_not_there() -> None:
    texts = table(("a", "b"), ("x", "y"), ("z", "w"))
    names = {each.mutator for each in ideas(subject(texts), "0")}
    assert not names & {"dates", "negative", "huge", "numbers-as-text", "merged-cells"}


TWO_TABLES = table(
    ("key", "low", "high", None, "code", "price"),
    ("a", 5, 9, None, "a", 100),
    ("b", 6, 8, None, "b", 200),
    ("b", 7, 7.5, None, "c", 300),
)


def targeted(name: str) -> list[tuple[str, object]]:
    made = subject(TWO_TABLES, CellRange("Sheet", 2, 9, 9, 9))
    everything = ideas(replace(made, limits=(8, 150, 10**6)), "0")
    return [
        (cell_name(edit.ref.row, edit.ref.column), edit.content)
        for each in everything
        if each.mutator == name
        for edit in each.edits
        if isinstance(edit, SetCell)
    ]


def test_keys_are_set_to_the_edges_of_the_table_they_are_found_in() -> None:
    assert {content for cell, content in targeted("lookup-edges") if cell[0] == "A"} == {"a", "c"}


def test_numbers_meet_the_limits_that_are_named() -> None:
    found = targeted("limits")
    assert {content for cell, content in found if cell[0] in "BC"} == {8, 9, 7}
    assert {content for cell, content in found if cell[0] == "F"} == {8, 9, 7, 150, 151, 149}


def test_columns_become_equal_in_some_rows() -> None:
    pairs = {"C2": 5, "C3": 6, "C4": 7}
    assert {(cell, content) for cell, content in targeted("equal-columns") if cell[0] == "C"} <= {
        *pairs.items()
    }


def test_names_are_known() -> None:
    assert set(NAMES) >= CONTESTED
    assert set(NAMES) > set(MUTATORS)
