"""The commands in a real sandbox, on a suite of one task."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from judge.cli.groups import annotate
from judge.cli.hack import hack
from judge.errors import JudgeError, StoreError, SuiteError, UsageError, WorkbookError
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox
from judge.suites.suite import load_suite
from tests.unit.annotate.books import values
from tests.unit.annotate.conftest import doubling_case

RIGHT = """
import openpyxl
book = openpyxl.load_workbook("/mnt/data/input/1_7_input.xlsx")
sheet = book.active
for row in range(2, 6):
    number = sheet.cell(row, 1).value
    if number is not None:
        sheet.cell(row, 2).value = {twice}
book.save("/mnt/data/output/1_7_output.xlsx")
"""
ONE, OTHER = RIGHT.format(twice="2 * number"), RIGHT.format(twice="number + number")
# Right on every case there is, wrong on negative numbers.
WRONG = RIGHT.format(twice="2 * abs(number)")

JOBS = 8
"""More than a command works on at a time."""


def run(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(annotate, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


@pytest.fixture(scope="module")
def opened() -> Iterator[Sandbox]:
    with contextlib.closing(open_sandbox("bubblewrap", jobs=JOBS)) as sandbox:
        yield sandbox


@pytest.fixture
def sandbox(opened: Sandbox, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options for a real sandbox that stays open; otherwise, each command would open one."""

    class KeptOpen:
        def __getattr__(self, name: str) -> object:
            return getattr(opened, name)

        def close(self) -> None:
            pass

    def lend(kind: str, *, jobs: int = 1) -> KeptOpen:
        assert kind == "bubblewrap"
        assert jobs <= JOBS
        return KeptOpen()

    monkeypatch.setattr("judge.annotate.annotator.open_sandbox", lend)
    return ["--sandbox", "bubblewrap"]


@pytest.fixture
def references(tmp_path: Path) -> list[str]:
    """Options that name two right solutions."""
    options = []
    for name, text in (("one.py", ONE), ("other.py", OTHER)):
        (tmp_path / name).write_text(text)
        options += ["--reference", str(tmp_path / name)]
    return options


def test_a_draft_needs_no_sandbox(suite: Path) -> None:
    made = json.loads(run("add", suite, "7", "A2=9", "--draft", "--json", "--author", "ann").stdout)
    assert made["case"] == 4
    shown = run("drafts", suite).stdout
    assert "ann\tbecomes case 4" in shown
    assert "'Sheet'!A2 = 9" in shown
    run("discard", suite, "7", made["draft"])
    assert run("drafts", suite).stdout == ""


def test_wrong_use_leaves_nothing_behind(suite: Path) -> None:
    with pytest.raises(UsageError, match="CELL=VALUE"):
        run("add", suite, "7", "nonsense")
    with pytest.raises(UsageError, match="none is given"):
        run("suggest", suite, "7", "--model", "some-model")
    with pytest.raises(UsageError, match="--accept cannot be used with --model"):
        run("suggest", suite, "7", "--model", "m", "--accept", "1", "--submissions", suite)
    with pytest.raises(UsageError, match="no mutator"):
        run("suggest", suite, "7", "--mutator", "magic")
    with pytest.raises(UsageError, match="not ROW:COUNT"):
        run("add", suite, "7", "--insert-rows", "x")
    with pytest.raises(JudgeError):
        run("set", suite, "7", "9", "A2=9")
    assert run("drafts", suite).stdout == ""


@pytest.mark.bubblewrap
@pytest.mark.slow
def test_cases_are_made_changed_and_checked(
    suite: Path, references: list[str], sandbox: list[str]
) -> None:
    said = run("add", suite, "7", "A2=-9", *references, *sandbox).output
    assert "'Sheet'!B2: 2 -> -18" in said
    assert "other.py: agrees with the gold" in said
    run("set", suite, "7", "4", "A3=-8", *references, *sandbox)
    case = load_suite(suite).task("7").cases[3]
    gold = values(case.gold_path.read_bytes())
    assert [gold[row, 2] for row in (2, 3, 4, 5)] == [-18, -16, 6, 8]
    said = run("add", suite, "7", "A2=5", *references[:2], *sandbox, code=1).output
    assert "only 1 independent source gives this answer" in said
    draft = next(line.split("\t")[1] for line in run("drafts", suite).stdout.splitlines()[:1])
    said = run("set", suite, "7", draft, "--gold", "B2=10", *references[:2], *sandbox).output
    assert "saved: 5_7_input.xlsx" in said
    mine = json.loads(run("set", suite, "7", "4", "A4=0", "--draft", "--json").stdout)["draft"]
    run("set", suite, "7", "4", "A5=0", *references, *sandbox)
    with pytest.raises(StoreError, match="nothing was overwritten"):
        run("set", suite, "7", mine, *references, *sandbox)
    run("set", suite, "7", mine, "--onto", "current", *references, *sandbox)
    gold = values(case.gold_path.read_bytes())
    assert [gold[row, 2] for row in (2, 3, 4, 5)] == [-18, -16, 0, 0]
    log = json.loads(run("log", suite, "--json").stdout)
    assert [(each["case"], each["changed"]) for each in log] == [
        (4, ["'Sheet'!A2"]),
        (4, ["'Sheet'!A3"]),
        (5, ["'Sheet'!A2"]),
        (4, ["'Sheet'!A5"]),
        (4, ["'Sheet'!A4"]),
    ]
    assert "3 tasks" not in run("check", suite, *sandbox).output
    (suite / "spreadsheet/7/3_7_answer.xlsx").write_bytes(doubling_case(1, 2, 3, 4)[1])
    with pytest.raises(SuiteError, match="1 of 1 tasks"):
        run("check", suite, "7", *sandbox)


