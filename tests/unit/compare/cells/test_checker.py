"""Two workbooks are compared: which differences there are, and how they are classified."""

from __future__ import annotations

import datetime as dt

import pytest

from judge.compare.cells.answer_range import check, prepare
from judge.compare.cells.comparison import Comparison, DifferenceClass
from judge.compare.cells.computing import compare_files
from judge.compare.cells.options import range_spec
from judge.compare.profiles import get_profile
from judge.compare.registry import checker_of
from judge.core.task import CheckerSpec
from judge.errors import PositionError, UsageError, WorkbookError
from judge.workbook.cell import CellRef, CellValue, ComputedValues
from judge.workbook.reader import open_workbook
from tests.unit.compare.cells.packages import Book, cell, sheet_data, simple

Kind = DifferenceClass


def kinds(comparison: Comparison) -> dict[str, DifferenceClass]:
    return {each.cell: each.kind for each in comparison.differences}


def test_equal_workbooks() -> None:
    gold = simple({"A1": 1, "B1": "x"})
    comparison = compare_files(gold, gold, "A1:C3")
    assert comparison.equal
    assert (comparison.cells, comparison.differing_cells) == (9, 0)
    assert comparison.cell_accuracy == 1.0
    assert comparison.official_equal is True


def test_every_difference_is_classed_and_told_in_reading_order() -> None:
    gold = simple({"A1": 1, "B1": "text", "C1": 5, "A2": 2, "B2": 3, "C2": True})
    output = simple({"A1": 2, "C1": "5", "A2": 2, "B2": "three", "C2": True, "A3": "extra"})
    comparison = compare_files(gold, output, "A1:C3", profile="strict")
    assert list(kinds(comparison).items()) == [
        ("A1", Kind.WRONG_VALUE),
        ("B1", Kind.MISSING),
        ("C1", Kind.NUMBER_AS_TEXT),
        ("B2", Kind.TYPE),
        ("A3", Kind.EXTRA),
    ]
    first = comparison.differences[0]
    assert (first.sheet, first.expected, first.actual) == ("Sheet1", 1, 2)
    assert comparison.cell_accuracy == pytest.approx(4 / 9)


def test_what_is_stored_is_bounded_and_what_is_counted_is_not() -> None:
    gold = simple({f"A{row}": row for row in range(1, 301)})
    comparison = compare_files(gold, simple({"B1": 1}), "A1:A400", max_differences=7)
    assert len(comparison.differences) == 7
    assert comparison.differing_cells == 300
    assert comparison.difference_counts == {Kind.MISSING: 300}


def test_cells_outside_the_position_do_not_count() -> None:
    assert compare_files(simple({"A1": 1, "B1": 2}), simple({"A1": 1, "B1": 3}), "A1").equal


def test_several_ranges_on_several_sheets() -> None:
    gold = Book({"One": sheet_data(cell("A1", 1)), "Two": sheet_data(cell("B2", 2))}).to_bytes()
    output = Book({"One": sheet_data(cell("A1", 1)), "Two": sheet_data(cell("B2", 3))}).to_bytes()
    comparison = compare_files(gold, output, "'One'!A1,'Two'!A1:B2")
    assert [each.sheet for each in comparison.ranges] == ["One", "Two"]
    assert comparison.cells == 5
    assert kinds(comparison) == {"B2": Kind.WRONG_VALUE}


def test_a_missing_sheet_lacks_all_its_cells() -> None:
    comparison = compare_files(
        simple({"A1": 1}, sheet="Result"), simple({"A1": 1}, sheet="Sheet"), "'Result'!A1:B2"
    )
    assert not comparison.equal
    assert comparison.difference_counts == {Kind.MISSING_SHEET: 4}
    assert comparison.differences[0].detail == "the output has no sheet 'Result'; it has 'Sheet'"
    assert comparison.cell_accuracy == 0


def test_a_blank_sheet_agrees_with_a_blank_sheet() -> None:
    assert compare_files(simple({}), simple({}), "A1:B2").equal


