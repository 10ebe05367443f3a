from __future__ import annotations

import datetime as dt
import json

import pytest

from judge.compare.cells.comparison import CellGroup, Comparison, Difference, DifferenceClass
from judge.compare.cells.computing import compare_files
from judge.compare.cells.render import (
    comparison_to_json,
    difference_lines,
    first_difference,
    range_name,
    render_text,
    value_to_json,
)
from judge.workbook.cell import CellRange, CellValue, ErrorValue
from tests.unit.compare.cells.packages import Book, cell, sheet_data, simple


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (5, 5),
        (True, True),
        ("x", "x"),
        ("x" * 500, "x" * 199 + "…"),
        (ErrorValue("#N/A"), {"error": "#N/A"}),
        (dt.datetime(2024, 2, 29, 12), "2024-02-29T12:00:00"),  # noqa: DTZ001
        (dt.date(2024, 2, 29), "2024-02-29"),
        (dt.time(10, 30), "10:30:00"),
        (dt.timedelta(0), "0:00:00"),
        (dt.timedelta(hours=30), "30:00:00"),
        (dt.timedelta(minutes=5, seconds=7, milliseconds=50), "0:05:07.05"),
        (dt.timedelta(seconds=-1.5), "-0:00:01.5"),
        (float("inf"), "inf"),
    ],
)
def test_values_as_json(value: CellValue, shown: object) -> None:
    assert value_to_json(value) == shown
    json.dumps(shown, allow_nan=False)


def test_a_comparison_as_json() -> None:
    gold = simple({"A1": 1, "A2": 2})
    output = Book({"Sheet1": sheet_data(cell("A1", formula="F()"), cell("A2", "2"))}).to_bytes()
    record = comparison_to_json(compare_files(gold, output, "Sheet1'!A1:A2", profile="strict"))
    assert json.loads(json.dumps(record)) == record
    assert record["equal"] is False
    assert record["ranges"] == ["'Sheet1'!A1:A2"]
    assert record["difference_counts"] == {"not_calculated": 1, "number_as_text": 1}
    assert record["cell_accuracy"] == 0
    assert record["differences"][0]["actual_formula"] == "=F()"
    assert record["notes"] == ['"Sheet1\'!A1:A2" has a closing quote without an opening one']


def test_the_first_difference_in_a_line() -> None:
    gold, output = simple({"A1": 1, "A2": 2}), simple({"A1": 3})
    comparison = compare_files(gold, output, "A1:A2")
    assert first_difference(comparison) == (
        "Sheet1!A1: wrong value: expected 1, found 3 (and 1 more of 2 cells: 1 missing)"
    )
    assert first_difference(compare_files(gold, gold, "A1:A2")) == ""
    alone = compare_files(gold, output, "A2")
    assert first_difference(alone) == "Sheet1!A2: is blank: expected 2, found blank"


def test_where_nothing_was_kept_the_notes_say_why() -> None:
    comparison = compare_files(simple({"A1": 1}), simple({"A1": 1}), "A:A", profile="official")
    assert "script crashes" in first_difference(comparison)


def test_differences_as_lines() -> None:
    gold = simple({f"A{row}": row for row in range(1, 9)})
    record = comparison_to_json(compare_files(gold, simple({}), "A1:A8", max_differences=5))
    assert len(difference_lines(record, 3)) == 4
    assert difference_lines(record, 3)[-1] == "… and 5 more"
    assert difference_lines({}, 3) == []


def comparison(**changes: object) -> Comparison:
    values: dict[str, object] = {
        "equal": False,
        "profile": "standard",
        "ranges": (CellRange("It's", 1, 1, 100, 100),),
        "cells": 10_000,
        "differing_cells": 1,
        "difference_counts": {DifferenceClass.MISSING_SHEET: 1},
        "differences": (Difference(DifferenceClass.MISSING_SHEET, "It's", "", detail="no sheet"),),
    }
    return Comparison(**(values | changes))  # type: ignore[arg-type]


