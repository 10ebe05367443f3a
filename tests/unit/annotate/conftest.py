"""A small suite in the test's own folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.annotate.books import table


def doubling_case(*numbers: object) -> tuple[bytes, bytes]:
    """Makes input and gold of the task that asks for twice the numbers in column A."""
    head: list[tuple[object, ...]] = [("number", "double")]
    rows = [(each, None) for each in numbers]
    golds = [(each, 2 * each if isinstance(each, int | float) else None) for each in numbers]
    return table(*head, *rows), table(*head, *golds)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Makes a suite of one task with three cases."""
    root = tmp_path / "suite"
    folder = root / "spreadsheet" / "7"
    folder.mkdir(parents=True)
    record: dict[str, Any] = {
        "id": 7,
        "instruction": "Put twice the number of column A into column B.",
        "instruction_type": "Cell-Level Manipulation",
        "answer_position": "B2:B5",
    }
    (root / "dataset.json").write_text(json.dumps([record]))
    for number, values in enumerate([(1, 2, 3, 4), (1, 2, 3, 5), (7, 8, 9, 10)], start=1):
        data, gold = doubling_case(*values)
        (folder / f"{number}_7_input.xlsx").write_bytes(data)
        (folder / f"{number}_7_answer.xlsx").write_bytes(gold)
    return root
