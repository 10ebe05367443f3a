from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from judge.suites import load_suite
from judge.suites.validate import Severity, validate_suite
from tests.unit.suites.conftest import WriteSuite, task_record


@pytest.fixture
def folder(write_suite: WriteSuite) -> Path:
    """A suite of one task with two good cases."""
    folder = write_suite()
    for number in (1, 2):
        for role, answer in (("input", None), ("answer", number)):
            book = Workbook()
            sheet = book.active
            assert sheet is not None
            sheet.append([number, answer])
            book.save(folder / f"spreadsheet/101/{number}_101_{role}.xlsx")
    return folder


def findings_of(folder: Path, **changes: Any) -> list[tuple[str, str, str]]:
    if changes:
        write_records(folder, task_record(**changes))
    return [
        (found.severity.value, found.file, found.message)
        for found in validate_suite(load_suite(folder))
    ]


def write_records(folder: Path, *records: dict[str, Any]) -> None:
    (folder / "dataset.json").write_text(json.dumps(records))


def test_a_good_suite(folder: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    suite = load_suite(folder)
    assert not validate_suite(suite, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 1)]


@pytest.mark.parametrize("role", ["input", "answer"])
@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 torn"])
def test_a_workbook_that_is_none(folder: Path, role: str, content: bytes) -> None:
    path = folder / f"spreadsheet/101/2_101_{role}.xlsx"
    path.write_bytes(content)
    ((severity, file, message),) = findings_of(folder)
    assert severity == "error"
    assert file == f"spreadsheet/101/2_101_{role}.xlsx"
    assert message
    assert str(folder) not in message


def test_a_sheet_whose_cells_cannot_be_read(folder: Path) -> None:
    path = folder / "spreadsheet/101/1_101_answer.xlsx"
    with zipfile.ZipFile(path) as package:
        parts = {name: package.read(name) for name in package.namelist()}
    parts["xl/worksheets/sheet1.xml"] = b"<worksheet><sheetData><row>"
    with zipfile.ZipFile(path, "w") as package:
        for name, data in parts.items():
            package.writestr(name, data)
    ((severity, file, _),) = findings_of(folder)
    assert (severity, file) == ("error", "spreadsheet/101/1_101_answer.xlsx")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"answer_position": "'Totals'!B1,'Sums'!B2"}, "Totals"),
        ({"answer_position": "nonsense"}, "nonsense"),
        ({"checker": "rules"}, "rules"),
        ({"checker": {"name": "cell_range", "colour": True}}, "colour"),
    ],
)
def test_what_no_gold_fits_is_an_error(folder: Path, changes: dict[str, Any], word: str) -> None:
    findings = findings_of(folder, **changes)
    assert [found[0] for found in findings] == ["error", "error"]
    assert all(word in found[2] for found in findings)


def test_the_only_sheet_by_another_name_is_a_note(folder: Path) -> None:
    ((severity, file, message),) = findings_of(folder, answer_position="Totals!B1")
    assert (severity, file) == ("note", "dataset.json")
    assert "'Totals'" in message


def test_warnings(folder: Path) -> None:
    assert findings_of(folder, answer_position="D5:E9") == [
        ("warning", f"spreadsheet/101/{number}_101_answer.xlsx", "D5:E9 is blank")
        for number in (1, 2)
    ]
    assert not findings_of(folder, answer_position="D5:E9", style=["fill"])
    assert findings_of(folder, instruction=" ") == [
        ("warning", "dataset.json", "the instruction is empty: there is no question")
    ]
    case = folder / "spreadsheet/101"
    shutil.copy(case / "2_101_input.xlsx", case / "2_101_answer.xlsx")
    assert (
        "warning",
        "spreadsheet/101/2_101_answer.xlsx",
        "the gold is the untouched input",
    ) in findings_of(folder, instruction="Again.")


def test_notes(folder: Path) -> None:
    case = folder / "spreadsheet/101"
    (case / "2_101_input.xlsx").rename(case / "2_101_input .xlsx")
    findings = findings_of(folder, exclude="ambiguous", difficulty=1, answer_position="'Sheet!'B1")
    assert {severity for severity, _, _ in findings} == {"note"}
    assert findings[0][1:] == (
        "dataset.json, record 0 (id 101)",
        "unknown fields are ignored: difficulty",
    )
    assert findings[1][1:] == (
        "spreadsheet/101/2_101_input .xlsx",
        "there is a blank in the name",
    )
    assert findings[2][1:] == ("dataset.json", "the suite leaves it out: ambiguous")
    assert all(file == "dataset.json" and "Sheet!" in message for _, file, message in findings[3:])
    # The position is the same for both cases: what was made of it is said once.
    assert len(findings) == len(set(findings)) > 3


def test_the_sample_suite_has_nothing_to_find() -> None:
    assert validate_suite(load_suite("sample")) == []


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "warned"),
    [
        pytest.param(
            "spreadsheetbench_912_dev300",
            {"7-5", "55457", "41801", "48357"},
            marks=pytest.mark.slow,
        ),
        ("spreadsheetbench_verified_dev128", {"534-26"}),
    ],
)
def test_published_suites(judge_data: Path, name: str, warned: set[str]) -> None:
    findings = validate_suite(load_suite(judge_data / name))
    assert Severity.ERROR not in {found.severity for found in findings}
    warnings = {found.task for found in findings if found.severity is Severity.WARNING}
    assert warned <= warnings