def test_the_text_never_rounds_a_difference_away() -> None:
    text = render_text(comparison())
    assert "9,999 of 10,000 cells agree (99.99 %)" in text
    assert "(99.99 %)" in render_text(comparison(cells=10_000_000))
    assert "in 'It''s'!A1:CV100" in text
    assert "no sheet" in text


def test_the_text_tells_of_notes_groups_and_the_published_script() -> None:
    text = render_text(
        comparison(
            notes=("a note",),
            official_equal=True,
            groups=(CellGroup("modification", 5, 2),),
            ranges=tuple(CellRange(f"S{n}", 1, 1, 1, 1) for n in range(9)),
        )
    )
    assert "note: a note" in text
    assert "note: the published script accepts this" in text
    assert "modification: 3 of 5 cells agree" in text
    assert "5 more" in text


def test_styles_and_touched_cells_in_a_line() -> None:
    styled = Difference(DifferenceClass.STYLE, "S", "A1", 5, 5, detail="fill: expected #FF0000")
    touched = Difference(DifferenceClass.TOUCHED, "S", "B1", 5, None, detail="outside")
    record = comparison_to_json(comparison(differences=(styled, touched), differing_cells=2))
    assert difference_lines(record, 5) == [
        "S!A1: style differs: fill: expected #FF0000",
        "S!B1: erased: was 5 (outside)",
    ]


def touched(**changes: object) -> str:
    """Returns the line about a cell outside the answer range."""
    difference = Difference(DifferenceClass.TOUCHED, "S", "B1", detail="outside", **changes)  # type: ignore[arg-type]
    record = comparison_to_json(comparison(differences=(difference,)))
    return difference_lines(record, 1)[0]


def test_a_cell_outside_the_range_says_what_happened_to_it() -> None:
    formulas = {"expected_formula": "=A1*2", "actual_formula": "=A1*3"}
    assert touched(expected=5, actual=6) == "S!B1: changed: was 5, is 6 (outside)"
    assert touched(expected=5, actual=5, **formulas) == (
        "S!B1: changed: was 5 from =A1*2, is 5 from =A1*3 (outside)"
    )
    assert touched(expected=5, actual=5, expected_formula="=A1") == (
        "S!B1: changed: was 5 from =A1, is 5 (outside)"
    )
    assert touched(expected=5, expected_formula="=A1") == "S!B1: erased: was 5 from =A1 (outside)"
    assert touched(actual="x") == "S!B1: added: is 'x' (outside)"


def test_a_sheet_that_is_gone_is_named_once() -> None:
    gone = Difference(DifferenceClass.TOUCHED, "S", "", detail="the sheet 'S' is gone")
    record = comparison_to_json(comparison(differences=(gone,)))
    assert difference_lines(record, 1)[0] == "the sheet 'S' is gone"


def cause(gold: bytes, output: bytes, position: str, **options: object) -> str:
    return first_difference(compare_files(gold, output, position, **options))  # type: ignore[arg-type]


def test_the_numbers_lead_and_not_their_heading() -> None:
    gold = simple({"A1": "Total"} | {f"A{row}": row for row in range(2, 10)})
    output = simple({"A1": "Sum"} | {f"A{row}": row * 10 for row in range(2, 9)})
    assert cause(gold, output, "A1:A9") == (
        "Sheet1!A2: wrong value: expected 2, found 20 "
        "(and 8 more of 9 cells: 7 wrong value, 1 missing)"
    )
    assert cause(simple({"A1": "x", "A2": 1}), simple({"A1": "y", "A2": 2}), "A1:A2") == (
        "Sheet1!A2: wrong value: expected 1, found 2 (and 1 more of 2 cells)"
    )
    texts = simple({"A1": 1, "A2": "b", "A3": "c"})
    assert "Sheet1!A2" in cause(texts, simple({"A1": 2, "A2": "x", "A3": "y"}), "A1:A3")