def test_a_whole_column_sees_what_the_output_has_too_much() -> None:
    gold, output = simple({"A1": 1}), simple({"A1": 1, "A900": 2})
    comparison = compare_files(gold, output, "A:A")
    assert comparison.cells == 900
    assert kinds(comparison) == {"A900": Kind.EXTRA}
    assert not compare_files(output, gold, "A:A").equal


def test_dates_and_their_serial_numbers_agree() -> None:
    gold = Book({"Sheet1": sheet_data('<c r="A1" s="1"><v>45351</v></c>')}).to_bytes()
    comparison = compare_files(gold, simple({"A1": 45352}), "A1")
    (difference,) = comparison.differences
    assert difference.expected == dt.datetime(2024, 2, 29)  # noqa: DTZ001
    assert difference.kind is Kind.WRONG_VALUE
    assert compare_files(gold, simple({"A1": 45351}), "A1").equal


def stored(number: str, style: int, *, date_1904: bool = False) -> bytes:
    """Makes a workbook with a number and a cell format: 0 General, 1 date, 2 h:mm, 3 [h]:mm:ss."""
    workbook = '<workbookPr date1904="1"/>' if date_1904 else ""
    inner = sheet_data(f'<c r="A1" s="{style}"><v>{number}</v></c>')
    return Book({"Sheet1": inner}, workbook=workbook).to_bytes()


@pytest.mark.parametrize("date_1904", [False, True])
@pytest.mark.parametrize(
    "number",
    [
        *("0", "0.4375", "0.35416666666666669", "0.99999999999", "0.999999", "1", "1.0625"),
        *("2.9999999999", "59.25", "60.25", "61.25", "-0.5", "45351.75", "1E-9"),
    ],
)
def test_one_stored_number_agrees_with_itself_under_any_format(
    number: str, date_1904: bool
) -> None:
    files = [stored(number, style, date_1904=date_1904) for style in (0, 1, 2, 3)]
    for gold in files:
        for output in files:
            comparison = compare_files(gold, output, "A1")
            assert comparison.equal, comparison.differences


@pytest.mark.parametrize("styles", [(3, 0), (0, 3), (2, 0), (3, 2), (2, 3), (3, 3)])
def test_another_duration_is_still_another(styles: tuple[int, int]) -> None:
    first, second = styles
    gold = stored("0.4375", first)
    for number in ("0.44", "1.4375", "-0.4375"):
        assert not compare_files(gold, stored(number, second), "A1").equal
    # Types count under strict, and the recorded verdicts of the script are what they are.
    if first != second:
        same = stored("0.4375", second)
        assert not compare_files(gold, same, "A1", profile="strict").equal
        assert not compare_files(gold, same, "A1", profile="official").equal


def test_a_sheet_spelled_otherwise_is_noted() -> None:
    comparison = compare_files(
        simple({"A1": 1}, sheet="Result"), simple({"A1": 1}, sheet="RESULT"), "result'!A1"
    )
    assert comparison.equal
    assert len(comparison.notes) == 3
    assert comparison.official_equal is False


# -- formulas -------------------------------------------------------------------------------------

UNCACHED = Book({"Sheet1": sheet_data(cell("A1", formula="1+2"), cell("A2", 5))}).to_bytes()
THREE = CellRef("Sheet1", 1, 1)


def checked(
    gold: bytes,
    output: bytes,
    *,
    gold_computed: dict[CellRef, CellValue] | None = None,
    output_computed: dict[CellRef, CellValue] | None = None,
    refused: dict[CellRef, str] | None = None,
    profile: str = "standard",
) -> Comparison:
    gold_book, output_book = open_workbook(gold), open_workbook(output)
    plan = prepare(range_spec("A1:A2"), gold=gold_book, output=output_book)
    return check(
        plan,
        gold_book,
        output_book,
        profile=get_profile(profile),
        gold_computed=ComputedValues(values=gold_computed or {}),
        output_computed=ComputedValues(values=output_computed or {}, not_calculated=refused or {}),
    )


