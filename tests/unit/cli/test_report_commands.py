"""The commands that use a finished run, as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import openpyxl
import pytest
from click.testing import CliRunner, Result

from judge.cli.main import judge
from judge.errors import JudgeError
from tests.unit.report.runs import Solution, TaskSpec, book, make_run, make_suite

AS_TEXT = book((("Name", "Amount"), ("Ann", "1"), ("Bob", 2), ("Cyd", 3)))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    suite = make_suite(tmp_path / "suite", [TaskSpec("1", cases=2), TaskSpec("2", cases=2)])
    solutions = [Solution("1", ("AC", "AC"), output=AS_TEXT), Solution("2", ("WA", "RE"))]
    return make_run(tmp_path / "run", suite, solutions)


@pytest.fixture
def other(run: Path) -> Path:
    suite = make_suite(run.parent / "again", [TaskSpec("1", cases=2), TaskSpec("2", cases=2)])
    solutions = [Solution("1", ("AC", "AC")), Solution("2", ("AC", "AC"))]
    return make_run(run.parent / "other", suite, solutions)


def call(*arguments: object) -> Result:
    return CliRunner().invoke(judge, [str(each) for each in arguments])


def refused(*arguments: object) -> JudgeError:
    result = call(*arguments)
    assert isinstance(result.exception, JudgeError), result.output
    return result.exception


def test_report_in_its_plain_forms(run: Path, tmp_path: Path) -> None:
    document = json.loads(call("report", run, "--format", "json", "--seed", 9).stdout)
    assert document["overall"]["hard_restriction"]["value"] == 0.5
    assert document["method"]["seed"] == 9
    assert call("report", run, "--format", "markdown").stdout.startswith("# run\n")
    table = call("report", run, "--format", "csv", "--table", "tasks").stdout.splitlines()
    assert len(table) == 3
    target = tmp_path / "report.md"
    result = call("report", run, "--format", "markdown", "--out", target)
    assert result.exit_code == 0
    assert "## Scores" in target.read_text()


def test_compare_runs_as_text_and_json(run: Path, other: Path) -> None:
    shown = call("compare-runs", run, other)
    assert shown.exit_code == 0
    assert "other against run, 2 tasks" in shown.stdout
    assert "hard +50.00 points" in shown.stdout
    assert "solved by other alone: 1 (2)" in shown.stdout
    document = json.loads(call("compare-runs", run, other, "--json").stdout)
    assert document["pairs"][0]["won"] == ["2"]
    assert document["pairs"][0]["p_hard"] == 1.0
    assert document["method"]["resamples"] == 10_000


def test_compare_runs_takes_two(run: Path) -> None:
    assert call("compare-runs", run).exit_code == 2


def test_rejudge_shows_then_writes(run: Path) -> None:
    shown = call("rejudge", run, "--recalc", "never", "--profile", "strict")
    assert shown.exit_code == 0
    assert "soft 50.00 % before, 0.00 % after" in shown.stdout
    assert "AC to WA: 2" in shown.stdout
    assert "nothing written; add --apply" in shown.stdout
    assert json.loads((run / "report.json").read_text())["overall"]["soft_restriction"] == 0.5
    document = json.loads(
        call("rejudge", run, "--recalc", "never", "--profile", "strict", "--apply", "--json").stdout
    )
    assert document["applied"] is True
    assert document["changes"] == [{"before": "AC", "after": "WA", "cases": 2}]
    assert json.loads((run / "report.json").read_text())["overall"]["soft_restriction"] == 0.0


def test_rejudge_names_a_record_that_is_wrong(run: Path) -> None:
    call("rejudge", run, "--recalc", "never", "--profile", "strict", "--apply")
    lines = (run / "cases.jsonl").read_text().splitlines()
    edited = [line.replace('"WA"', '"AC"') for line in lines[-4:]]
    (run / "cases.jsonl").write_text("\n".join([*lines[:-4], *edited]) + "\n")
    shown = call("rejudge", run, "--recalc", "never", "--profile", "strict")
    assert "2 records are wrong: the same rules give another verdict" in shown.stdout
    assert "task 1, case 1: the record says AC, the comparison says WA  " in shown.stdout
    assert shown.exit_code == 0


def test_rejudge_names_a_verdict_that_cannot_be_checked(run: Path) -> None:
    for path in (run / "workbooks").glob("*/*"):
        path.unlink()
    error = refused("rejudge", run, "--recalc", "never")
    assert error.exit_code == 11
    assert "2 of 4 verdicts cannot be determined" in error.message


def test_limits_are_of_programs(run: Path) -> None:
    assert "Add --rerun" in str(refused("rejudge", run, "--cpu", 5).hint)


def test_a_verdict_by_hand_and_back(run: Path) -> None:
    by = ("--by", "Ann", "--why", "the gold rounds")
    shown = call("rejudge", run, "--case", "2/1", "--verdict", "ac", *by)
    assert shown.stdout == "2/1: WA is now AC, changed by Ann\n"
    assert "1 verdicts were changed by hand" in call("report", run, "--format", "markdown").stdout
    shown = call("rejudge", run, "--case", "2/1", "--verdict", "auto", *by)
    assert "the judge's own verdict counts again" in shown.stdout


def test_half_a_change_by_hand_is_refused(run: Path) -> None:
    assert "which case" in refused("rejudge", run, "--verdict", "AC").message
    assert "which verdict" in refused("rejudge", run, "--case", "2/1").message
    assert "as 59196/2" in refused("rejudge", run, "--case", "2", "--verdict", "AC").message
    error = refused("rejudge", run, "--case", "2/1", "--verdict", "AC", "--by", "Ann")
    assert "requires a name and a reason" in error.message
    assert error.exit_code == 2


def test_audit_there_and_back(run: Path) -> None:
    shown = call("audit", run, "--sample", 2)
    assert "2 of 2 instructions, 4 cases, seed 20240624" in shown.stdout
    workbook = openpyxl.load_workbook(run / "audit.xlsx")
    page = workbook["verdicts"]
    for row in range(2, 6):
        page.cell(row, 8).value = "right"
    page.cell(2, 8).value = "wrong"  # an accepted case of task 1
    workbook.save(run / "audit.xlsx")
    shown = call("audit", run, "--read", run / "audit.xlsx")
    assert shown.exit_code == 0
    assert "1 of 2 accepted cases are wrong" in shown.stdout
    assert "1 of 2 instructions have a wrong case that was accepted" in shown.stdout
    document = json.loads(call("audit", run, "--read", run / "audit.xlsx", "--json").stdout)
    assert document["cases"]["false_positive"] == 1
    assert document["instruction_false_positive"]["value"] == 0.5
    assert "may hold marks" in refused("audit", run).message


@pytest.mark.parametrize("command", ["report", "compare-runs", "rejudge", "audit"])
def test_help_needs_no_run(command: str) -> None:
    result = call(command, "--help")
    assert result.exit_code == 0
    assert "RUN" in result.stdout or "FIRST" in result.stdout


def test_a_full_disk_is_named_with_the_file(run: Path) -> None:
    error = refused("report", run, "--out", "/dev/full")
    assert error.message == "/dev/full: cannot be written: the disk is full"
    assert error.hint == "Make room and run the same command again."
