"""A run that is killed halfway continues without loss, and nothing is judged twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from judge.core.replies.extract import extract
from tests.conformance.conftest import open_or_skip
from tests.conformance.leftovers import (
    alive,
    containers_of,
    descendants,
    groups_of,
    started_containers_of,
    wait_until,
)
from tests.conformance.private_daemon import PrivateDaemon
from tests.conftest import REPOSITORY

SAMPLES = REPOSITORY / "dataset" / "sample" / "submissions.jsonl"
TASKS = ("1001", "1002", "1003")
MOMENT_S = 1.5
"""Long compared with the time between two checks of the records, even on a busy machine."""
CASES = 3 * len(TASKS)
INCOMPLETE = 11
Record = dict[str, object]


@pytest.fixture
def solutions(tmp_path: Path) -> Path:
    """Accepted solutions that take a moment, so that a run can be interrupted halfway."""
    kept: dict[str, str] = {}
    for line in SAMPLES.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        task_id = str(record["id"])
        if task_id in TASKS and task_id not in kept and record["expected"] == ["AC"]:
            code = extract(record["solution"]).code or ""
            code = f"import time\ntime.sleep({MOMENT_S})\n{code}"
            kept[task_id] = json.dumps(record | {"solution": code, "sample": 0})
    assert len(kept) == len(TASKS)
    path = tmp_path / "solutions.jsonl"
    path.write_text("\n".join(kept.values()) + "\n", encoding="utf-8")
    return path


class Score:
    """``judge score`` as a process, and the records that it has written so far."""

    def __init__(self, solutions: Path, backend: str, **environment: str) -> None:
        self.run = solutions.parent / "run"
        self._command = [
            sys.executable, "-c", "from judge.cli.main import main; main()", "score",
            str(solutions), "--dataset", "sample", "--out", str(self.run), "--sandbox", backend,
            "--jobs", "2", "--recalc", "never", "--quiet", "--cpu", "20", "--wall", "60",
        ]  # fmt: skip
        self._environment = {**os.environ, **environment}

    def start(self) -> subprocess.Popen[str]:
        """Starts the command."""
        return subprocess.Popen(
            self._command,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def records(self) -> list[Record]:
        """The complete lines of its records."""
        path = self.run / "cases.jsonl"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def is_in_the_middle(self) -> bool:
        """Whether some cases have been judged and others have not."""
        return len(self.records()) >= 2


def judged(records: list[Record]) -> list[Record]:
    """The fields of records that describe a solution."""
    return [record for record in records if record["verdict"] != "JE"]


def must_be_complete(score: Score, before: list[Record]) -> None:
    """Checks that every case was judged once, old records are unchanged, and no verdict is JE."""
    after = score.records()
    assert after[: len(before)] == before
    done = judged(after)
    assert len(done) == CASES
    assert len({(record["task"], record["sample"], record["case"]) for record in done}) == CASES
    assert {record["verdict"] for record in done} == {"AC"}
    report = json.loads((score.run / "report.json").read_text(encoding="utf-8"))
    assert report["overall"]["verdicts"] == {"AC": CASES}


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
    ],
)
def test_the_judge_is_killed(backend: str, solutions: Path) -> None:
    open_or_skip(backend).close()
    score = Score(solutions, backend)
    judge = score.start()
    assert wait_until(score.is_in_the_middle)
    below = descendants(judge.pid)
    judge.kill()
    judge.communicate()
    before = score.records()
    assert 2 <= len(judged(before)) < CASES
    if backend == "docker":
        assert wait_until(lambda: not started_containers_of(judge.pid))
    assert wait_until(lambda: not alive(below)), alive(below)

    again = score.start()
    _, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    must_be_complete(score, before)
    assert wait_until(lambda: not groups_of(judge.pid)), groups_of(judge.pid)
    if backend == "docker":
        assert wait_until(lambda: not containers_of(judge.pid)), containers_of(judge.pid)
        assert wait_until(lambda: not containers_of(again.pid)), containers_of(again.pid)


@pytest.fixture
def daemon() -> Iterator[PrivateDaemon]:
    open_or_skip("docker").close()
    with tempfile.TemporaryDirectory(prefix="judge-", dir="/var/tmp") as folder:
        made = PrivateDaemon(Path(folder))
        try:
            made.start()
            made.bring_image()
            yield made
        finally:
            made.stop()


@pytest.mark.docker
@pytest.mark.slow
def test_the_daemon_is_killed(daemon: PrivateDaemon, solutions: Path) -> None:
    score = Score(solutions, "docker", DOCKER_HOST=daemon.address)
    judge = score.start()
    assert wait_until(score.is_in_the_middle)
    daemon.kill()
    _, said = judge.communicate(timeout=300)
    assert judge.returncode == INCOMPLETE, said
    assert "continues where this one ended" in said
    before = score.records()
    assert 2 <= len(judged(before)) < CASES
    assert {record["verdict"] for record in before} <= {"AC", "JE"}

    daemon.start()
    assert wait_until(lambda: not daemon.running()), "containers of the killed daemon stay"
    again = score.start()
    _, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    must_be_complete(score, before)
    assert wait_until(lambda: not daemon.running())

    # What the daemon was making or removing when it was killed may stay on its list, where at
    # times not even the daemon can remove it. Nothing runs in it, as the line above shows.
