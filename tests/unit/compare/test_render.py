from __future__ import annotations

import datetime as dt
import json

import pytest

from judge.compare.api import compare_workbooks
from judge.compare.cell import CellRange, CellValue, ErrorValue
from judge.compare.comparison import CellGroup, Comparison, Difference, DifferenceClass
from judge.compare.render import (
    comparison_to_json,
    difference_lines,
    first_difference,
    range_name,
    render_text,
    value_to_json,
)
from tests.unit.compare.packages import Book, cell, sheet_data, simple


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
        (dt.timedelta(hours=30), "PT108000S"),
        (dt.timedelta(seconds=-1.5), "-PT1.5S"),
        (float("inf"), "inf"),
    ],
)
def test_values_as_json(value: CellValue, shown: object) -> None:
    assert value_to_json(value) == shown
    json.dumps(shown, allow_nan=False)


def test_a_comparison_as_json() -> None:
    gold = simple({"A1": 1, "A2": 2})
    output = Book({"Sheet1": sheet_data(cell("A1", formula="F()"), cell("A2", "2"))}).to_bytes()
    record = comparison_to_json(compare_workbooks(gold, output, "Sheet1'!A1:A2", profile="strict"))
    assert json.loads(json.dumps(record)) == record
    assert record["equal"] is False
    assert record["ranges"] == ["'Sheet1'!A1:A2"]
    assert record["difference_counts"] == {"not_calculated": 1, "number_as_text": 1}
    assert record["cell_accuracy"] == 0
    assert record["differences"][0]["actual_formula"] == "=F()"
    assert record["notes"] == ['"Sheet1\'!A1:A2" has a closing quote without an opening one']


def test_the_first_difference_in_a_line() -> None:
    gold, output = simple({"A1": 1, "A2": 2}), simple({"A1": 3})
    comparison = compare_workbooks(gold, output, "A1:A2")
    assert first_difference(comparison) == (
        "Sheet1!A1: wrong value: expected 1, found 3 (and 1 more of 2 cells)"
    )
    assert first_difference(compare_workbooks(gold, gold, "A1:A2")) == ""
    alone = compare_workbooks(gold, output, "A2")
    assert first_difference(alone) == "Sheet1!A2: is blank: expected 2, found blank"


def test_where_nothing_was_kept_the_notes_say_why() -> None:
    comparison = compare_workbooks(simple({"A1": 1}), simple({"A1": 1}), "A:A", profile="official")
    assert "falls over" in first_difference(comparison)


def test_differences_as_lines() -> None:
    gold = simple({f"A{row}": row for row in range(1, 9)})
    record = comparison_to_json(compare_workbooks(gold, simple({}), "A1:A8", max_differences=5))
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
        "S!B1: changed: was 5, is blank (outside)",
    ]


def test_differences_as_a_table() -> None:
    long = "x" * 60
    gold = simple({"A1": 1.5, "A2": "a", "A3": f"{long}1", "A4": 4, "B1": "#N/A"})
    cells = [cell("A1", "1.5"), cell("A3", f"{long}2"), cell("A4", formula="G()"), cell("B2", True)]
    output = Book({"Sheet1": sheet_data(*cells)}).to_bytes()
    text = render_text(compare_workbooks(gold, output, "A1:B4", profile="strict"))
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
    text = render_text(compare_workbooks(gold, simple({}), "A1:A8", max_differences=5), limit=3)
    assert "  8 missing" in text
    assert text.endswith("… and 5 more")
    assert "cell" not in render_text(compare_workbooks(gold, gold, "A1:A8")).splitlines()[1:]


def test_long_texts_are_stored_from_where_they_differ() -> None:
    first, second = "x" * 5000 + "abc", "x" * 5000 + "abd"
    result = compare_workbooks(simple({"A1": first}), simple({"A1": second}), "A1")
    (difference,) = comparison_to_json(result)["differences"]
    assert difference["expected"].endswith("xxabc")
    assert difference["actual"].endswith("xxabd")
    assert len(difference["expected"]) < 60


def test_a_blank_answer_range_is_noted() -> None:
    blank = compare_workbooks(simple({"A1": 1}), simple({"A1": 1}), "C1:D9")
    assert "note: nothing stands in the answer range of the gold" in render_text(blank)
    assert blank.equal
    assert not compare_workbooks(simple({"A1": 1}), simple({"A1": 1}), "A1").notes


def test_a_range_is_named_as_a_position() -> None:
    assert range_name(CellRange("S", 1, 1, 1, 1)) == "'S'!A1"