def test_a_wrong_value_leads_before_what_nobody_computed() -> None:
    cells = [cell("A1", formula="F()"), cell("A2", formula="F()"), cell("A3", 4)]
    output = Book({"Sheet1": sheet_data(*cells)}).to_bytes()
    told = cause(simple({"A1": 1, "A2": 2, "A3": 3}), output, "A1:A3")
    assert told == (
        "Sheet1!A3: wrong value: expected 3, found 4 (and 2 more of 3 cells: 2 not calculated)"
    )


def test_a_formula_without_a_value_is_not_called_blank() -> None:
    output = Book({"Sheet1": sheet_data(cell("A1", formula="F(1)"))}).to_bytes()
    assert cause(simple({"A1": 1}), output, "A1") == (
        "Sheet1!A1: not calculated: expected 1, found =F(1) without a value "
        "(the formula has no value, and nothing computed it)"
    )


def test_a_lost_sheet_leads() -> None:
    gold = Book({"A": sheet_data(cell("A1", 1)), "B": sheet_data(cell("A1", 1))}).to_bytes()
    output = Book({"A": sheet_data(cell("A1", 2))}).to_bytes()
    assert cause(gold, output, "'A'!A1:A9,'B'!A1:A2") == (
        "the output has no sheet 'B'; it has 'A' (and 3 of 11 cells differ)"
    )


def test_changes_outside_the_range_are_counted_apart() -> None:
    before, gold = simple({"A1": 1, "B1": 1, "B2": 2, "B3": 3}), simple({"A1": 2})
    options = {"before": before, "options": {"untouched": True}}
    kept = simple({"A1": 2, "B1": 9, "B3": 9})
    assert cause(gold, kept, "A1", **options) == (
        "Sheet1!B1: changed: was 1, is 9 (outside the answer range) "
        "(and 2 other cells outside the answer range changed)"
    )
    wrong = simple({"A1": 3, "B1": 9, "B3": 9})
    assert cause(gold, wrong, "A1", **options) == (
        "Sheet1!A1: wrong value: expected 2, found 3 (and 3 cells outside the answer range changed)"
    )


def test_a_number_that_is_wrong_is_not_of_a_wrong_type() -> None:
    gold, output = simple({"A1": "115"}), simple({"A1": 15})
    assert cause(gold, output, "A1") == "Sheet1!A1: wrong value: expected '115', found 15"
    assert cause(gold, output, "A1", profile="official") == (
        "Sheet1!A1: wrong value: expected '115', found 15"
    )
    assert "wrong type" in cause(gold, output, "A1", profile="strict")


def test_dates_times_and_durations_are_reported_as_such() -> None:
    def dated(number: str, style: int) -> bytes:
        inner = sheet_data(f'<c r="A1" s="{style}"><v>{number}</v></c>')
        return Book({"Sheet1": inner}).to_bytes()

    assert cause(dated("0", 3), simple({"A1": 0.25}), "A1") == (
        "Sheet1!A1: wrong value: expected 0:00:00, found 0.25 (the gold stores 0)"
    )
    assert cause(dated("45351", 1), simple({"A1": 45352}), "A1") == (
        "Sheet1!A1: wrong value: expected 2024-02-29, found 45352 (the gold stores 45351)"
    )
    assert cause(dated("45351.5", 1), simple({"A1": "2024-02-29"}), "A1") == (
        "Sheet1!A1: wrong type: expected 2024-02-29 12:00:00, found '2024-02-29'"
    )
    record = comparison_to_json(compare_files(dated("0.5", 2), dated("1.5", 3), "A1"))
    (difference,) = record["differences"]
    assert (difference["expected"], difference["actual"]) == (
        {"date": "12:00:00"},
        {"date": "36:00:00"},
    )


@pytest.mark.parametrize("profile", ["standard", "official", "strict", "ssb2"])
def test_an_error_value_of_the_gold_is_reported(profile: str) -> None:
    gold = Book({"Sheet1": sheet_data(cell("A1", "#N/A", kind="e"))}).to_bytes()
    assert cause(gold, simple({"A1": 5}), "A1", profile=profile) == (
        "Sheet1!A1: error value: expected #N/A, found 5 (the gold itself holds an error value)"
    )


