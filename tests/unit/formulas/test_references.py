"""Rectangles that formulas name; what is read once for many formulas is right for each of them."""

from __future__ import annotations

import pytest

from judge.formulas.references import Reference, _references, read_formula, references
from judge.formulas.traits import traits

FORMULAS = (
    "=SUM(A1:A9)+B10",
    "=SUM($B$9:C$2)",
    "=SUM(A9:A1,A1)",
    "=Sheet1!A1+Sheet12!B$2",
    "='Sales 2010'!C3+'Q1''s'!$A5",
    "='R2 x3'!C3:D4",
    "=A:A+C:$D+3:5+$4:$6",
    "=Sheet2!A:A+Sheet2!3:5",
    '=IF(A1="B2:B9",A3,"x5""y7")',
    "=LOG10(A1)+ATAN2(B2,3)",
    "=[1]Sheet1!A5+Tax2010+A1.5",
    "=A12345678+B1",
    "=A0+B00012",
    "={1,2;3,4}+A4",
    "=D5#+@E6",
    "=_xlfn.XLOOKUP(A2,Tab1[Col2],B$2:B$9)",
    "=INDEX(A1:A3:B5,2)",
    "=A1B2+ABCD12+XFD1048576",
    "='unclosed!A1",
    "",
)


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_form_names_the_same_rectangles_as_the_text(formula: str) -> None:
    said, named = read_formula(formula)
    assert list(named) == _references(formula)
    assert said == traits(formula)


def test_each_formula_of_a_column_has_its_own_rows() -> None:
    for row in (2, 30, 1048576, 7):
        formula = f"=SUMIFS(C$2:C$9,A$2:A$9,$F{row})+G{row - 1}"
        assert references(formula) == (
            Reference(None, 2, 3, 9, 3),
            Reference(None, 2, 1, 9, 1),
            Reference(None, row, 6, row, 6),
            Reference(None, row - 1, 7, row - 1, 7),
        )


def test_sheets_whose_names_differ_only_in_a_number_are_distinguished() -> None:
    assert [references(f"=Sheet{n}!A1")[0].sheet for n in (1, 2, 31)] == [
        "Sheet1",
        "Sheet2",
        "Sheet31",
    ]
    assert [references(f"='D{n} x'!A1")[0].sheet for n in (1, 2)] == ["D1 x", "D2 x"]


def test_rows_in_either_order_make_the_same_rectangle() -> None:
    assert references("=SUM(B9:A2)") == references("=SUM(A2:B9)") == (Reference(None, 2, 1, 9, 2),)


def test_a_formula_that_is_too_long_names_nothing() -> None:
    assert references("=A1" + "+A1" * 9000) == ()
