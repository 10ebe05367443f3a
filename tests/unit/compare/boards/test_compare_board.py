"""``judge compare --board``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from judge.cli.compare import compare as command
from judge.files.yaml_documents import dump_yaml
from tests.boards import Made, workbook

BOARD = {"check_board": {"1": {"charts": {"title": True}}}, "required_APIs": []}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "gold.xlsx").write_bytes(workbook())
    (tmp_path / "other.xlsx").write_bytes(workbook(Made(title="Sale", second="FF0000FF")))
    (tmp_path / "board.yaml").write_text(dump_yaml(BOARD))
    return tmp_path


def compare(files: Path, output: str, *options: str, board: str = "board.yaml") -> Result:
    arguments = [str(files / "gold.xlsx"), str(files / output), "--recalc", "never"]
    return CliRunner().invoke(command, [*arguments, "--board", str(files / board), *options])


def test_the_exit_code_says_whether_they_are_equal(files: Path) -> None:
    same = compare(files, "gold.xlsx")
    assert (same.exit_code, same.stdout) == (0, "equal: 1 properties, profile standard\n")
    different = compare(files, "other.xlsx")
    assert different.exit_code == 1
    assert different.stdout.splitlines()[1:4] == [
        "  property 1 (Data): On the first sheet, the charts have the same titles as in the gold.",
        '    expected "Sales"',
        '    found "Sale"',
    ]


def test_json_and_the_published_verdict(files: Path) -> None:
    (files / "rules.yaml").write_text(dump_yaml({"1": {"format_conditions": {"fill_color": True}}}))
    found = compare(files, "other.xlsx", "--json", board="rules.yaml")
    record = json.loads(found.stdout)
    assert (record["equal"], record["official_equal"]) == (False, True)
    official = compare(files, "other.xlsx", "--profile", "official", board="rules.yaml")
    assert official.exit_code == 0


def test_what_is_wrong_is_said(files: Path) -> None:
    (files / "board.yaml").write_text("1: {cells: {value: true}}")
    wrong = compare(files, "gold.xlsx")
    assert "no property 'value'" in str(wrong.exception)
    (files / "board.yaml").write_text("9: {cells: {values: true}}")
    assert "checks sheet 9" in str(compare(files, "gold.xlsx").exception)
    both = compare(files, "gold.xlsx", "--at", "A1")
    assert "only one." in str(getattr(both.exception, "hint", ""))
    other = compare(files, "gold.xlsx", "--evaluator", "osworld")
    assert "--evaluator can only be used with --rules" in str(other.exception)
