"""The golden cases, each in a folder whose name ends in its verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from judge.compare.cells.comparison import Comparison
from judge.compare.cells.computing import compare_files
from judge.errors import WorkbookError
from tests.cases.make_cases import Case, cases, files
from tests.reference_workbook import ReferenceWorkbook

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("*/case.yaml"))


def compare(folder: Path, record: dict[str, Any], profile: str) -> Comparison:
    return compare_files(
        folder / "expected.xlsx",
        folder / "actual.xlsx",
        record["at"],
        answer_sheet=record.get("answer_sheet"),
        profile=profile,
        style=() if profile == "official" else record.get("style", ()),
        # A published profile takes no options: the script that it follows has none.
        options=None if profile == "official" else record.get("options"),
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_verdict_is_the_one_in_the_name(folder: Path) -> None:
    record = yaml.safe_load((folder / "case.yaml").read_text())
    verdict = folder.name.rpartition("_")[2]
    if verdict == "iw":
        with pytest.raises(WorkbookError):
            compare(folder, record, "standard")
        return
    comparison = compare(folder, record, "standard")
    assert comparison.equal is (verdict == "ac"), comparison.differences
    found = {each.cell: each.kind.value for each in comparison.differences}
    assert found == record.get("differences", {})
    if verdict == "nc":
        assert set(found.values()) == {"not_calculated"}
    for profile, accepts in record.get("others", {}).items():
        assert compare(folder, record, profile).equal is accepts, profile


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_official_says_what_the_script_says(folder: Path) -> None:
    record = yaml.safe_load((folder / "case.yaml").read_text())
    if folder.name.endswith("_iw"):
        return
    assert compare(folder, record, "official").equal is record["official"]
    comparison = compare(folder, record, "standard")
    assert comparison.official_equal is record["official"]


def test_the_folders_hold_what_the_script_makes() -> None:
    made = {case.name: case for case in cases()}
    assert {folder.name for folder in FOLDERS} == made.keys()
    for folder in FOLDERS:
        for name, data in files(made[folder.name]).items():
            assert (folder / name).read_bytes() == data, f"{folder.name}/{name}"


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_workbooks_are_workbooks_to_openpyxl_too(case: Case) -> None:
    ReferenceWorkbook(case.expected.to_bytes(), formulas=False)
    if not isinstance(case.actual, bytes) and not case.name.endswith("_iw"):
        ReferenceWorkbook(case.actual.to_bytes(), formulas=False)
