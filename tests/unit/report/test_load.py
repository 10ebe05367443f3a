from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from judge.core.verdict import Verdict
from judge.errors import StoreError, SuiteError, UsageError
from judge.grading.overrides import override_verdict
from judge.grading.store import RunDirectory
from judge.report.load import load_run
from judge.report.report import report_data
from judge.suites import Suite
from tests.unit.report.runs import CELL, Solution, TaskSpec, make_run, make_suite

TASKS = (TaskSpec("1", cases=2), TaskSpec("2", cases=2))


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "suite", TASKS)


def test_only_what_the_report_counts(tmp_path: Path, suite: Suite) -> None:
    # The last case has a record, but of other code or other rules: the report says "not run".
    path = make_run(
        tmp_path / "run", suite, [Solution("1", ("AC", None)), Solution("2", ("WA",) * 2)]
    )
    stranger = make_run(tmp_path / "other", suite, [Solution("1", ("AC", "AC"))])
    records = (path / "cases.jsonl").read_text() + (stranger / "cases.jsonl").read_text()
    (path / "cases.jsonl").write_text(records)
    run = load_run(path)
    assert list(run.submission("1").results) == [1]
    assert run.submission("1").cases == (1, 2)
    assert run.tasks_without_submission == 0


def test_records_that_are_later_than_the_report_are_noted(tmp_path: Path, suite: Suite) -> None:
    path = make_run(tmp_path / "run", suite, [Solution("1", ("AC", "AC"))])
    assert load_run(path).notes == ()
    later = make_run(
        tmp_path / "x", suite, [Solution("1", ("WA", "AC")), Solution("2", ("AC",) * 2)]
    )
    with (path / "cases.jsonl").open("a") as file:
        file.write((later / "cases.jsonl").read_text())
    run = load_run(path)
    assert run.submission("1").results[1].verdict is Verdict.WA
    first, second = run.notes
    assert first.startswith("1 verdicts on record are later than report.json")
    assert second.startswith("1 solutions with verdicts on record are left out")


def test_without_a_report_everything_on_record_counts(tmp_path: Path, suite: Suite) -> None:
    path = make_run(tmp_path / "run", suite, [Solution("2", ("AC", "WA"))], report=False)
    run = load_run(path)
    assert [each.task_id for each in run.submissions] == ["2"]
    assert run.submissions[0].instruction_type == CELL
    assert run.tasks_without_submission == 1
    assert "no report.json yet" in run.notes[0]


def test_a_run_without_its_suite_still_has_scores(tmp_path: Path, suite: Suite) -> None:
    path = make_run(tmp_path / "run", suite, [Solution("1", ("AC", "WA"))])
    with_suite = report_data(path)
    shutil.rmtree(suite.root)
    data = report_data(path)
    assert data.overall == with_suite.overall
    assert "the suite is not available" in data.notes[0]
    assert data.tasks[0].instruction is None
    assert all(each.unknown_tasks == 1 for each in data.breakdowns)


def test_a_suite_that_changed_is_not_taken(tmp_path: Path, suite: Suite) -> None:
    path = make_run(tmp_path / "run", suite, [Solution("1", ("AC", "WA"))])
    shutil.rmtree(suite.root)
    make_suite(suite.root, [*TASKS, TaskSpec("3")])
    assert load_run(path).suite is None
    with pytest.raises(SuiteError, match="has changed since this run"):
        load_run(path, str(suite.root))


def test_what_is_not_a_run_is_named(tmp_path: Path, suite: Suite) -> None:
    with pytest.raises(StoreError, match="holds no run"):
        load_run(tmp_path)
    path = make_run(tmp_path / "run", suite, [Solution("1", (None, None))], report=False)
    with pytest.raises(StoreError, match="no case has been judged yet"):
        load_run(path)


def test_an_unknown_submission_is_named(tmp_path: Path, suite: Suite) -> None:
    run = load_run(make_run(tmp_path / "run", suite, [Solution("1", ("AC", "AC"))]))
    with pytest.raises(UsageError, match="task 2, sample 0"):
        run.submission("2")


def test_verdicts_changed_by_hand_count(tmp_path: Path, suite: Suite) -> None:
    path = make_run(tmp_path / "run", suite, [Solution("1", ("AC", "WA"))])
    with RunDirectory(path) as store:
        override_verdict(store, ("1", 0, 2), Verdict.AC, by="me", why="the gold is wrong")
    run = load_run(path)
    assert run.submission("1").results[2].verdict is Verdict.AC
    assert run.submission("1").automatic[2].verdict is Verdict.WA
    data = report_data(path)
    assert data.overall.soft_restriction.value == 1.0
    assert data.manual_verdicts == 1
    case = data.tasks[0].cases[1]
    assert case.manual is not None
    assert (case.manual.automatic, case.manual.by) == ("WA", "me")
    assert case.cause == "changed by hand from WA by me: the gold is wrong"