@pytest.mark.bubblewrap
@pytest.mark.slow
def test_suggestions_strength_and_hacks(
    suite: Path, references: list[str], sandbox: list[str], tmp_path: Path
) -> None:
    solutions = tmp_path / "solutions.jsonl"
    solutions.write_text(json.dumps({"id": 7, "solution": WRONG}) + "\n")
    out = ["--out", tmp_path / "strength", "--json"]
    (before,) = json.loads(
        run("strength", suite, "--submissions", solutions, *out, *sandbox).stdout
    )
    assert any("solutions #0" in name for name in before["survivors"])

    workbook = tmp_path / "hack.xlsx"
    workbook.write_bytes(doubling_case(1, -2, 3, 4)[0])
    common = [str(suite), "7", str(workbook), "--submissions", str(solutions), *sandbox]
    refused = CliRunner().invoke(hack, [*common, *references[:2]])
    assert refused.exit_code == 1
    assert "two independent references must agree" in refused.output
    admitted = CliRunner().invoke(hack, [*common, *references, "--json"])
    assert admitted.exit_code == 0, admitted.output
    assert json.loads(admitted.stdout)["trials"][0]["verdict"] == "WA"
    assert (suite / "spreadsheet/7/4_7_input.xlsx").read_bytes() == workbook.read_bytes()

    shown = run("suggest", suite, "7", *references, *sandbox, "--json", "--mutator", "negative")
    (idea,) = map(json.loads, shown.stdout.splitlines())
    assert (idea["rejected"], idea["gold_by"]) == ("", ["one.py", "other.py"])
    named = [*references, *sandbox, "--mutator", "negative", "--accept", idea["number"]]
    run("suggest", suite, "7", *named)
    assert [case.number for case in load_suite(suite).task("7").cases] == [1, 2, 3, 4, 5]
    assert "is removed" in run("remove", suite, "7", "5", "--why", "a second look").output
    assert [case.number for case in load_suite(suite).task("7").cases] == [1, 2, 3, 4]
    assert "taken back: a second look" in run("log", suite, "7").stdout


@pytest.mark.bubblewrap
@pytest.mark.slow
def test_what_kills_a_program_is_suggested_and_decided(
    suite: Path, references: list[str], sandbox: list[str], tmp_path: Path
) -> None:
    solutions = tmp_path / "solutions.jsonl"
    solutions.write_text(json.dumps({"id": 7, "solution": WRONG}) + "\n")
    common = [suite, "7", "--submissions", solutions, *sandbox]
    common += ["--mutator", "negative", *references[:2]]
    said = run("suggest", *common).output
    assert "1. contested, negative" in said
    assert "kills: solutions.jsonl: solution #0 (WA)" in said
    assert "0 sound, 1 contested, each makes a program fail; 0 ideas rejected" in said
    with pytest.raises(
        UsageError, match="suggestion 1 is contested: only one source gives this answer"
    ):
        run("suggest", *common, "--accept", "1")
    with pytest.raises(UsageError, match="there is no suggestion 9"):
        run("suggest", *common, "--accept", "9")
    run("suggest", *common, "--accept", "1", "--decide", "one.py")
    (record,) = json.loads(run("log", suite, "--json").stdout)
    assert (record["decided"], len(record["kills"]), record["case"]) == ("one.py", 1, 4)
    with pytest.raises(UsageError, match="no solution of task 7 is accepted"):
        run("suggest", *common)
    with pytest.raises(UsageError, match="none is given"):
        run("suggest", suite, "7", "--model", "some-model")


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000, "\u0663"])
def test_what_is_not_a_number_is_reported(suite: Path, number: str) -> None:
    with pytest.raises(UsageError, match="is not a draft"):
        run("set", suite, "7", number, "B6=", "--draft")
    for rows in (number, f"5:{number}"):
        with pytest.raises(UsageError, match="is not ROW:COUNT"):
            run("add", suite, "7", "--insert-rows", rows, "--draft")


def test_a_hack_that_is_not_a_file_is_not_waited_for(suite: Path, references: list[str]) -> None:
    solutions = suite.parent / "solutions.jsonl"
    solutions.write_text(json.dumps({"id": 7, "solution": WRONG}) + "\n")
    fifo = suite.parent / "case.xlsx"
    os.mkfifo(fifo)
    common = [str(suite), "7", str(fifo), "--submissions", str(solutions), "--dry-run"]
    outcome = CliRunner().invoke(hack, [*common, *references])
    assert isinstance(outcome.exception, WorkbookError)
    assert "a FIFO, not a regular file" in str(outcome.exception)
