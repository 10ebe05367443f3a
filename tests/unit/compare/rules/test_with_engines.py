"""Rules that read values, with the engines of the sandbox: formulas are computed first."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import PatternFill

from judge.recalc.computing import EngineCompute
from judge.recalc.select import open_recalculator
from judge.sandbox import open_sandbox
from tests.unit.compare.rules.judged import CORPUS, DATA, PAIR, outcome

pytestmark = pytest.mark.bubblewrap

GREEN = PatternFill("solid", start_color="FF00FF00", end_color="FF00FF00")
LOOKS: dict[str, Any] = {"type": "style", **PAIR, "props": ["bgcolor"]}


@pytest.fixture(scope="module")
def compute() -> Iterator[EngineCompute]:
    """A single real engine: which engine is used is a matter for other tests."""
    with (
        contextlib.closing(open_sandbox("bubblewrap")) as sandbox,
        contextlib.closing(open_recalculator(sandbox, engine="formualizer")) as recalculator,
    ):
        yield EngineCompute(recalculator)


def saved(rows: list[list[Any]], make: Any = None) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in rows:
        sheet.append(row)
    if make is not None:
        make(sheet)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def computed_only(place: str, method: str, ref: Any) -> dict[str, Any]:
    props = {"value": {"method": method, "ref": ref}}
    return {"type": "check_cell", "sheet_idx": 0, "coordinate": place, "props": props}


FUZZY: dict[str, Any] = {
    "type": "sheet_fuzzy", **PAIR, "rules": [{"range": ["B2"], "type": "exact_match"}],
}  # fmt: skip


@pytest.mark.parametrize(
    ("rule", "output", "gold", "published", "right"),
    [
        pytest.param(DATA, "formula.xlsx", "base.xlsx", "different", "equal", id="16"),
        pytest.param(DATA, "formula.xlsx", "formula_wrong.xlsx", "equal", "different", id="31"),
        pytest.param(FUZZY, "formula.xlsx", "base.xlsx", "raises", "equal", id="fuzzy"),
        pytest.param(FUZZY, "formula_wrong.xlsx", "base.xlsx", "raises", "different", id="f2"),
        pytest.param(
            computed_only("B2", "eq", 1), "formula.xlsx", None, "raises", "equal", id="cell"
        ),
        pytest.param(
            computed_only("B2", "eq", 1), "formula_wrong.xlsx", None, "raises", "different",
            id="wrong cell",
        ),
    ],
)  # fmt: skip
def test_formulas_without_a_value(
    compute: EngineCompute,
    rule: dict[str, Any],
    output: str,
    gold: str | None,
    published: str,
    right: str,
) -> None:
    assert outcome([rule], output, gold, profile="official") == published
    assert outcome([rule], output, gold, compute=compute) == right


def conditional(rows: list[list[Any]], place: str, formula: str) -> bytes:
    rule = FormulaRule(formula=[formula], fill=GREEN)  # type: ignore[no-untyped-call]
    return saved(rows, lambda sheet: sheet.conditional_formatting.add(place, rule))


@pytest.mark.parametrize(
    ("rows", "place", "wanted", "other", "same"),
    [
        # as published, B1 in the condition of A1 is A1 itself, and so is C1
        pytest.param([[1, 1, 3], [1, 2, 2]], "A1:A2", "$B1>1", "$C1>1", "$B1>=2", id="150"),
        # OSWorld's evaluator stops after 51 blank cells of a range
        pytest.param(
            [[1], *[[None]] * 60, [1]], "A2:A62", "A2>5", "A2>0", "A2>6", id="51 blank cells"
        ),
    ],
)
def test_conditions_are_computed(
    compute: EngineCompute,
    tmp_path: Path,
    rows: list[list[Any]],
    place: str,
    wanted: str,
    other: str,
    same: str,
) -> None:
    gold = tmp_path / "gold.xlsx"
    gold.write_bytes(conditional(rows, place, wanted))
    answer = conditional(rows, place, other)
    options: dict[str, Any] = {"evaluator": "osworld"}
    assert outcome([LOOKS], answer, str(gold), profile="official", **options) == "equal"
    assert outcome([LOOKS], answer, str(gold), compute=compute, **options) == "different"
    answer = conditional(rows, place, same)
    assert outcome([LOOKS], answer, str(gold), compute=compute, **options) == "equal"


def test_values_of_the_gold_are_computed_too(compute: EngineCompute) -> None:
    assert outcome([DATA], "base.xlsx", "formula.xlsx", compute=compute) == "equal"
    assert outcome([DATA], "base.xlsx", "formula_wrong.xlsx", compute=compute) == "different"
    assert (CORPUS / "formula.xlsx").is_file()
