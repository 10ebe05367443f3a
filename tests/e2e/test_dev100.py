"""A hundred solutions that a language model wrote, on 298 published cases.

One of them, 62-3, computes for more than seven seconds on each of its cases and is wrong; all
others need less than half a second. With less time than that one needs, the hundred cost a third
less, and no score changes: ``judge score SOLUTIONS --dataset SUITE`` gives it all of its time.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Snapshot
from tests.e2e.conftest import COMMAND, Cli, Once, read_report, require_backend, verdicts_of
from tests.records import digests_of_run

pytestmark = [pytest.mark.data, pytest.mark.slow]

TIME = ("--cpu", "2")
OUT_OF_TIME = "62-3"
AS_WRITTEN = (*TIME, "--recalc", "never", "--profile", "official")
PUBLISHED_BEST_SOFT = 0.683
PUBLISHED_BEST_HARD = 0.63

SOLVED_OF_20 = 7
"""How many of the first 20 tasks of the suite have one of the hundred solutions."""

WITHOUT_VALUES = frozenset(
    [
        "124-9",
        "191-40",
        "208-20",
        "237-21",
        "248-48",
        "353-50",
        "395-48",
        "408-5",
        "413-15",
        "510-3",
        "53-12",
        "601-4",
        "62-3",
    ]
)
"""Tasks whose verification computes formulas, since a gold has formulas without values."""
UNTOUCHED = ("CF_3575", "41801")
NOT_UNTOUCHED = "13-1"
"""A case that the published script judges wrongly, since it looks at the wrong sheet."""


@pytest.fixture(scope="session")
def solutions(judge_data: Path) -> Path:
    """The .jsonl of model-written solutions."""
    return judge_data / "model_solutions" / "single_claude_dev100.jsonl"


@pytest.fixture(scope="session")
def suite(judge_data: Path) -> Path:
    """The suite that the solutions answer."""
    return judge_data / "spreadsheetbench_912_dev300"


@pytest.fixture(scope="session")
def graded(cli: Cli, once: Once, solutions: Path, suite: Path) -> Path:
    """A run of the hundred on bubblewrap with default options; tests only read it."""
    require_backend("bubblewrap")

    def score(folder: Path) -> None:
        options = ("--dataset", suite, "--out", folder / "run", "--sandbox", "bubblewrap", "-q")
        done = cli("score", solutions, *options, "--jobs", 2, *TIME)
        assert done.returncode == 0, done.stderr

    return once("hundred", score) / "run"


@pytest.fixture(scope="session")
def as_written(cli: Cli, once: Once, graded: Path) -> Path:
    """The same outputs as the programs left them, judged as the published script does."""

    def score(folder: Path) -> None:
        subprocess.run(["cp", "-r", graded, folder / "run"], check=True)
        done = cli("score", folder / "run", *AS_WRITTEN, "--sandbox", "bubblewrap", "-q")
        assert done.returncode == 0, done.stderr

    return once("hundred-as-written", score) / "run"


@pytest.fixture
def copied(graded: Path, tmp_path: Path) -> Path:
    """A copy of that run, which a test may change."""
    subprocess.run(["cp", "-r", graded, tmp_path / "copied"], check=True)
    return tmp_path / "copied"


@pytest.mark.bubblewrap
@pytest.mark.office
def test_the_expected_score(graded: Path) -> None:
    overall = read_report(graded)["overall"]
    assert (overall["tasks"], overall["cases"]) == (100, 298)
    assert overall["excluded"] == {}
    assert verdicts_of(read_report(graded))[OUT_OF_TIME, 0] == ["TLE"] * 3
    assert overall["verdicts"]["TLE"] == 3
    assert overall["soft_restriction"] >= PUBLISHED_BEST_SOFT
    assert overall["hard_restriction"] >= PUBLISHED_BEST_HARD


@pytest.mark.bubblewrap
@pytest.mark.office
def test_records_are_as_recorded(graded: Path, snapshot: Snapshot) -> None:
    snapshot("hundred.txt", digests_of_run(graded))


@pytest.mark.docker
@pytest.mark.bubblewrap
@pytest.mark.office
def test_both_backends_leave_the_same_outputs(
    cli: Cli, solutions: Path, suite: Path, as_written: Path, tmp_path: Path
) -> None:
    """Judges the outputs unchanged, without the engines, which are the same for every backend."""
    require_backend("docker")
    run = tmp_path / "run"
    options = ("--dataset", suite, "--out", run, "--limit", 20, "--sandbox", "docker", "-q")
    done = cli("score", solutions, *options, *AS_WRITTEN)
    assert done.returncode == 0, done.stderr
    docker = read_report(run)
    assert docker["overall"]["excluded"] == {}
    assert docker["overall"]["tasks"] == SOLVED_OF_20
    bubblewrap = verdicts_of(read_report(as_written))
    assert verdicts_of(docker).items() <= bubblewrap.items()


def _published(judge_data: Path) -> dict[tuple[str, int], dict[str, Any]]:
    path = judge_data / "official_verdicts" / "model_solutions_dev100.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(str(row["task"]), int(row["case"])): row for row in rows}


@pytest.mark.bubblewrap
@pytest.mark.office
def test_without_recalculation_official_accepts_what_the_published_script_accepted(
    as_written: Path, judge_data: Path
) -> None:
    verdicts = verdicts_of(read_report(as_written))
    published = _published(judge_data)
    ours = {key: verdicts[key[0], 0][key[1] - 1] == "AC" for key in published}
    theirs = {key: bool(row["accepted_as_written"]) for key, row in published.items()}
    assert {key: value for key, value in ours.items() if value != theirs[key]} == {}


@pytest.mark.bubblewrap
@pytest.mark.office
def test_grading_again_with_another_profile_runs_no_code(cli: Cli, copied: Path) -> None:
    run = copied
    before = {
        (record["task"], record["case"]): record["run"]
        for record in map(json.loads, (run / "cases.jsonl").read_text().splitlines())
    }
    options = ("--profile", "strict", "--sandbox", "bubblewrap", *TIME)
    done = cli("score", run, *options, "-q", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run"]["profile"] == "strict"
    for record in map(json.loads, (run / "cases.jsonl").read_text().splitlines()):
        assert record["run"] == before[record["task"], record["case"]]


@pytest.mark.bubblewrap
@pytest.mark.office
def test_the_effect_of_recalculation_and_its_interval(cli: Cli, graded: Path, copied: Path) -> None:
    run = copied
    preview = cli("rejudge", run, "--recalc", "never", "--json")
    assert preview.returncode == 0, preview.stderr
    assert read_report(run) == read_report(graded)
    done = cli("rejudge", run, "--recalc", "never", "--apply", "--json")
    assert json.loads(done.stdout)["after"] == json.loads(preview.stdout)["after"]
    shown = cli("compare-runs", run, graded, "--json")
    assert shown.returncode == 0, shown.stderr
    (pair,) = json.loads(shown.stdout)["pairs"]
    assert pair["tasks"] == 100
    assert pair["lost"] == []
    assert pair["p_hard"] < 1e-9
    assert pair["soft_difference"]["low"] > 0.3
    assert pair["hard_difference"]["difference"] == pytest.approx(
        read_report(graded)["overall"]["hard_restriction"]
        - read_report(run)["overall"]["hard_restriction"]
    )


@pytest.mark.bubblewrap
@pytest.mark.office
def test_a_run_that_was_killed_and_continued_ends_like_an_uninterrupted_one(
    cli: Cli, graded: Path, solutions: Path, suite: Path, tmp_path: Path
) -> None:
    options = ["--dataset", str(suite), "--limit", "20", "--sandbox", "bubblewrap", "-q", *TIME]
    run = tmp_path / "results" / "run"
    command = [*COMMAND, "score", str(solutions), *options, "--out", str(run)]
    cases = run / "cases.jsonl"

    def count() -> int:
        return cases.read_bytes().count(b"\n") if cases.exists() else 0

    def signalled(number: signal.Signals, *, more: int) -> tuple[int, str]:
        """Starts or continues the run; sends one signal when that many more cases are on record."""
        wanted = count() + more
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        while count() < wanted:
            assert process.poll() is None, "the run ended before the signal"
            time.sleep(0.01)
        process.send_signal(number)
        _, stderr = process.communicate(timeout=300)
        return process.returncode, stderr

    assert signalled(signal.SIGKILL, more=3)[0] == -signal.SIGKILL
    code, stderr = signalled(signal.SIGINT, more=5)
    assert code == 130
    assert "the same command continues the run" in stderr
    done = cli("score", solutions, *options, "--out", run)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in cases.read_text().splitlines()]
    keys = [(record["task"], record["case"]) for record in records]
    assert len(keys) == len(set(keys)), "a finished case ran twice"
    report, alone = read_report(run), read_report(graded)
    tasks = {(task["id"], task["sample"]): task for task in alone["tasks"]}
    assert len(report["tasks"]) == SOLVED_OF_20
    assert report["tasks"] == [tasks[task["id"], task["sample"]] for task in report["tasks"]]
    assert report["overall"]["cases"] == len(keys)
    assert report["overall"]["excluded"] == {}


@pytest.mark.bubblewrap
@pytest.mark.office
@pytest.mark.parametrize(
    ("name", "chosen", "cases"),
    [
        ("spreadsheetbench_912_dev300", (*WITHOUT_VALUES, *UNTOUCHED, NOT_UNTOUCHED), 48),
        ("spreadsheetbench_verified_dev128", (), 128),
    ],
    ids=["chosen tasks", "a whole suite"],
)
def test_published_golds_are_accepted_as_their_own_answers(
    cli: Cli, judge_data: Path, name: str, chosen: tuple[str, ...], cases: int
) -> None:
    """By the command; tests/parity/test_golds.py compares all golds of both suites itself.

    What needs no engine is compared there just so: of the large suite, those that need one are
    chosen here.
    """
    require_backend("bubblewrap")
    only = ("--ids", ",".join(chosen)) if chosen else ()
    done = cli("verify", judge_data / name, "--json", "--sandbox", "bubblewrap", *only)
    findings = json.loads(done.stdout)
    refused = [each for each in findings["checks"] if not each["gold_accepted"]]
    assert refused == []
    assert (findings["cases"], findings["golds_accepted"]) == (cases, cases)
    assert done.returncode == 0, done.stderr
    if not chosen:
        assert findings["tasks_passed_untouched"] == []
        return
    assert set(UNTOUCHED) <= set(findings["tasks_passed_untouched"])
    assert NOT_UNTOUCHED not in findings["tasks_passed_untouched"]
    computed = {each["task_id"] for each in findings["checks"] if each["uncached_formulas"]}
    assert computed == WITHOUT_VALUES
