"""The rules of SpreadsheetBench 2: as published (``ssb2-official``) and repaired (``ssb2``)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import pytest

from judge.compare.cells.comparison import CellGroup, Comparison, DifferenceClass, GroupShares
from judge.compare.cells.computing import NoEngines, compare_files
from judge.compare.cells.range_check import judge_groups
from judge.compare.published.spreadsheetbench import ScriptError
from judge.compare.published.spreadsheetbench2 import (
    ArrayText,
    TableFormula,
    Written,
    formulas_agree,
    script_colour,
    script_ranges,
    script_sheet,
    shows_error,
    values_agree,
)
from judge.core.submission import Origin
from judge.errors import UsageError, WorkbookError
from judge.workbook.budget import ReadLimits
from judge.workbook.cell import CellRange, CellRef, CellValue, ComputedValues, ErrorValue
from judge.workbook.reader import Workbook
from tests.unit.compare.cells.packages import MAIN, Book, cell, sheet_data, simple

DAY = dt.datetime(2024, 3, 15)  # noqa: DTZ001


def compare(
    before: bytes, gold: bytes, output: bytes, at: str, profile: str, **options: object
) -> Comparison:
    """Returns the comparison by groups of cells."""
    return compare_files(
        gold, output, at, profile=profile, before=before, options={"accept": "groups", **options}
    )


def both(
    before: bytes, gold: bytes, output: bytes, at: str, **options: object
) -> tuple[bool, bool]:
    """Returns whether the published functions accept an output, and whether ``ssb2`` does."""
    mended = compare(before, gold, output, at, "ssb2", **options)
    published = compare(before, gold, output, at, "ssb2-official", **options)
    assert mended.official_equal is published.equal
    return published.equal, mended.equal


def counts(comparison: Comparison) -> dict[str, tuple[int, int]]:
    return {each.name: (each.cells, each.differing_cells) for each in comparison.groups}


# -- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (2023, 2024, True),
        (-100, 100, False),
        (10**400, 10**400, True),
        (10**400, 1, False),
        (0, -0.01, True),
        (False, None, True),
        (None, "", True),
        ("", 0, False),
        ("#N/A", ErrorValue("#DIV/0!"), True),
        (" nm ", "Not Available", True),
        ("-", 0, False),
        ("nan", "nan", False),
        ("1_000", 1000, True),
        ("5.004", 5, True),
        (DAY, DAY + dt.timedelta(400), True),
        (DAY, DAY + dt.timedelta(500), False),
        (DAY.date(), DAY, False),
        (dt.timedelta(hours=30), dt.timedelta(hours=30), True),
        (dt.timedelta(0), 0, False),
        ("=$A$1", "=a1", True),
        ("=+A1", "=A1", False),
        (ArrayText("=A1"), ArrayText("=A1"), True),
        (ArrayText("=A1"), ArrayText("=a1"), False),
        (ArrayText("=A1"), "=A1", False),
        (TableFormula(), TableFormula(), False),
    ],
)
def test_values_of_the_published_function(one: Written, other: Written, agree: bool) -> None:
    assert values_agree(one, other) is agree
    assert values_agree(other, one) is agree


def test_a_number_that_no_float_holds_makes_the_script_fall_over() -> None:
    with pytest.raises(ScriptError, match="too large"):
        values_agree(10**400, "text")
    with pytest.raises(ScriptError, match="too large"):
        values_agree(10**400, 0.5)


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("=+A1", "=$a$1", True),
        ("=A1", "=A2", False),
        (None, "", True),
        ("=A1", None, False),
        (100, 100.9, True),
        (ArrayText("=A1"), "=A1", False),
    ],
)
def test_formulas_of_the_published_function(one: Written, other: Written, agree: bool) -> None:
    assert formulas_agree(one, other) is agree


@pytest.mark.parametrize(
    ("value", "shows"),
    [("#REF!", True), (ErrorValue("#NUM!"), True), (ErrorValue("#SPILL!"), False), (1, False)],
)
def test_errors_are_the_seven_old_ones(value: CellValue, shows: bool) -> None:
    assert shows_error(value) is shows


# -- positions and colours ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "parts"),
    [
        ("A1:B2", [(None, "A1:B2")]),
        ("'a, b'!A1, 'c'!B2,", [("a, b", "A1"), ("c", "B2")]),
        ("\xa0'Sheet1'!C2:C3", [("Sheet1", "C2:C3")]),
        ("'CS!'B1:B8,'S!'B1:B8", [("CS", "B1:B8"), ("S", "B1:B8")]),
    ],
)
def test_positions_as_the_script_reads_them(
    position: str, parts: list[tuple[str | None, str]]
) -> None:
    assert script_ranges(position) == parts


def test_an_unpaired_quote_joins_ranges() -> None:
    with pytest.raises(ScriptError, match="more than one bang"):
        script_ranges("Anna'!A1,'Nick'!B2,'Luis'!C3")


def test_sheets_are_found_without_case_and_outer_spaces() -> None:
    assert script_sheet("model", ["Model ", "model"]) == "model"
    assert script_sheet(" MODEL", ["Other", "Model "]) == "Model "
    assert script_sheet("Mod", ["Model"]) is None


@pytest.mark.parametrize(
    ("attributes", "colour"),
    [
        (None, "000000"),
        ({"rgb": "80FF0000"}, "FF0000"),
        ({"rgb": "FFff0000"}, "ff0000"),
        ({"theme": "4"}, "4472C4"),
        ({"theme": "4", "tint": "0.5"}, "A1B8E1"),
        ({"theme": "4", "tint": "-0.5"}, "223962"),
        ({"theme": "10"}, "000000"),
        ({"indexed": "2"}, "000000"),
        ({"auto": "1", "rgb": "FFFF0000"}, "000000"),
        ({"theme": "1", "rgb": "FFFF0000"}, "000000"),
    ],
)
def test_colours_as_the_script_sees_them(attributes: dict[str, str] | None, colour: str) -> None:
    assert script_colour(attributes) == colour


# -- the rule of a task ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "keep", "published", "exact", "shares"),
    [
        ((4, 0), (1000, 2), True, True, GroupShares(1.0, 1.0)),
        ((4, 0), (1000, 3), False, False, GroupShares(1.0, 0.997)),
        ((4, 1), (4, 0), False, False, GroupShares(0.75, 1.0)),
        # Rounded to four decimals, one wrong cell of 20,001 is none; so are 2.04 of 1,000.
        ((20_001, 1), (4, 0), True, False, GroupShares(1.0, 1.0)),
        ((4, 0), (100_000, 204), True, False, GroupShares(1.0, 1.0)),
        # A group without cells has a share of 0 as published.
        ((0, 0), (4, 0), False, True, GroupShares(0.0, 1.0)),
        ((4, 0), (0, 0), False, True, GroupShares(1.0, 0.0)),
    ],
)
def test_the_rule_of_a_task(
    change: tuple[int, int],
    keep: tuple[int, int],
    published: bool,
    exact: bool,
    shares: GroupShares,
) -> None:
    groups = (CellGroup("modification", *change), CellGroup("regression", *keep))
    found = judge_groups(groups, published=True)
    assert (found.accepted, found.shares) == (published, shares)
    assert any("accepts no output" in note for note in found.notes) is (0 in {change[0], keep[0]})
    assert judge_groups(groups, published=False).accepted is exact


def test_few_wrong_cells_to_keep_are_allowed_and_noted() -> None:
    cells = {f"A{row}": row for row in range(1, 1001)}
    gold = simple({**cells, "A1000": "new"})
    output = simple({**cells, "A1000": "new", "A5": "lost"})
    for profile in ("ssb2", "ssb2-official"):
        comparison = compare(simple(cells), gold, output, "A1:A1000", profile)
        assert comparison.equal
        assert comparison.shares is not None
        assert "1 of 1,000 cells differ, which the rule of the task allows" in comparison.notes
        assert counts(comparison) == {"modification": (1, 0), "regression": (999, 1)}
    assert not compare_files(gold, output, "A1:A1000", profile="ssb2").equal


# -- where the published functions are at fault ---------------------------------------------------


def test_a_gold_without_a_cell_to_change() -> None:
    same = simple({"A1": 1})
    assert both(same, same, same, "A1") == (False, True)


def test_a_date_a_year_off_and_years_that_are_no_dates() -> None:
    def book(serial: int) -> bytes:
        return Book(
            {"Sheet1": sheet_data(cell("A1", serial, style=1), cell("B1", "kept"))}
        ).to_bytes()

    before = simple({"B1": "kept"})
    assert both(before, book(45366), book(45366 + 365), "A1:B1") == (True, False)
    # A date is the same as its number, and no other.
    assert both(before, book(45366), simple({"A1": 45366, "B1": "kept"}), "A1:B1") == (True, True)
    assert both(before, book(45366), simple({"A1": 45400, "B1": "kept"}), "A1:B1") == (True, False)


def test_a_sheet_that_the_input_lacks() -> None:
    before = simple({"A1": 1}, sheet="Data")
    gold = Book({"Data": sheet_data(cell("A1", 1)), "New": sheet_data(cell("A1", 7))}).to_bytes()
    wrong = Book({"Data": sheet_data(cell("A1", 1)), "New": sheet_data(cell("A1", 8))}).to_bytes()
    published = compare_files(gold, wrong, "'New'!A1:A2", profile="ssb2-official", before=before)
    assert published.equal  # no cell counts
    assert not compare_files(gold, wrong, "'New'!A1:A2", profile="ssb2", before=before).equal
    mended = compare(before, gold, gold, "'New'!A1:A2", "ssb2")
    assert mended.equal
    assert counts(mended) == {"modification": (1, 0), "regression": (1, 0)}


def test_an_output_that_lacks_a_sheet_has_all_its_cells_wrong() -> None:
    before, gold = simple({"A1": 1}), simple({"A1": 1, "B1": 2})
    other = simple({"A1": 1, "B1": 2}, sheet="Other")
    for profile in ("ssb2", "ssb2-official"):
        comparison = compare(before, gold, other, "A1:B2", profile)
        assert counts(comparison) == {"modification": (1, 1), "regression": (3, 3)}


def test_errors_are_compared_by_their_formulas_in_both_groups() -> None:
    def shows(formula: str) -> bytes:
        return Book(
            {"Sheet1": sheet_data(cell("A1", "#DIV/0!", formula=formula, kind="e"), cell("B1", 1))}
        ).to_bytes()

    before, gold = shows("C1/0"), shows("C2/0")
    for profile in ("ssb2", "ssb2-official"):
        right = compare(before, gold, shows("+$C$2/0"), "A1:B1", profile)
        assert right.equal
        assert counts(right) == {"modification": (1, 0), "regression": (1, 0)}
        assert not compare(before, gold, before, "A1:B1", profile).equal


def test_a_colour_is_part_of_what_is_to_be_changed() -> None:
    def book(style: int) -> bytes:
        return Book({"Sheet1": sheet_data(cell("A1", 1, style=style), cell("B1", 2))}).to_bytes()

    black, red = book(0), book(9)
    for profile in ("ssb2", "ssb2-official"):
        right = compare(black, red, red, "A1:B2", profile, style=["font_color"])
        assert right.equal
        assert counts(right) == {"modification": (1, 0), "regression": (3, 0)}
        wrong = compare(black, red, black, "A1:B2", profile, style=["font_color"])
        assert wrong.difference_counts == {DifferenceClass.STYLE: 1}


def test_colours_of_cells_that_are_blank_or_merged_count_as_published() -> None:
    blank = Book({"Sheet1": sheet_data(cell("A1", 1), cell("B1", style=9))}).to_bytes()
    merged = Book(
        {
            "Sheet1": sheet_data(cell("A1", 1), cell("B1", style=9))
            + '<mergeCells count="1"><mergeCell ref="A1:B1"/></mergeCells>'
        }
    ).to_bytes()
    gold = simple({"A1": 1})
    shares = [
        compare(simple({}), gold, output, "A1:B1", "ssb2-official", style=["font_color"]).shares
        for output in (blank, merged)
    ]
    assert shares == [GroupShares(1.0, 0.0), GroupShares(1.0, 1.0)]


def test_a_first_font_of_another_colour_is_that_of_all_cells_that_are_not_stored() -> None:
    red = f'<styleSheet xmlns="{MAIN}"><fonts><font><color rgb="FFFF0000"/></font></fonts>'
    red += "<cellXfs><xf/></cellXfs></styleSheet>"
    output = Book({"Sheet1": sheet_data(cell("A1", 1))}, styles=red).to_bytes()
    options = {"style": ["font_color"]}
    found = compare(simple({}), simple({"A1": 1}), output, "A1:B2", "ssb2-official", **options)
    assert counts(found) == {"modification": (1, 1), "regression": (3, 3)}
    wide = compare(
        simple({}), simple({"A1": 1}), output, "A1:XFD1048576", "ssb2-official", **options
    )
    assert not wide.equal
    assert "more than 4,000,000 cells" in wide.notes[0]


def test_formulas_instead_of_values() -> None:
    def book(formula: str | None, value: object = 3) -> bytes:
        return Book(
            {"Sheet1": sheet_data(cell("A1", value, formula=formula), cell("B1", 1))}
        ).to_bytes()

    before, gold = book("SUM(B1:B2)"), book("SUM(B1:B3)")
    written = book("+sum($B$1:B3)", None)
    for profile in ("ssb2", "ssb2-official"):
        assert compare(before, gold, written, "A1:B1", profile, formulas=True).equal
        constant = compare(before, gold, book(None), "A1:B1", profile, formulas=True)
        assert constant.difference_counts == {DifferenceClass.WRONG_FORMULA: 1}
        assert counts(constant) == {"modification": (1, 1), "regression": (1, 0)}
    # Text that reads like the formula is no formula, except to the published functions.
    assert both(before, gold, book(None, "=SUM(B1:B3)"), "A1:B1", formulas=True) == (True, False)


def test_array_formulas_and_data_tables_as_published() -> None:
    def book(attributes: str, text: str = "B1:B2") -> bytes:
        formula = f'<c r="A1"><f {attributes}>{text}</f><v>1</v></c>'
        return Book({"Sheet1": sheet_data(formula, cell("B1", 1))}).to_bytes()

    array, plain = book('t="array" ref="A1"'), book("")
    table = book('t="dataTable" ref="A1" dt2D="1" r1="B1" r2="B2"', "")
    before = simple({"B1": 1})

    def published(gold: bytes, output: bytes) -> bool:
        return compare(before, gold, output, "A1:B1", "ssb2-official", formulas=True).equal

    assert published(array, array)
    assert not published(array, plain)
    assert not published(table, table)


def test_where_the_script_falls_over_nothing_is_accepted() -> None:
    gold = Book({name: sheet_data(cell("A1", 1)) for name in ("Anna", "Nick", "Luis")}).to_bytes()
    found = compare(gold, gold, gold, "Anna'!A1,'Nick'!A1,'Luis'!A1", "ssb2-official")
    assert not found.equal
    assert found.notes[0].startswith("the published script crashes")
    assert found.shares == GroupShares(0.0, 0.0)


class _Computes(NoEngines):
    """An engine that gives every formula the value 5."""

    def fill(
        self,
        workbook: Workbook,
        ranges: Sequence[CellRange],
        *,
        origin: Origin,
        like: Workbook | None = None,
    ) -> ComputedValues:
        del origin, like
        cells = [(each.sheet, found) for each in ranges for found in workbook.formula_cells(each)]
        return ComputedValues(
            {CellRef(sheet, found.row, found.column): 5 for sheet, found in cells}
        )


def test_formulas_of_the_input_are_computed_too() -> None:
    before = Book({"Sheet1": sheet_data(cell("A1", formula="B1"), cell("B1", 1))}).to_bytes()
    gold = simple({"A1": 5, "B1": 2})
    found = compare_files(gold, gold, "A1:B1", profile="ssb2", before=before, compute=_Computes())
    assert counts(found) == {"modification": (1, 0), "regression": (1, 0)}
    as_stored = compare_files(gold, gold, "A1:B1", profile="ssb2", before=before)
    assert counts(as_stored)["modification"] == (2, 0)


def test_the_published_functions_read_the_files_as_they_are() -> None:
    before = simple({"A1": 1, "B1": 2})
    gold = simple({"A1": 5, "B1": 2})
    written = Book({"Sheet1": sheet_data(cell("A1", formula="B1+3"), cell("B1", 2))}).to_bytes()

    def said(profile: str, compute: NoEngines) -> Comparison:
        return compare_files(
            gold,
            written,
            "A1:B1",
            profile=profile,
            before=before,
            options={"accept": "groups"},
            compute=compute,
        )

    for compute in (NoEngines(), _Computes()):
        published = said("ssb2-official", compute)
        assert (published.equal, published.official_equal) == (False, False)
        assert counts(published) == {"modification": (1, 1), "regression": (1, 0)}
    # The judge's own rules compute, and say what the functions would have said of the file.
    mended = said("ssb2", _Computes())
    assert (mended.equal, mended.official_equal) == (True, False)


# -- what is asked for ----------------------------------------------------------------------------


def test_the_published_functions_need_the_input() -> None:
    gold = simple({"A1": 1})
    with pytest.raises(UsageError, match="the input workbook") as raised:
        compare_files(gold, gold, "A1", profile="ssb2-official")
    assert raised.value.hint == "Add --input FILE."
    without = compare_files(gold, gold, "A1", profile="ssb2", options={"accept": "groups"})
    assert "every cell has to agree: the rule of the task requires the input" in without.notes


@pytest.mark.parametrize("value", ["share", True, None])
def test_another_way_to_accept_is_refused(value: object) -> None:
    gold = simple({"A1": 1})
    with pytest.raises(UsageError, match="option accept: expected cells or groups"):
        compare_files(gold, gold, "A1", options={"accept": value})


def test_merged_ranges_that_overlap_without_end_are_refused() -> None:
    merges = '<mergeCell ref="A1:B1000"/>' * 60
    blanks = sheet_data(*(cell(f"A{row}", style=9) for row in range(1, 1001)))
    hostile = Book({"Sheet1": f"{blanks}<mergeCells>{merges}</mergeCells>"}).to_bytes()
    with pytest.raises(WorkbookError, match="overlap too often"):
        compare_files(
            simple({"A1": 1}),
            hostile,
            "A1:B1000",
            profile="ssb2-official",
            before=simple({}),
            style=["font_color"],
            limits=ReadLimits(cells=20_000),
        )
