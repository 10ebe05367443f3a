"""`judge.compare` gives the same result as `judge compare`, including formulas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import judge
import judge.api.resources
import judge.grading.batch
from judge.cli.main import judge as command
from judge.compare.cells.comparison import DifferenceClass
from judge.sandbox.scripted import ScriptedSandbox
from tests.unit.compare.cells.packages import Book, cell, sheet_data, simple
from tests.unit.recalc.test_cli import answers


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A formula that openpyxl left without a value, and golds with and without its value."""
    monkeypatch.setattr(judge.grading.batch, "recalc_cache_folder", lambda: tmp_path / "kept")
    formula = Book({"Sheet1": sheet_data(cell("A1", formula="1+2"))}).to_bytes()
    (tmp_path / "output.xlsx").write_bytes(formula)
    (tmp_path / "right.xlsx").write_bytes(simple({"A1": 3}))
    (tmp_path / "wrong.xlsx").write_bytes(simple({"A1": 4}))
    return tmp_path


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> ScriptedSandbox:
    scripted = ScriptedSandbox(answers=answers({(1, 1): 3.0}))  # type: ignore[arg-type]
    monkeypatch.setattr(judge.api.resources, "open_sandbox", lambda _, jobs: scripted)
    return scripted


@pytest.mark.parametrize(("gold", "equal"), [("right", True), ("wrong", False)])
def test_the_library_computes_as_the_command_does(
    books: Path, sandbox: ScriptedSandbox, gold: str, equal: bool
) -> None:
    found = judge.compare(books / f"{gold}.xlsx", books / "output.xlsx", "A1")
    assert found.equal is equal
    assert sandbox.calls
    arguments = ["compare", str(books / f"{gold}.xlsx"), str(books / "output.xlsx"), "--at", "A1"]
    said = CliRunner().invoke(command, [*arguments, "--json"])
    assert json.loads(said.stdout)["equal"] is equal
    assert said.exit_code == (0 if equal else 1)


def test_nothing_is_opened_where_nothing_is_to_be_computed(
    books: Path, sandbox: ScriptedSandbox
) -> None:
    assert judge.compare(books / "right.xlsx", books / "right.xlsx", "A1").equal
    found = judge.compare(books / "right.xlsx", books / "output.xlsx", "A1", recalc="never")
    assert found.difference_counts[DifferenceClass.NOT_CALCULATED] == 1
    assert not sandbox.calls