def test_a_formula_without_a_value_is_never_a_silent_blank() -> None:
    comparison = checked(simple({"A1": 3, "A2": 5}), UNCACHED)
    (difference,) = comparison.differences
    assert difference.kind is Kind.NOT_CALCULATED
    assert (difference.expected, difference.actual_formula) == (3, "=1+2")
    assert "nothing computed it" in difference.detail
    assert kinds(checked(simple({"A2": 5}), UNCACHED)) == {"A1": Kind.NOT_CALCULATED}


def test_computed_values_take_the_place_of_those_in_the_file() -> None:
    assert checked(simple({"A1": 3, "A2": 5}), UNCACHED, output_computed={THREE: 3}).equal
    wrong = checked(simple({"A1": 3, "A2": 5}), UNCACHED, output_computed={THREE: 4})
    assert kinds(wrong) == {"A1": Kind.WRONG_VALUE}
    assert wrong.differences[0].actual == 4
    cached = Book({"Sheet1": sheet_data(cell("A1", 99, formula="1+2"), cell("A2", 5))}).to_bytes()
    assert checked(simple({"A1": 3, "A2": 5}), cached, output_computed={THREE: 3}).equal


def test_computed_values_may_stand_where_no_cell_is_stored() -> None:
    spilled = CellRef("Sheet1", 2, 1)
    gold = simple({"A1": 3, "A2": 5})
    assert checked(gold, simple({"A1": 3}), output_computed={spilled: 5}).equal


def test_what_no_engine_could_compute_is_reported_with_its_reason() -> None:
    cached = Book({"Sheet1": sheet_data(cell("A1", 3, formula="F()"), cell("A2", 5))}).to_bytes()
    comparison = checked(simple({"A1": 3, "A2": 5}), cached, refused={THREE: "unknown function"})
    assert comparison.difference_counts == {Kind.NOT_CALCULATED: 1}
    assert comparison.differences[0].detail == "unknown function"


def test_the_same_formula_without_a_value_on_both_sides_agrees() -> None:
    assert checked(UNCACHED, UNCACHED).equal
    other = Book({"Sheet1": sheet_data(cell("A1", formula="2+2"), cell("A2", 5))}).to_bytes()
    assert kinds(checked(UNCACHED, other)) == {"A1": Kind.NOT_CALCULATED}


def test_a_gold_may_be_computed() -> None:
    comparison = checked(UNCACHED, simple({"A1": 3, "A2": 5}), gold_computed={THREE: 3})
    assert comparison.equal
    assert "gold: 1 formula cells were computed" in comparison.notes


def test_official_takes_formulas_without_values_for_blank() -> None:
    assert checked(simple({"A2": 5}), UNCACHED, profile="official").equal
    comparison = checked(simple({"A1": 3, "A2": 5}), UNCACHED, profile="official")
    assert kinds(comparison) == {"A1": Kind.NOT_CALCULATED}
    computed = checked(
        simple({"A1": 3, "A2": 5}), UNCACHED, profile="official", output_computed={THREE: 3}
    )
    assert computed.equal


def test_ssb2_lets_formulas_decide_where_an_error_is_shown() -> None:
    def shows(formula: str | None, code: str = "#DIV/0!") -> bytes:
        return Book({"Sheet1": sheet_data(cell("A1", code, formula=formula, kind="e"))}).to_bytes()

    gold = shows("A9/$B$9")
    assert compare_files(gold, shows("+a9/B9", "#REF!"), "A1", profile="ssb2").equal
    assert not compare_files(gold, shows("A9/B8"), "A1", profile="ssb2").equal
    assert not compare_files(gold, shows(None), "A1", profile="ssb2").equal
    assert compare_files(shows(None), shows(None), "A1", profile="ssb2").equal


# -- options --------------------------------------------------------------------------------------


def equal(gold: bytes, output: bytes, position: str = "A1:B4", **options: object) -> bool:
    return compare_files(gold, output, position, options=options).equal


def test_tolerance_case_and_white_space() -> None:
    gold = simple({"A1": 1.0, "A2": "Total  of\nall"})
    output = simple({"A1": 1.04, "A2": " total of all"})
    assert not equal(gold, output)
    assert equal(gold, output, tolerance=0.05, ignore_case=True, ignore_whitespace=True)
    assert not equal(gold, output, tolerance=0.03, ignore_case=True, ignore_whitespace=True)
    assert equal(gold, output, relative_tolerance=0.05, ignore_case=True, ignore_whitespace=True)