def test_the_formulas_of_both_sides_are_reported() -> None:
    gold = Book({"Sheet1": sheet_data(cell("A1", 6, formula="SUM(B1:B3)"))}).to_bytes()
    output = Book({"Sheet1": sheet_data(cell("A1", 3, formula="SUM(B1:B2)"))}).to_bytes()
    assert cause(gold, output, "A1") == (
        "Sheet1!A1: wrong value: expected 6 from =SUM(B1:B3), found 3 from =SUM(B1:B2)"
    )
    table = render_text(compare_files(gold, output, "A1"))
    assert "from =SUM(B1:B2); gold from =SUM(B1:B3)" in table


def test_an_erased_cell_is_distinguished_from_one_never_written() -> None:
    gold = simple({"A1": 7, "A2": 8})
    before = simple({"A1": 5})
    comparison = compare_files(gold, simple({}), "A1:A2", before=before)
    lines = difference_lines(comparison_to_json(comparison), 5)
    assert lines == [
        "Sheet1!A1: erased: expected 7, found blank (the input holds 5)",
        "Sheet1!A2: is blank: expected 8, found blank",
    ]
    assert "erased, the input holds 5" in render_text(comparison)


def test_differences_as_a_table() -> None:
    long = "x" * 60
    gold = simple({"A1": 1.5, "A2": "a", "A3": f"{long}1", "A4": 4, "B1": "#N/A"})
    cells = [cell("A1", "1.5"), cell("A3", f"{long}2"), cell("A4", formula="G()"), cell("B2", True)]
    output = Book({"Sheet1": sheet_data(*cells)}).to_bytes()
    text = render_text(compare_files(gold, output, "A1:B4", profile="strict"))
    assert text.splitlines()[1:] == [
        "  1 number as text, 2 missing, 1 extra, 1 wrong value, 1 not calculated",
        "  cell       expected      found",
        "  Sheet1!A1  1.5           '1.5'                    number as text",
        "  Sheet1!B1  '#N/A'        blank",
        "  Sheet1!A2  'a'           blank",
        "  Sheet1!B2  blank         TRUE",
        "  Sheet1!A3  '…xxxxxxxx1'  '…xxxxxxxx2'",
        (
            "  Sheet1!A4  4             formula without a value  the formula has no value, and "
            "nothing computed it; from =G()"
        ),
    ]


def test_a_table_is_cut_but_counts_everything() -> None:
    gold = simple({f"A{row}": row for row in range(1, 9)})
    text = render_text(compare_files(gold, simple({}), "A1:A8", max_differences=5), limit=3)
    assert "  8 missing" in text
    assert text.endswith("… and 5 more")
    assert "cell" not in render_text(compare_files(gold, gold, "A1:A8")).splitlines()[1:]


def test_long_texts_are_stored_from_where_they_differ() -> None:
    first, second = "x" * 5000 + "abc", "x" * 5000 + "abd"
    result = compare_files(simple({"A1": first}), simple({"A1": second}), "A1")
    (difference,) = comparison_to_json(result)["differences"]
    expected, actual = str(difference["expected"]), str(difference["actual"])
    assert expected.endswith("xxabc")
    assert actual.endswith("xxabd")
    assert len(expected) < 60


def test_a_blank_answer_range_is_noted() -> None:
    blank = compare_files(simple({"A1": 1}), simple({"A1": 1}), "C1:D9")
    assert "note: the answer range of the gold is blank" in render_text(blank)
    assert blank.equal
    assert not compare_files(simple({"A1": 1}), simple({"A1": 1}), "A1").notes


def test_a_range_is_named_as_a_position() -> None:
    assert range_name(CellRange("S", 1, 1, 1, 1)) == "'S'!A1"
