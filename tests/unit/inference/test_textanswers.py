from __future__ import annotations

import hashlib
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import openpyxl
import pytest

from judge.inference.solver import Answer, answer_program, read_answers, read_value

DAY = datetime(2024, 1, 31)  # noqa: DTZ001 - workbooks know no time zones


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("17.5", 17.5), ("-3", -3), ("3.0", 3), ("1,234,567.5", 1234567.5), ("1,2", "1,2"),
        ("12%", 0.12), ("TRUE", True), ("false", False), ("007", "007"), ('"5"', "5"),
        ("2024-01-31", DAY), ("2024-01-31 10:30", DAY.replace(hour=10, minute=30)),
        ("2024-13-31", "2024-13-31"), ("Smith & Co", "Smith & Co"), ("`x`", "x"), ("1e3", 1000),
        (".5", 0.5), ("=SUM(A1:A2)", "=SUM(A1:A2)"),
    ],
)  # fmt: skip
def test_values(text: str, value: object) -> None:
    found = read_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("B2: 17.5\nB3: Smith", [(None, "B2", 17.5), (None, "B3", "Smith")]),
        ("The answer:\n```\nB2: 1\n```\nDone.", [(None, "B2", 1)]),
        ("- `B2`: 1\n* **C3**: x", [(None, "B2", 1), (None, "C3", "x")]),
        ("'Sheet 2'!B2: 1\nData!$C$3 = 2", [("Sheet 2", "B2", 1), ("Data", "C3", 2)]),
        ("'It''s'!b2: 1", [("It's", "B2", 1)]),
        ("| B2 | 5 |\n|----|---|\n| B3 | 6 |", [(None, "B2", 5), (None, "B3", 6)]),
        ("<think>B2: 9</think>\nB2: 1", [(None, "B2", 1)]),
        ("B2: 1\nB2: 2", [(None, "B2", 2)]),
        ("B2:\nB3: 4", [(None, "B3", 4)]),
        ("C5: a: b", [(None, "C5", "a: b")]),
    ],
)
def test_lines_of_addresses(reply: str, expected: list[tuple[str | None, str, object]]) -> None:
    found = read_answers(reply, "B2:B3")
    assert [(each.sheet, each.address, each.value) for each in found] == expected


@pytest.mark.parametrize(
    ("reply", "position", "expected"),
    [
        ("42", "B2", [(None, "B2", 42)]),
        ("Answer: 42", "B2", [(None, "B2", 42)]),
        ("It sums up to this:\n42", "B2", [(None, "B2", 42)]),
        ("1\n2\n3", "'S 1'!B2:B4", [("S 1", "B2", 1), ("S 1", "B3", 2), ("S 1", "B4", 3)]),
        ("| a | 1 |\n|---|---|\n| b | 2 |", "A1:B2",
         [(None, "A1", "a"), (None, "B1", 1), (None, "A2", "b"), (None, "B2", 2)]),
        ("Here you are:\n\na,1\nb,2\n", "A1:B2",
         [(None, "A1", "a"), (None, "B1", 1), (None, "A2", "b"), (None, "B2", 2)]),
        ("", "A1", []),
        ("nothing fits", "A1:C3", []),
    ],
)  # fmt: skip
def test_tables(reply: str, position: str, expected: list[tuple[str | None, str, object]]) -> None:
    found = read_answers(reply, position)
    assert [(each.sheet, each.address, each.value) for each in found] == expected


def test_the_program_writes_the_answers_of_its_workbook(tmp_path: Path) -> None:
    inputs = []
    for number in (1, 2):
        workbook = openpyxl.Workbook()
        first = workbook.active
        assert first is not None
        first.title = "First"
        first["A1"] = number
        second = workbook.create_sheet("Second ")
        second.merge_cells("D1:E1")
        path = tmp_path / f"{number}.xlsx"
        workbook.save(path)
        inputs.append(path)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in inputs]
    told, made = tmp_path / "told.xlsx", tmp_path / "made.xlsx"
    program = answer_program(
        {
            digests[0]: [Answer(None, "B2", 1.5), Answer("first", "C3", "=1+1")],
            digests[1]: [Answer(None, "B2", DAY), Answer(None, "E1", 3), Answer(None, "B3", True)],
        },
        input_path=str(told),
        output_path=str(made),
        sheet="second",
    )
    sheets = []
    for path in inputs:
        told.write_bytes(path.read_bytes())
        subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
        sheets.append(openpyxl.load_workbook(made))
    assert sheets[0]["Second "]["B2"].value == 1.5
    assert sheets[0]["First"]["C3"].data_type == "s"
    assert sheets[1]["Second "]["B2"].value == DAY
    assert sheets[1]["Second "]["B3"].value is True
    assert sheets[1]["Second "]["E1"].value is None
    told.write_bytes(inputs[0].read_bytes() + b"\n")
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert other.returncode == 1
    assert "no answer was requested" in other.stderr
