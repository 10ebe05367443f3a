# ruff: noqa: DTZ001 - workbooks know no time zones
from __future__ import annotations

from datetime import datetime

import pytest

from judge.inference.choices import CONTENT_FORMS
from judge.inference.content import INFO, ContentLimits, layout, render_content
from judge.workbook.cell import ErrorValue
from judge.workbook.preview import SheetPreview

# The texts below are what pandas 2.3.3 prints for the same cells with
# read_excel(...).head(5).to_string().
PANDAS = [
    (
        [["Name", "Age", "Pay"], ["Ann", 31, 1.5], ["Bob", 4, 10]],
        "  Name  Age   Pay\n0  Ann   31   1.5\n1  Bob    4  10.0",
    ),
    (
        [["A", None, "A"], [1, None, None], [None, "x", 2]],
        "     A Unnamed: 1  A.1\n0  1.0        NaN  NaN\n1  NaN          x  2.0",
    ),
    (
        [["d", "t"], [datetime(2024, 1, 2), datetime(2024, 1, 2, 3)], [None, datetime(2024, 1, 3)]],
        (
            "           d                   t\n0 2024-01-02 2024-01-02 03:00:00\n"
            "1        NaT 2024-01-03 00:00:00"
        ),
    ),
    (
        [["a", "b"], ["x\ny", True], [1.25, False]],
        "      a      b\n0  x\\ny   True\n1  1.25  False",
    ),
    (
        [["n", "m"], ["007", ErrorValue("#DIV/0!")], ["12", "N/A"]],
        "    n   m\n0   7 NaN\n1  12 NaN",
    ),
    ([["big"], [12345678.25], [0.5]], "           big\n0  12345678.25\n1         0.50"),
    ([["huge"], [123456789.25], [0.512345]], "           huge\n0  1.234568e+08\n1  5.123450e-01"),
    ([["small"], [1e-07], [2]], "          small\n0  1.000000e-07\n1  2.000000e+00"),
    ([["only", "labels"]], "Empty DataFrame\nColumns: [only, labels]\nIndex: []"),
    ([], "Empty DataFrame\nColumns: []\nIndex: []"),
]


@pytest.mark.parametrize(("rows", "text"), PANDAS, ids=range(len(PANDAS)))
def test_pandas_form(rows: list[list[object]], text: str) -> None:
    assert layout(rows) == text  # type: ignore[arg-type]


def preview(rows: list[list[object]], **more: object) -> SheetPreview:
    return SheetPreview("Data", tuple(tuple(row) for row in rows), **more)  # type: ignore[arg-type]


SHEET = preview([["Name", "Due"], ["Ann|e", datetime(2024, 1, 2)], ["Bob\nBy", None], [True, 0.5]])


def test_other_forms() -> None:
    limits = ContentLimits()
    assert "| 2 | Ann\\|e | 2024-01-02 |" in render_content([SHEET], "markdown", limits)
    assert 'Ann|e,2024-01-02\n"Bob\nBy",\nTRUE,0.5' in render_content([SHEET], "csv", limits)
    addresses = render_content([SHEET], "addresses", limits)
    assert "A2: Ann|e | B2: 2024-01-02\nA3: Bob\\nBy\nA4: TRUE | B4: 0.5" in addresses


@pytest.mark.parametrize("form", [each for each in CONTENT_FORMS if each != INFO])
def test_every_cut_is_said(form: str) -> None:
    rows: list[list[object]] = [[f"c{x}" for x in range(80)]]
    rows += [["x" * 900, *range(79)] for _ in range(9)]
    wide = preview(rows, total_rows=400, more_rows=True, merged=("A1:C1", "A9:B9"))
    text = render_content([wide], form, ContentLimits(rows=3, columns=10, cell_chars=100))
    assert "[rows 1 to 4 of 400 shown]" in text
    assert "[columns K to CB not shown]" in text
    assert "[3 long texts cut, marked with …]" in text
    assert "[merged cells, value in the first one: A1:C1]" in text
    assert "c9" in text
    assert "c10" not in text
    assert "x" * 101 not in text
    assert len(text) < 2500


def test_notes_can_be_left_away() -> None:
    text = render_content(
        [preview([["a"], [1], [2]], more_rows=True)], "pandas", ContentLimits(rows=1, notes=False)
    )
    assert text == "Sheet Name: Data\n   a\n0  1\n" + "-" * 50 + "\n"


def test_total_bound_names_the_sheets_that_are_left_out() -> None:
    sheets = [SheetPreview(f"S{number}", (("text " * 60,),) * 4) for number in range(30)]
    text = render_content(sheets, "csv", ContentLimits(total_chars=3_000))
    assert len(text) < 4_000
    assert "the rest of the lines was too long to show" in text
    assert "[sheets not shown: S4, " in text
    assert "S29]" in text


def test_rows_that_hold_nothing() -> None:
    blank = preview([[None, None]] * 3, more_rows=True, total_rows=9)
    text = render_content([blank], "pandas", ContentLimits(rows=2))
    assert "(rows 1 to 3 are blank)\n[rows 1 to 3 of 9 shown]" in text
    assert "(empty)" in render_content([preview([])], "markdown", ContentLimits())
