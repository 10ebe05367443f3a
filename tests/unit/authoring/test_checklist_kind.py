"""Tasks with a checklist: items proposed from a gold and an instruction, or given in a file."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner, Result

from judge.authoring.checklist_kind import propose_items
from judge.cli.main import judge
from judge.compare.registry import check_options
from judge.core.task import CheckerSpec
from judge.suites import load_suite
from tests.conftest import REPOSITORY

FILES = REPOSITORY / "dataset" / "sample-checklist" / "files" / "budget"
INPUT, GOLD = FILES / "1_budget_input.xlsx", FILES / "1_budget_answer.xlsx"
QUESTION = "Put the totals into row 6 as formulas, and add a sheet Notes."


def call(*words: object) -> Result:
    return CliRunner().invoke(judge, [str(word) for word in words])


def test_items_are_proposed_for_what_differs() -> None:
    proposals = propose_items(INPUT, GOLD, QUESTION)
    items = [proposal.rules[0] for proposal in proposals.listed]
    check_options(CheckerSpec("checklist", {"items": items}))
    cells = {item["cell"]: item for item in items if item["kind"] == "cell"}
    assert cells["B6"]["expected"] == 7750
    assert cells["D6"]["relative"] == 0.0001
    (formula,) = [item for item in items if item["kind"] == "formula"]
    assert formula["cells"] == ["B6", "C6", "D6"]
    assert [item["sheet"] for item in items if item["kind"] == "sheet"] == ["Notes"]
    types = {item["rules"][0]["type"] for item in items if item["kind"] == "rules"}  # type: ignore[index]
    assert "style" in types
    assert "freeze" in types


def test_a_formula_is_only_required_where_the_instruction_asks_for_one() -> None:
    proposals = propose_items(INPUT, GOLD, "Put the totals into row 6.")
    assert "formula" not in {proposal.rules[0]["kind"] for proposal in proposals.listed}


def test_values_that_the_gold_does_not_store_are_named(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(GOLD)
    book.save(tmp_path / "gold.xlsx")  # without the values of its formulas
    proposals = propose_items(INPUT, tmp_path / "gold.xlsx", QUESTION)
    assert proposals.uncovered[0].startswith(
        "values of 3 formulas of the sheet 'Budget' (from B6 on)"
    )
    complete = propose_items(INPUT, GOLD, QUESTION)
    assert not any(line.startswith("values of") for line in complete.uncovered)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    made = call("dataset", "new", folder, "--kind", "checklist", "--by", "ann")
    assert "--items proposed" in made.output
    return folder


def test_a_task_with_proposed_items_is_accepted_by_its_gold(suite: Path, tmp_path: Path) -> None:
    given = ["--instruction", QUESTION, "--from", GOLD, "--input", INPUT, "--by", "ann"]
    written = tmp_path / "items.yaml"
    proposed = call(
        "dataset", "add-task", suite, "a", *given, "--items", "proposed", "--propose", written
    )
    assert "edit it and give it as --items" in proposed.output, proposed.exception
    for task, items in (("b", ["proposed", "--yes"]), ("c", [written])):
        added = call("dataset", "add-task", suite, task, *given, "--items", *items)
        assert added.output.endswith(f"task {task}: draft, 1 case\n"), added.exception
    tasks = {task.id: task for task in load_suite(str(suite)).tasks}
    assert {task.checker.name for task in tasks.values()} == {"checklist"}
    assert tasks["b"].checker.options == tasks["c"].checker.options


def test_what_is_not_a_list_of_items_is_refused(suite: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "items.json"
    wrong.write_text('[{"id": "a", "kind": "poem"}]')
    given = ["--instruction", QUESTION, "--from", GOLD, "--input", INPUT, "--by", "ann"]
    refused = call("dataset", "add-task", suite, "a", *given, "--items", wrong)
    assert "no kind 'poem'" in str(refused.exception)
