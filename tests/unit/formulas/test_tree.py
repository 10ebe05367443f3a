"""Formulas that differ only in row numbers have trees of one shape."""

from __future__ import annotations

import pytest

from judge.formulas.lexer import tokens
from judge.formulas.references import Reference
from judge.formulas.tree import Call, Constant, Operation, tree


def test_rows_of_a_filled_column() -> None:
    for row in (2, 7, 1_048_576):
        assert tree(f'=SUM(A$9:B{row})&"A{row}"') == Operation(
            "&",
            (
                Call("SUM", (Reference(None, min(9, row), 1, max(9, row), 2),)),
                Constant(f"A{row}"),
            ),
        )


def test_sheets_and_whole_columns() -> None:
    assert tree("=S2!C4+C:D*5") == Operation(
        "+",
        (
            Reference("S2", 4, 3, 4, 3),
            Operation("*", (Reference(None, 1, 3, 1_048_576, 4), Constant(5.0))),
        ),
    )


@pytest.mark.parametrize("formula", ["=A1 :B2", "=A3: B4+C5", "=Data! A7+A8"])
def test_spaces_join_what_is_written(formula: str) -> None:
    together = "".join(token.text for token in tokens(formula) if token.text.strip())
    assert tree(formula) == tree(together) is not None


def test_names_with_numbers_are_not_read() -> None:
    assert tree("=Rate_2x+A1") is None
    assert tree("=A1+") is None
