"""Cells as the JSON from which a grid is drawn."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest

from judge.report.grid import (
    FormulaState,
    encode_cell,
    encode_formula,
    encode_recorded,
    encode_value,
)
from judge.workbook.cell import CellValue, ErrorValue


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (0.5, 0.5),
        ("text", "text"),
        ("=A1", "=A1"),
        ("long text", {"k": "s", "x": "long ", "n": 9}),
        (2**60, {"k": "n", "x": str(2**60)[:5]}),
        (float("inf"), {"k": "n", "x": "inf"}),
        (ErrorValue("#N/A"), {"k": "e", "x": "#N/A"}),
        (dt.datetime(2024, 1, 31), {"k": "d", "x": "2024-01-31"}),  # noqa: DTZ001 - as in a cell
        (dt.datetime(2024, 1, 31, 6, 30), {"k": "d", "x": "2024-01-31T06:30:00"}),  # noqa: DTZ001
        (dt.time(6, 30), {"k": "d", "x": "06:30:00"}),
        ("\ud83d", "?"),
    ],
)
def test_values(value: CellValue, encoded: Any) -> None:
    found = encode_value(value, 5)
    assert found == encoded
    assert type(found) is type(encoded)
    json.dumps(found).encode("utf-8")


def test_recorded_values_are_json_already() -> None:
    assert encode_recorded({"error": "#REF!"}) == {"k": "e", "x": "#REF!"}
    assert encode_recorded("2024-01-31") == "2024-01-31"


def decode(entry: list[Any]) -> tuple[Any, Any, Any, int]:
    """Returns the cells as the page reads them."""
    _, flags, gold, *rest = entry
    output = [gold, rest[0] if rest else None, None][flags & 3]
    follows = rest[1 if flags & 3 == 1 else 0] if (flags >> 2) & 3 == 1 else None
    before = [gold, follows, None, output][(flags >> 2) & 3]
    return gold, output, before, flags >> 4


FORMULA = encode_formula("=A1", 1, FormulaState.CACHED, 100)


@pytest.mark.parametrize("gold", [None, 1, "1", FORMULA])
@pytest.mark.parametrize("output", [None, 1, "1", True, FORMULA])
@pytest.mark.parametrize("before", [None, 1, 1.0, True, FORMULA])
def test_three_workbooks_come_back_as_they_were(gold: Any, output: Any, before: Any) -> None:
    entry = encode_cell(3, 4, gold, output, before)
    assert entry is not None
    assert entry[0] == 3
    assert repr(decode(entry)) == repr((gold, output, before, 4))


def test_true_behind_a_formula_is_not_one() -> None:
    entry = encode_cell(0, 1, FORMULA, {**FORMULA, "v": True}, None)
    assert entry is not None
    assert decode(entry)[1]["v"] is True


def test_blank_cells_cost_nothing() -> None:
    assert encode_cell(0, 1, None, None, None) is None
    assert encode_cell(0, 2, None, None, None) is not None
