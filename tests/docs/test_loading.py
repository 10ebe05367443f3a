"""The statements in docs/reports.md that load results work as described."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.api.rejudging import rejudge
from tests.conftest import REPOSITORY
from tests.unit.report.runs import Solution, TaskSpec, book, make_run, make_suite

DOCUMENT = (REPOSITORY / "docs" / "reports.md").read_text(encoding="utf-8")
AS_TEXT = book((("Name", "Amount"), ("Ann", "1"), ("Bob", 2), ("Cyd", 3)))


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was judged twice, in the folder that the documents name."""
    suite = make_suite(tmp_path / "suite", [TaskSpec("59196", cases=2), TaskSpec("22", cases=1)])
    solutions = [Solution("59196", ("AC", "AC"), output=AS_TEXT), Solution("22", ("RE",))]
    monkeypatch.chdir(tmp_path)
    path = make_run(tmp_path / "results" / "mine", suite, solutions)
    rejudge(path, profile="strict", recalc="never", apply=True)
    return path


def statement_for(name: str) -> str:
    (statement,) = re.findall(
        rf"^```python\n(cases = {name}\..*?)```", DOCUMENT, flags=re.MULTILINE | re.DOTALL
    )
    return str(statement)


def loaded(name: str, library: str) -> Any:
    """Runs a loading statement; each library is imported only where it is used."""
    names: dict[str, Any] = {name: importlib.import_module(library)}
    exec(statement_for(name), names)
    return names["cases"]


@pytest.mark.usefixtures("run")
def test_pandas() -> None:
    cases = loaded("pd", "pandas")
    assert cases.set_index(["task", "case"])["verdict"].to_dict() == {
        ("59196", 1): "WA",
        ("59196", 2): "WA",
        ("22", 1): "RE",
    }


@pytest.mark.usefixtures("run")
def test_polars() -> None:
    cases = loaded("pl", "polars")
    assert sorted(cases.select("task", "case", "verdict").rows()) == [
        ("22", 1, "RE"),
        ("59196", 1, "WA"),
        ("59196", 2, "WA"),
    ]


@pytest.mark.usefixtures("run")
def test_duckdb() -> None:
    cases = loaded("duckdb", "duckdb")
    assert cases.columns == ["task", "sample", "case", "verdict", "cpu_s"]
    assert sorted(row[3] for row in cases.fetchall()) == ["AC", "AC", "RE", "RE", "WA", "WA"]


@pytest.mark.usefixtures("run")
def test_the_lines_from_python() -> None:
    (block,) = re.findall(r"```python\n(import judge\n.*?)```", DOCUMENT, flags=re.DOTALL)
    steps = [line for line in block.splitlines() if line and "results/before" not in line]
    names: dict[str, Any] = {}
    for step in steps:
        exec(step, names)
    assert isinstance(names["report"], judge.Report)
    assert "<html" in names["page"]
    assert len(steps) == 9