def test_ignored_ranges_and_extra_values() -> None:
    gold, output = simple({"A1": 1, "B1": 2}), simple({"A1": 1, "B1": 3, "B2": 4})
    assert equal(gold, output, ignore=["B1:B2"])
    assert equal(gold, output, ignore=["B1", "'Sheet1'!B2"])
    assert equal(gold, output, ignore="B:B")
    assert not equal(gold, output, ignore=["'Other'!B1:B2"])
    assert not equal(gold, output, ignore_extra=True)
    assert equal(gold, simple({"A1": 1, "B1": 2, "A2": 9}), ignore_extra=True)


ROWS = {"A1": "x", "B1": 1, "A2": "y", "B2": 2, "A3": "z", "B3": 3}


def test_unordered_rows() -> None:
    gold = simple(ROWS)
    shuffled = simple({"A1": "z", "B1": 3, "A2": "x", "B2": 1.001, "A4": "y", "B4": 2})
    assert not equal(gold, shuffled)
    assert equal(gold, shuffled, unordered_rows=True)
    assert not equal(gold, simple(ROWS | {"B3": 1}), unordered_rows=True)
    assert not equal(gold, simple({**ROWS, "A4": "x", "B4": 1}), unordered_rows=True)


def test_a_moved_row_is_named_where_it_was_found() -> None:
    gold = simple(ROWS)
    output = simple({"A1": "y", "B1": 2, "A2": "x", "B2": 1, "A3": "z", "B3": 4})
    comparison = compare_files(gold, output, "A1:B3", options={"unordered_rows": True})
    assert kinds(comparison) == {"B3": Kind.WRONG_VALUE}
    output = simple({"A1": "y", "B1": 2, "A2": "z", "B2": 4, "A3": "x", "B3": 1})
    comparison = compare_files(gold, output, "A1:B3", options={"unordered_rows": True})
    (difference,) = comparison.differences
    assert (difference.cell, difference.detail) == ("B3", "the output has it in B2")


def test_untouched_cells() -> None:
    before = Book(
        {
            "Sheet1": sheet_data(cell("A1", 1), cell("B1", 7, formula="A1+6"), cell("C1", "old")),
            "Notes": sheet_data(cell("A1", "keep")),
        }
    )
    gold = simple({"A1": 2})

    def touched(output: Book) -> Comparison:
        return compare_files(
            gold, output.to_bytes(), "A1", before=before.to_bytes(), options={"untouched": True}
        )

    same = {"Notes": before.sheets["Notes"]}
    kept = sheet_data(cell("A1", 2), cell("B1", formula="A1+6"), cell("C1", "old"))
    assert touched(Book({"Sheet1": kept, **same})).equal
    changed = sheet_data(cell("A1", 2), cell("B1", 7), cell("C1", "new"), cell("D9", 1))
    comparison = touched(Book({"Sheet1": changed, **same}))
    assert not comparison.equal
    assert (comparison.differing_cells, comparison.touched_cells) == (0, 3)
    assert kinds(comparison) == {
        "B1": Kind.TOUCHED,
        "C1": Kind.TOUCHED,
        "D9": Kind.TOUCHED,
    }
    gone = touched(Book({"Sheet1": kept}))
    assert gone.touched_cells == 1
    assert gone.differences[0].detail == "the sheet 'Notes' is gone"


