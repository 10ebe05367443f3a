"""Exporting and importing rewardkit folders; benchmarks/rewardkit_round.py uses the package."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.rewardkit_round import BY_HAND, CHECKLIST, place, workspace
from judge.authoring.rewardkit import read_rewardkit, rewardkit_files
from judge.cli.main import judge
from judge.compare.cells.computing import NoEngines
from judge.compare.checklists.workspace import Workspace, answer_of_folder
from judge.compare.published.rewardkit import SUITE, check_of
from judge.compare.published_error import PublishedError
from judge.core.submission import Origin
from judge.errors import UsageError

SCALES: dict[str, Any] = {
    "items": [
        {"id": "reads well", "kind": "llm", "points": 4, "scale": "likert", "steps": 7},
        {"id": "style", "kind": "llm", "scale": "rubric", "levels": ["bad", "good"]},
        {"id": "no slang", "kind": "llm", "words": 'no "slang"', "negate": True},
        {"id": "looks", "kind": "human", "points": 3},
        {"id": "there", "kind": "file", "file": "a.txt"},
    ]
}


def written(folder: Path, files: dict[str, str]) -> Path:
    return place(folder, files)


@pytest.mark.parametrize("options", [CHECKLIST, SCALES], ids=["groups", "scales"])
def test_what_was_written_is_read_again(options: dict[str, Any], tmp_path: Path) -> None:
    folder = written(tmp_path / "tests", rewardkit_files(options))
    read = read_rewardkit(folder)
    assert (read.options, read.notes) == (options, [])


def test_a_folder_has_what_rewardkit_expects(tmp_path: Path) -> None:
    files = rewardkit_files(SCALES)
    for name, text in files.items():
        if name.endswith(".py"):
            ast.parse(text)
    toml = tomllib.loads(files["llm.toml"])
    assert [criterion["weight"] for criterion in toml["criterion"]] == [4.0, 1.0, 1.0]
    assert toml["criterion"][0]["points"] == 7
    assert toml["criterion"][2]["description"] == 'no "slang"'
    reward = tomllib.loads(files["reward.toml"])["reward"][0]
    assert reward == {"name": "reward", "weights": {"checks": 1.0, "llm": 6.0}}
    assert "looks" not in files["llm.toml"]


def test_a_folder_that_somebody_changed_is_read_by_its_syntax(tmp_path: Path) -> None:
    folder = written(tmp_path / "tests", rewardkit_files(SCALES))
    checks = folder / "checks.py"
    checks.write_text(checks.read_text() + 'criteria.file_exists("b.txt", weight=3)\n')
    read = read_rewardkit(folder)
    found = {item["id"]: item for item in read.options["items"]}
    assert found["file_exists:b.txt"]["points"] == 3
    assert found["reads-well"]["scale"] == "likert"
    assert read.options["groups"]["llm"]["weight"] == pytest.approx(6 / 7)


def test_a_folder_written_by_hand(tmp_path: Path) -> None:
    read = read_rewardkit(written(tmp_path / "tests", BY_HAND))
    assert len(read.options["items"]) == 11
    assert read.options["groups"]["checks"]["weight"] == pytest.approx(2 / 3)
    assert {item["kind"] for item in read.options["items"]} == {"published"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import os\nos.system('touch ran')", "imports os"),
        ("from rewardkit import criteria\nx = 'a.txt'\ncriteria.file_exists(x)", "line 2"),
        ("from rewardkit import criteria\ncriteria.file_exists(open('a').name)", "not a literal"),
        ("from rewardkit import criteria\ncriteria.mine('a')", "mine is not a built-in"),
        (
            "from rewardkit import criteria\ncriteria.file_exists(**{'path': 'a'})",
            "are not literals",
        ),
        ("from rewardkit import criteria\ncriteria.file_exists('a', weight=-1)", "the weight"),
        ("(" * 500, "not Python"),
    ],
)
def test_what_is_more_than_literal_calls_is_one_item_that_is_not_judged(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    read = read_rewardkit(written(tmp_path / "tests", {"a.py": text}))
    (item,) = read.options["items"]
    assert (item["kind"], item["words"]) == ("program", "not read: program a.py")
    assert reason in read.notes[0]
    assert not (tmp_path / "ran").exists()


def test_a_penalty_cannot_be_written() -> None:
    item = {"id": "a", "kind": "file", "file": "a", "penalty": True}
    with pytest.raises(UsageError, match="takes points off"):
        rewardkit_files({"items": [item]})


@pytest.mark.parametrize(
    ("name", "arguments", "share"),
    [
        ("xlsx_cell_equals", {"path": "out.xlsx", "cell": "A2", "expected": "total"}, 1),
        ("xlsx_cell_equals", {"path": "out.xlsx", "cell": "A2", "expected": "Total"}, 0),
        ("xlsx_cell_equals", {"path": "out.xlsx", "cell": "A2", "expected": 1, "sheet": "No"}, 0),
        ("xlsx_cell_equals", {"path": "none.xlsx", "cell": "A2", "expected": 1}, 0),
        ("csv_cell_equals", {"path": "rows.csv", "row": 1, "col": 0, "expected": "total"}, 1),
        ("csv_cell_equals", {"path": "rows.csv", "row": 0, "col": "name", "expected": "total"}, 1),
        ("json_path_equals", {"path": "data.json", "json_path": "a.0.b", "expected": 7}, 1),
        ("json_path_equals", {"path": "data.json", "json_path": "a.5", "expected": 7}, 0),
        ("json_key_equals", {"path": "data.json", "key": "c", "expected": 1}, 1),
        ("file_contains", {"path": "notes.txt", "text": "Total"}, 0),
        ("file_contains_regex", {"path": "notes.txt", "pattern": r"is \d+$"}, 1),
        ("file_matches", {"path": "notes.txt", "expected": " the total is 42 "}, 1),
        ("file_exists", {"path": "./notes.txt"}, 1),
        ("diff_ratio", {"path": "notes.txt", "expected": "the total is 4"}, 28 / 29),
    ],
)
def test_a_criterion_of_rewardkit(name: str, arguments: dict[str, Any], share: float) -> None:
    left = Workspace(answer_of_folder(workspace(1), Origin.FINISHED), compute=NoEngines())
    assert SUITE.faults(check_of(name, arguments)) == ()
    assert SUITE.official(check_of(name, arguments), left).share == pytest.approx(share)


def test_where_rewardkit_raises_the_official_reading_does() -> None:
    files = {"a.txt": b"\xff\xfe", "b.xlsx": b"PK broken"}
    left = Workspace(answer_of_folder(files, Origin.FINISHED), compute=NoEngines())
    for name, arguments in (
        ("file_contains", {"path": "a.txt", "text": "a"}),
        ("xlsx_cell_equals", {"path": "b.xlsx", "cell": "A1", "expected": 1}),
    ):
        with pytest.raises(PublishedError):
            SUITE.official(check_of(name, arguments), left)
    broken = check_of("file_contains", {"path": "a.txt", "text": "a"})
    assert SUITE.standard(broken, left).share == 0


def test_both_commands(tmp_path: Path) -> None:
    target, out = tmp_path / "tests", tmp_path / "checklist.json"
    run = CliRunner().invoke
    made = run(
        judge, ["dataset", "export-rewardkit", "sample-checklist", str(target), "--task", "budget"]
    )
    assert made.exit_code == 0, made.output
    back = run(judge, ["dataset", "import-rewardkit", str(target), "--out", str(out)])
    assert back.output == f"{out}: 10 items\n"
    assert json.loads(out.read_text())["pass_share"] == 0.8
    again = run(judge, ["dataset", "export-rewardkit", str(out), str(target)])
    assert "exists already" in str(again.exception)
