"""Runs too large to be kept in memory: the same report, read as it is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.api import check_complete, check_expectations
from judge.api.reporting import ScoredRun
from judge.core.verdict import Verdict
from judge.errors import SubmissionError
from judge.grading.overrides import RecordedResults
from judge.report.report_json import WrittenEntries
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from judge.suites import load_suite
from judge.suites.submissions import SubmissionIndex, index_submissions

TASKS = ("1001", "1002")
SAMPLES = 3


def play(request: RunRequest) -> RunResult:
    """Ends as the program says."""
    status = RunStatus.OK if "quiet" in request.program else RunStatus.WALL_LIMIT
    return RunResult(status, OutputStatus.MISSING, wall_s=1.0)


@pytest.fixture
def solutions(tmp_path: Path) -> Path:
    path = tmp_path / "solutions.jsonl"
    records: list[dict[str, Any]] = [
        {"id": task, "sample": sample, "solution": "print('quiet')" if sample else "loop()"}
        for sample in reversed(range(SAMPLES))
        for task in TASKS
    ]
    records[0]["tokens"] = {"prompt": 5, "completion": 7}
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


def scored(
    solutions: Path, out: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> ScoredRun:
    sandbox = ScriptedSandbox([play] * 200)
    monkeypatch.setattr("judge.api.resources.open_sandbox", lambda *_, **__: sandbox)
    chosen = judge.ScoreOptions(dataset="sample", out=out, jobs=1, recalc="never", **options)
    (run,) = judge.score(solutions, chosen)
    return run


@pytest.mark.parametrize("best_of", [False, True])
def test_a_large_run_gets_the_report_of_a_small_one(
    solutions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, best_of: bool
) -> None:
    small = scored(solutions, tmp_path / "small", monkeypatch, best_of=best_of)
    monkeypatch.setattr("judge.api.reporting.MAX_HELD", 2)
    monkeypatch.setattr("judge.report.report_json.MAX_HELD", 2)
    large = scored(solutions, tmp_path / "large", monkeypatch, best_of=best_of)
    texts = [(run.path / "report.json").read_bytes() for run in (small, large)]
    assert texts[0] == texts[1]
    assert isinstance(small.report["tasks"], list)
    assert isinstance(large.report["tasks"], WrittenEntries)
    assert list(large.report["tasks"]) == small.report["tasks"]
    assert large.report["tasks"][-2:] == small.report["tasks"][-2:]
    assert isinstance(large.results, RecordedResults)
    assert [(r.task_id, r.sample, r.case, r.verdict) for r in large.results] == [
        (r.task_id, r.sample, r.case, r.verdict) for r in small.results
    ]
    assert isinstance(large.submissions, SubmissionIndex)
    assert [each.key for _, each in large.submissions] == [
        each.key for _, each in small.submissions
    ]
    assert {each.verdict for each in large.results} == {Verdict.NO, Verdict.TLE}
    check_complete([large])
    assert check_expectations(large) == (0, [])
    # The same again judges nothing; one task alone leaves the others in the report.
    again = scored(large.path, large.path, monkeypatch, ids=("1001",))
    assert again.reused == len(load_suite("sample").task("1001").cases) * SAMPLES
    if not best_of:
        assert (large.path / "report.json").read_bytes() == texts[0]
    assert not list(large.path.glob(".*.part")), "nothing is left of writing"


def test_submissions_are_read_in_suite_order(solutions: Path, tmp_path: Path) -> None:
    suite = load_suite("sample")
    index = index_submissions(solutions, suite)
    assert [(task.id, each.sample) for task, each in index] == [
        (task, sample) for task in TASKS for sample in range(SAMPLES)
    ]
    assert (index.facts.tasks, index.facts.expects, index.facts.models) == (2, False, set())
    assert [each.key for _, each in index[1:3]] == [("1001", 1), ("1001", 2)]
    lines = solutions.read_text().splitlines(keepends=True)
    solutions.write_text("".join([" " * (len(lines[0]) - 1) + "\n", *lines[1:]]))
    with pytest.raises(SubmissionError, match="has changed while it was in use"):
        index[2]
    index.close()


def test_typed_answers_without_a_number_keep_the_one_they_were_given(tmp_path: Path) -> None:
    suite = load_suite("sample-typed")
    task = suite.tasks[0]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"id": task.id, "response": n}) + "\n" for n in "abc"))
    index = index_submissions(path, suite)
    assert [(each.sample, each.answer) for _, each in index] == [(0, "a"), (1, "b"), (2, "c")]