def test_a_shared_formula_elsewhere_is_untouched_after_the_range_was_read() -> None:
    """The grader reads the formulas of the range before the rest of the sheet is read."""

    def column(letter: str, index: int, text: str) -> list[str]:
        master = f'<f t="shared" ref="{letter}1:{letter}3" si="{index}">{text}</f>'
        rest = f'<f t="shared" si="{index}"/>'
        return [
            f'<c r="{letter}{row}">{master if row == 1 else rest}<v>2.6104</v></c>'
            for row in (1, 2, 3)
        ]

    columns = [column("B", 0, "A1"), column("C", 1, "A1*2")]
    rows = [each for row in zip(*columns, strict=True) for each in row]
    data = Book({"Sheet1": sheet_data(*rows)}).to_bytes()
    gold, output, before = open_workbook(data), open_workbook(data), open_workbook(data)
    spec = range_spec("B1:B3", options={"untouched": True})
    plan = prepare(spec, gold=gold, output=output)
    for each in plan.output_ranges:
        assert each is not None
        assert [found.formula for found in output.formula_cells(each)] == ["=A1", "=A2", "=A3"]
    comparison = check(plan, gold, output, profile=get_profile("standard"), before=before)
    assert (comparison.touched_cells, comparison.differences) == (0, ())


def test_untouched_without_the_input_says_so() -> None:
    comparison = compare_files(
        simple({"A1": 1}), simple({"A1": 1}), "A1", options={"untouched": True}
    )
    assert "requires the input" in comparison.notes[-1]
    assert comparison.touched_cells is None


def test_groups_tell_cells_to_change_from_cells_to_keep() -> None:
    before = simple({"A1": 1, "A2": 2, "A3": 3})
    gold = simple({"A1": 1, "A2": 20, "A3": 30})
    output = simple({"A1": 9, "A2": 20, "A3": 3})
    comparison = compare_files(gold, output, "A1:A4", before=before)
    assert {each.name: (each.cells, each.differing_cells) for each in comparison.groups} == {
        "modification": (2, 1),
        "regression": (2, 1),
    }
    lost = compare_files(gold, simple({}, sheet="X"), "'Sheet1'!A1:A4", before=before)
    assert [each.differing_cells for each in lost.groups] == [2, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerence": 1}, "no option 'tolerence'"),
        ({"tolerance": -1}, "tolerance: expected a number"),
        ({"tolerance": True}, "tolerance: expected a number"),
        ({"tolerance": float("nan")}, "tolerance: expected a number"),
        ({"ignore_case": "yes"}, "ignore_case: expected true or false"),
        ({"ignore": 5}, "ignore: expected a string"),
        ({"style": [1]}, "style: expected a string"),
        ({"style": ["colour"]}, "no style attribute 'colour'"),
    ],
)
def test_faulty_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        compare_files(simple({"A1": 1}), simple({"A1": 1}), "A1", options=options)


def test_an_unknown_checker_is_named() -> None:
    with pytest.raises(UsageError, match="no checker 'shapes'"):
        checker_of(CheckerSpec("shapes"))


# -- preparing ------------------------------------------------------------------------------------


def test_a_plan_on_the_gold_alone() -> None:
    book = open_workbook(simple({"A1": 1, "B3": 2}))
    plan = prepare(range_spec("A:B"), gold=book, output=None)
    assert [each.size for each in plan.gold_ranges] == [6]
    assert plan.output_ranges == ()


def test_a_position_on_no_sheet_of_the_gold() -> None:
    blank = sheet_data()
    two = Book({"Sheet1": blank, "Sheet2": blank}).to_bytes()
    with pytest.raises(PositionError, match="'Sheet9'"):
        compare_files(two, two, "'Sheet9'!A1")


def test_the_only_sheet_of_the_gold_is_the_one_that_is_meant() -> None:
    gold, other = simple({"A1": 1}, sheet="Data"), simple({"A1": 2}, sheet="Data")
    comparison = compare_files(gold, gold, "'Sheet9'!A1")
    assert (comparison.equal, comparison.cells, comparison.official_equal) == (True, 1, False)
    assert "the only one, 'Data', was used instead" in comparison.notes[0]
    assert not compare_files(gold, other, "'Sheet9'!A1").equal


def test_an_output_whose_cells_cannot_be_read_fails_while_preparing() -> None:
    gold = open_workbook(simple({"A1": 1}))
    broken = open_workbook(Book({"Sheet1": "<sheetData><row r='1'>"}).to_bytes())
    with pytest.raises(WorkbookError):
        prepare(range_spec("A1"), gold=gold, output=broken)
