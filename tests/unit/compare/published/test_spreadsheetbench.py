"""The published script's rules and each of its faults. Recorded verdicts are in parity/."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.compare.cells.comparison import DifferenceClass
from judge.compare.cells.computing import compare_files
from judge.compare.published.spreadsheetbench import (
    OfficialPart,
    ScriptError,
    check_officially,
    official_agree,
    official_parts,
    officially_equal,
)
from judge.workbook.address import Window
from judge.workbook.cell import NOTHING_COMPUTED, CellValue, ErrorValue
from judge.workbook.reader import open_workbook
from tests.unit.compare.cells.packages import Book, cell, relations, sheet_data, simple


def parts(position: str) -> list[OfficialPart] | None:
    return official_parts(position, ["Sheet1", "Sheet2"], ["Sheet1", "Sheet2"])


@pytest.mark.parametrize(
    ("position", "sheet", "window"),
    [
        ("A1", "Sheet1", Window(1, 1, 1, 1)),
        ("d10", "Sheet1", Window(10, 4, 10, 4)),
        ("$D$10", "Sheet1", Window(10, 4, 10, 4)),
        ("A1:B9", "Sheet1", Window(1, 1, 9, 2)),
        ("Sheet2'!A1:B9", "Sheet2", Window(1, 1, 9, 2)),
        ("'Sheet2'!'A1:B9'", "Sheet2", Window(1, 1, 9, 2)),
        ("a1:b9", "Sheet1", Window(1, 33, 9, 34)),
        ("B9:A1", "Sheet1", None),
        ("BD2:308", "Sheet1", None),
    ],
)
def test_how_the_script_reads_a_part(position: str, sheet: str, window: Window | None) -> None:
    assert parts(position) == [OfficialPart(sheet, window)]


@pytest.mark.parametrize(
    "position",
    [
        *("A:C", "5:9", "A1:B2:C3", "A", "5", " D10", "A1, C2:C3", "Sheet1!!A1", "A0"),
        *("A1:A1048577", "", "$A$1:$B$2", "A1:\u00b2", "Sheet1!"),
    ],
)
def test_where_the_script_falls_over(position: str) -> None:
    with pytest.raises(ScriptError):
        parts(position)


def test_a_part_without_a_sheet_belongs_to_the_first_one() -> None:
    found = parts("'Sheet2'!A1,B2")
    assert found is not None
    assert [part.sheet for part in found] == ["Sheet2", "Sheet1"]


def test_sheets_must_be_named_exactly() -> None:
    assert parts("'SHEET2'!A1") is None
    assert parts("'Sheet2 '!A1") is None
    with pytest.raises(ScriptError, match="KeyError"):
        official_parts("'X'!A1", ["Sheet1"], ["Sheet1", "X"])


@pytest.mark.parametrize(
    ("expected", "actual", "agrees"),
    [
        (1, 1.0, True),
        (1, 1.004, True),
        (1, 1.006, False),
        (5279.174999999999, 5279.175, False),
        (1, True, True),
        (5, " 5 ", True),
        (1000, "1_000", True),
        (1000, "1e3", True),
        ("nan", "nan", False),
        ("inf", "Infinity", True),
        (None, "", True),
        (None, None, True),
        ("", "", True),
        (None, 0, False),
        (None, " ", False),
        ("a", "A", False),
        (dt.datetime(2024, 2, 29), 45351, True),  # noqa: DTZ001
        (dt.datetime(2024, 2, 29, 11), 45351, True),  # noqa: DTZ001
        (dt.datetime(2024, 2, 29, 13), 45351, False),  # noqa: DTZ001
        (dt.datetime(2024, 2, 29, 13), dt.datetime(2024, 3, 1, 11), True),  # noqa: DTZ001
        (dt.date(2024, 2, 29), dt.datetime(2024, 2, 29), False),  # noqa: DTZ001
        (dt.time(10, 30, 59), dt.time(10, 30), True),
        (dt.time(10, 30), "10:30", True),
        (dt.time(10, 30, 0, 500000), dt.time(10, 30), False),
        (dt.time(12), 0.5, False),
        (dt.timedelta(1), dt.timedelta(1), True),
        (ErrorValue("#N/A"), "#N/A", True),
    ],
)
def test_values(expected: CellValue, actual: CellValue, agrees: bool) -> None:
    assert official_agree(expected, actual) is agrees
    assert official_agree(actual, expected) is agrees


def test_a_number_beyond_floats_makes_it_fall_over() -> None:
    with pytest.raises(ScriptError, match="OverflowError"):
        official_agree(10**400, 1)


@given(st.text(max_size=20))
def test_no_position_crashes_us(position: str) -> None:
    try:
        found = parts(position)
    except ScriptError:
        return
    assert found is None or all(part.sheet in {"Sheet1", "Sheet2"} for part in found)


# -- on workbooks ---------------------------------------------------------------------------------


def accepts(gold: bytes, output: bytes, position: str) -> bool:
    comparison = compare_files(gold, output, position, profile="official")
    assert comparison.official_equal is comparison.equal
    return comparison.equal


def test_a_gold_with_nan_is_not_accepted_as_its_own_answer() -> None:
    gold = simple({"A1": "NaN", "A2": 1})
    assert not accepts(gold, gold, "A1:A2")
    assert accepts(gold, gold, "A2")


def test_a_position_without_cells_accepts_anything() -> None:
    assert accepts(simple({"A1": 1}), simple({"A1": 2}), "B2:A1")
    assert not accepts(simple({"A1": 1}), simple({"A1": 2}), "B2:A1,A1")


def test_a_position_that_it_cannot_read_accepts_nothing() -> None:
    gold = simple({"A1": 1})
    comparison = compare_files(gold, gold, "A1, A2:A3", profile="official")
    assert not comparison.equal
    assert "script crashes" in comparison.notes[0]
    assert compare_files(gold, gold, "A1, A2:A3").equal


def test_a_missing_sheet_is_not_accepted() -> None:
    assert not accepts(simple({"A1": 1}), simple({"A1": 1}, sheet="Other"), "'Sheet1'!A1")


def test_formulas_without_values_are_blank() -> None:
    gold = simple({"B1": 1})
    output = Book({"Sheet1": sheet_data(cell("A1", formula="1"), cell("B1", 1))}).to_bytes()
    assert accepts(gold, output, "A1:B1")
    assert not compare_files(gold, output, "A1:B1").equal


def test_a_blank_cell_under_a_link_shows_its_target() -> None:
    links = '<hyperlinks><hyperlink ref="A1" r:id="rId1"/></hyperlinks>'
    linked = Book(
        {"Sheet1": sheet_data('<c r="A1"/>') + links},
        parts={
            "xl/worksheets/_rels/sheet1.xml.rels": relations(
                ("rId1", "hyperlink", "https://example.org/")
            )
        },
    ).to_bytes()
    assert accepts(simple({"A1": "https://example.org/"}), linked, "A1")
    assert not accepts(simple({"B1": 1}), linked, "A1")
    assert compare_files(simple({"B1": 1}), linked, "A1").equal


def test_a_link_on_a_covered_cell_moves_to_the_first_one() -> None:
    tail = (
        '<mergeCells><mergeCell ref="A1:B2"/></mergeCells>'
        '<hyperlinks><hyperlink ref="B2" location="Sheet1!C1"/></hyperlinks>'
    )
    linked = Book({"Sheet1": sheet_data('<c r="A1"/>') + tail}).to_bytes()
    assert accepts(simple({"A1": "Sheet1!C1"}), linked, "A1:B2")


def test_differences_are_all_counted_although_the_script_stops_at_the_first() -> None:
    gold = simple({f"A{row}": row for row in range(1, 9)})
    output = simple({f"A{row}": -row for row in range(1, 9)})
    comparison = compare_files(gold, output, "A1:A8", profile="official")
    assert (comparison.cells, comparison.differing_cells) == (8, 8)


def test_a_time_and_a_duration_are_two_types_to_the_script() -> None:
    time, duration = (
        Book({"Sheet1": sheet_data(f'<c r="A1" s="{style}"><v>0.5</v></c>')}).to_bytes()
        for style in (2, 3)
    )
    comparison = compare_files(time, duration, "A1", profile="official")
    assert comparison.difference_counts == {DifferenceClass.TYPE: 1}


@pytest.mark.parametrize(
    ("position", "outputs"),
    [
        ("A1:A2", {"same": True, "other": False, "nan": False}),
        ("A1,A2", {"same": True, "other": False, "nan": False}),
        ("A2,A1", {"same": True, "other": False, "nan": False}),
        ("Sheet9!A1", {"same": False}),
        ("A:A", {"same": False}),
        ("A2:A1", {"same": True, "other": True}),
    ],
)
def test_the_verdict_alone_is_that_of_the_whole_comparison(
    position: str, outputs: dict[str, bool]
) -> None:
    books = {
        "same": (1, "x"),
        "other": (2, "x"),
        "nan": ("nan", "x"),
    }
    for name, accepted in outputs.items():
        gold, output = (
            open_workbook(
                Book({"Sheet1": sheet_data(cell("A1", first), cell("A2", second))}).to_bytes()
            )
            for first, second in ((books["same"] if name != "nan" else books["nan"]), books[name])
        )
        computed = (NOTHING_COMPUTED, NOTHING_COMPUTED)
        alone = officially_equal(position, gold, output, *computed)
        whole = check_officially(
            position,
            gold,
            output,
            gold_computed=computed[0],
            output_computed=computed[1],
            max_differences=9,
        )
        assert alone is whole.equal is accepted
