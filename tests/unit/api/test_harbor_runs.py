"""Harbor's jobs as runs: scores, usage, resuming, reports, a comparison, and rewards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.api import ScoredRun, ScoreOptions
from judge.cli.main import main
from judge.core.records.runs import RunDocument
from judge.errors import IncompleteRunError, StoreError, UsageError
from judge.grading.store import RunDirectory
from judge.report.load import load_run
from judge.report.markdown import render_markdown
from judge.suites import Suite
from tests.harbor_jobs import MadeTrial, make_job
from tests.unit.report.runs import TABLE, Solution, TaskSpec, book, make_run, make_suite

GOLD = book(TABLE)
WRONG = book((("Name", "Amount"), ("Ann", 9), ("Bob", 9), ("Cyd", 9)))


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "suite", [TaskSpec("1", cases=2), TaskSpec("7-1", cases=1)])


@pytest.fixture
def job(tmp_path: Path) -> Path:
    def left(task: str, *books: bytes) -> dict[str, bytes]:
        return {
            f"artifacts/app/output/{case}_{task}_output.xlsx": each
            for case, each in enumerate(books, 1)
        }

    return make_job(
        tmp_path / "jobs" / "mine",
        MadeTrial("1", "1__a", 0, left("1", GOLD, WRONG)),
        MadeTrial("1", "1__b", 1, left("1", GOLD)),
        MadeTrial("7-1", "7-1__c", 2, result={"exception_info": {"exception_type": "Timeout"}}),
    )


def score(results: Path, suite: Suite | None = None, **options: Any) -> list[ScoredRun]:
    dataset = None if suite is None else str(suite.root)
    return judge.score(results, ScoreOptions(dataset=dataset, recalc="never", jobs=1, **options))


def run_of(folder: Path) -> RunDocument:
    with RunDirectory(folder) as store:
        return store.read_run() or RunDocument()


def test_a_job_is_scored_and_resumed(tmp_path: Path, suite: Suite, job: Path) -> None:
    out = tmp_path / "run"
    (scored,) = score(job, suite, out=out)
    verdicts = {(each.task_id, each.sample, each.case): each.verdict for each in scored.results}
    assert {key: each.value for key, each in verdicts.items()} == {
        ("1", 0, 1): "AC",
        ("1", 0, 2): "WA",
        ("1", 1, 1): "AC",
        ("1", 1, 2): "NO",
        ("7-1", 0, 1): "NO",
    }
    usage = scored.report["usage"]
    assert (usage["submissions"], usage["prompt_tokens"], usage["cost_usd"]) == (3, 3000, 0.75)
    assert usage["inference_s"] == 90
    assert scored.report["overall"]["tasks_without_submission"] == 0
    run = run_of(out)
    assert (run["model"], run["setting"]) == ("maker/model-x", "some-agent 1.2")
    assert run["layout"] == {"kind": "harbor"}
    (again,) = score(out)
    assert (again.reused, again.report["usage"]) == (5, usage)
    assert load_run(out).submission("1", 1).usage.cost_usd == 0.25


def test_a_job_is_reported_on_and_compared_with_a_run_of_solutions(
    tmp_path: Path, suite: Suite, job: Path
) -> None:
    score(job, suite, out=tmp_path / "mine")
    solved = [Solution("1", ["WA", "AC"]), Solution("7-1", ["AC"])]
    make_run(tmp_path / "other", suite, solved)
    comparison = judge.compare_runs(tmp_path / "mine", tmp_path / "other")
    (pair,) = comparison.pairs
    assert (pair.tasks, pair.won, pair.better) == (2, ("7-1",), ("7-1",))
    data = judge.report_data(tmp_path / "mine")
    assert data.usage is not None
    assert data.usage["cost_usd"] == 0.75
    words = "The agents used 3,000 prompt tokens, 150 completion tokens, 90 s"
    assert words in render_markdown(data)


def test_jobs_of_a_folder_are_runs_of_their_own(
    tmp_path: Path, suite: Suite, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_job(job.parent / "other", MadeTrial("7-1", "7-1__x"))
    monkeypatch.chdir(tmp_path)
    runs = score(job.parent, suite)
    assert [str(each.path) for each in runs] == ["results/mine", "results/other"]
    with pytest.raises(UsageError, match="2 jobs of Harbor"):
        score(job.parent, suite, out=tmp_path / "one")


def test_a_run_keeps_the_pattern_that_it_was_made_with(
    tmp_path: Path, suite: Suite, job: Path
) -> None:
    out, pattern = tmp_path / "run", "artifacts/**/{case}_*.xlsx"
    score(job, suite, out=out, outputs=pattern)
    assert run_of(out)["layout"] == {"kind": "harbor", "pattern": pattern}
    with pytest.raises(StoreError, match="different --outputs"):
        score(job, suite, out=out)
    with pytest.raises(UsageError, match="remembers where its outputs are"):
        score(out, outputs=pattern)


def test_rewards_of_one_task(tmp_path: Path, suite: Suite) -> None:
    answers, file = tmp_path / "answers", tmp_path / "verifier/reward.json"
    answers.mkdir()
    (answers / "1_1_output.xlsx").write_bytes(GOLD)
    options = {"outputs": "{case}_{task}_output.xlsx", "every_task": True, "reward": file}
    score(answers, suite, out=tmp_path / "run", ids=("1",), **options)
    found = {"reward": 0.5, "soft": 0.5, "hard": 0.0, "case_1": 1.0, "case_2": 0.0}
    assert json.loads(file.read_text()) == found
    score(answers, suite, out=tmp_path / "other", ids=("7-1",), **options)
    assert json.loads(file.read_text()) == {"reward": 0, "soft": 0, "hard": 0, "case_1": 0}


def test_rewards_are_about_one_answer(tmp_path: Path, suite: Suite, job: Path) -> None:
    with pytest.raises(UsageError, match="3 were scored"):
        score(job, suite, out=tmp_path / "run", reward=tmp_path / "reward.json")
    assert not (tmp_path / "reward.json").exists()


def test_a_test_that_is_bad_gives_no_reward(tmp_path: Path, suite: Suite) -> None:
    left = {"artifacts/app/output/1_7-1_output.xlsx": GOLD}
    job = make_job(tmp_path / "job", MadeTrial("7-1", "a", artifacts=left))
    (gold,) = (suite.root / "spreadsheet/7-1").glob("*_answer.xlsx")
    gold.write_bytes(b"no workbook")
    command = ["score", str(job), "--dataset", str(suite.root), "--out", str(tmp_path / "run")]
    command += ["--ids", "7-1", "--recalc", "never", "--quiet"]
    with pytest.raises(SystemExit) as ended:
        main([*command, "--reward", str(tmp_path / "reward.json")])
    assert ended.value.code == IncompleteRunError.exit_code
    assert not (tmp_path / "reward.json").exists()
