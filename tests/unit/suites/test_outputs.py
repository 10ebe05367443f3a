from __future__ import annotations

from pathlib import Path

import pytest

from judge.errors import SubmissionError
from judge.suites import Suite, load_suite
from judge.suites.layouts import find_outputs
from tests.unit.suites.conftest import WriteSuite, task_record


@pytest.fixture
def suite(write_suite: WriteSuite) -> Suite:
    return load_suite(write_suite([task_record(101), task_record("7-1")]))


def put(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def test_flat_and_in_folders(tmp_path: Path, suite: Suite) -> None:
    folder = put(
        tmp_path / "out",
        *("7-1/2_7-1_output.xlsx", "1_101_output.xlsx", "deep/7-1/1_7-1_output .xlsx"),
        *("notes.txt", "draft.xlsx", "~$1_101_output.xlsx", "a/b/c/2_101_output.xlsx"),
    )
    found = find_outputs(folder, suite)
    assert dict(found) == {
        ("101", 1): folder / "1_101_output.xlsx",
        ("7-1", 1): folder / "deep/7-1/1_7-1_output .xlsx",
        ("7-1", 2): folder / "7-1/2_7-1_output.xlsx",
    }
    assert list(found) == [("101", 1), ("7-1", 1), ("7-1", 2)]
    assert found.unrecognized == ("draft.xlsx",)
    assert found.get(("101", 2)) is None


def test_unknown_outputs_are_named(tmp_path: Path, suite: Suite) -> None:
    folder = put(tmp_path / "out", "1_101_output.xlsx", "3_101_output.xlsx", "1_55_output.xlsx")
    with pytest.raises(SubmissionError) as caught:
        find_outputs(folder, suite)
    assert "1_55_output.xlsx (no task 55)" in caught.value.message
    assert "3_101_output.xlsx (no case 3 of task 101)" in caught.value.message


def test_the_same_output_twice(tmp_path: Path, suite: Suite) -> None:
    folder = put(tmp_path / "out", "a/1_101_output.xlsx", "b/1_101_output.xlsx")
    with pytest.raises(SubmissionError, match="case 1 of task 101 has two outputs"):
        find_outputs(folder, suite)


def test_nothing_to_grade(tmp_path: Path, suite: Suite) -> None:
    with pytest.raises(SubmissionError, match="holds no output workbook"):
        find_outputs(put(tmp_path / "out", "1_101_input.xlsx"), suite)
    with pytest.raises(SubmissionError, match="cannot be listed"):
        find_outputs(tmp_path / "nowhere", suite)
