from __future__ import annotations

import hashlib
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from judge.cli.main import judge
from judge.errors import SuiteError, UsageError
from judge.suites import load_suite
from tests.unit.suites.conftest import WriteSuite, task_record

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "200")

    def invoke(*arguments: object) -> Result:
        command = ["dataset", *map(str, arguments)]
        return CliRunner().invoke(judge, command, standalone_mode=False)

    return invoke


def json_of(result: Result) -> Any:
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


def test_list_of_suites(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    suites = {suite["name"]: suite for suite in json_of(run("list", "--json"))}
    assert suites["sample"]["tasks"] == len(load_suite("sample").tasks)
    assert suites["spreadsheetbench-912"]["tasks"] == 912
    assert suites["spreadsheetbench-912"]["folder"] is None
    table = run("list").stdout
    assert "judge dataset fetch NAME" in table
    assert max(map(len, table.splitlines())) <= 80
    for name in suites:
        assert len(re.findall(rf"^ ?{re.escape(name)} ", table, re.MULTILINE)) == 1, name


def test_list_of_tasks(run: Run, write_suite: WriteSuite) -> None:
    # What looks like markup in a suite is text.
    folder = write_suite([task_record(7, instruction="[bold]Sum[/x] it"), task_record("1-1")])
    first, second = json_of(run("list", folder, "--json"))
    assert (first["id"], first["cases"]) == (7, 2)
    assert second["id"] == "1-1"
    text = run("list", folder).stdout
    assert "[bold]Sum[/x] it" in text
    assert "2 tasks, 4 cases (spreadsheetbench-v0.1)" in text


def test_show(run: Run, write_suite: WriteSuite) -> None:
    folder = write_suite([task_record(7, style=["fill"], answer_sheet="S")])
    record = json_of(run("show", folder, "7", "--json"))
    assert record["options"] == {"style": ["fill"]}
    assert record["cases"][1]["gold"].endswith("spreadsheet/7/2_7_answer.xlsx")
    text = run("show", folder, "7").stdout
    assert "answer sheet: S" in text
    assert "2_7_answer.xlsx" in text
    assert "Quote!C2:D19" in run("show", "sample", "1006").stdout
    assert isinstance(run("show", folder, "8").exception, UsageError)


def test_stats(run: Run, write_suite: WriteSuite) -> None:
    folder = write_suite()
    counts = json_of(run("stats", folder, "--json"))
    assert (counts["tasks"], counts["cases"]) == (1, 2)
    assert counts["digest"] == load_suite(folder).digest
    assert counts["digest"] in run("stats", folder).stdout


def test_validate(run: Run, write_suite: WriteSuite) -> None:
    assert "no errors" in run("validate", "sample").stdout
    folder = write_suite()  # whose workbooks are none
    result = run("validate", folder, "--json")
    assert isinstance(result.exception, SuiteError)
    findings = json.loads(result.stdout)
    assert {finding["severity"] for finding in findings} == {"error"}
    assert len(findings) == 4
    assert "spreadsheet/101/1_101_input.xlsx" in run("validate", folder).stdout


def test_fetch_by_hand(
    run: Run, write_suite: WriteSuite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "mine.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(write_suite(), "mine")
    wrong = run("fetch", "spreadsheetbench-912", "--from", archive)
    assert isinstance(wrong.exception, SuiteError)
    assert wrong.exception.faults[1].startswith("expected: sha256 9cf7228b")

    sha256 = hashlib.sha256(archive.read_bytes()).hexdigest()
    data = tmp_path / "data"
    data.mkdir()
    (data / "sources.yaml").write_text(
        "suites: [{name: mine, title: Mine, format: f, tasks: 1, licence: CC0, homepage: h, "
        f"archive: mine.tar.gz, size_bytes: null, sha256: {sha256}, urls: [https://h.test/m]}}]"
    )
    monkeypatch.setattr("judge.cli.dataset.data_folder", lambda: data)
    fetched = json_of(run("fetch", "mine", "--from", archive, "--json"))
    assert (fetched["sha256"], fetched["checked"], fetched["tasks"]) == (sha256, True, 1)
    again = run("fetch", "mine").stdout
    assert "already exists" in again
    assert "Licence: CC0" in again
    unknown = run("fetch", "yours").exception
    assert isinstance(unknown, UsageError)
    assert unknown.hint is not None
    assert "mine" in unknown.hint
