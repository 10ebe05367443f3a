"""A run is killed halfway and started again: nothing that finished is requested again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from judge.errors import SandboxError
from judge.sandbox import open_sandbox
from tests.forked_command import ForkedCommand
from tests.inference.scripted import Reply, ScriptedServer, Seen, program

LAUNCH = [sys.executable, "-c", "from judge.cli.main import main; main()"]
GO_ON = ["infer", "--sandbox", "bubblewrap", "--no-cache", "-q"]
TASKS = 8


def slowly(seen: Seen) -> Reply:
    time.sleep(0.15)
    if seen.body.get("seed") is not None and seen.round == 1:
        return f"```python\nprint('looking at {seen.task}')\n```"
    return program(seen.task)


def submissions(out: Path) -> dict[str, dict[str, Any]]:
    path = out / "submissions.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return {str(record["id"]): record for record in map(json.loads, lines)}


def comparable(records: dict[str, dict[str, Any]]) -> dict[str, Any]:
    names = ("solution", "reply", "ended", "rounds", "tokens", "stands_alone", "input_path")
    return {task: {name: record[name] for name in names} for task, record in records.items()}


@pytest.mark.data
@pytest.mark.bubblewrap
def test_killed_and_continued(
    judge_data: Path, tmp_path: Path, forked_command: ForkedCommand
) -> None:
    """In several rounds; test_batches.py kills runs of one round at every step."""
    try:
        open_sandbox("bubblewrap", jobs=1).close()
    except SandboxError as error:
        pytest.skip(f"no bubblewrap here: {error.message}")
    suite = judge_data / "spreadsheetbench_912_dev300"

    def arguments(out: Path, url: str) -> list[str]:
        options = ["infer", "-m", "scripted-1", "--base-url", url, "--dataset", str(suite)]
        options += ["--out", str(out), "--mode", "multi", "--limit", str(TASKS), "-c", "4", "-q"]
        return [*options, "--sandbox", "bubblewrap", "--seed", "1", "--no-cache"]

    with ScriptedServer(slowly) as server:
        out = tmp_path / "killed"
        process = subprocess.Popen([*LAUNCH, *arguments(out, server.url)])
        deadline = time.monotonic() + 120
        while len(submissions_now(out)) < TASKS // 4 and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait(120)
        done = submissions_now(out)
        assert TASKS // 4 <= len(done) < TASKS, "killed in the middle"
        asked_before = server.by_task
        # What a run remembers is enough to go on.
        again = forked_command.run([*GO_ON, "--json", "--out", str(out)])
        assert again.returncode == 0, again.stderr
        asked_after = server.by_task
        for task in done:
            assert asked_after[task] == asked_before[task], "asked again"
        # At most the calls that were under way when it was killed were paid twice.
        assert len(server.seen) <= TASKS * 2 + 4
        summary = json.loads(again.stdout)["inference"]
        assert summary["finished"] == TASKS
        assert summary["reused"] == len(done)
        count = len(server.seen)
        third = forked_command.run([*GO_ON, "--out", str(out)])
        assert third.returncode == 0, third.stderr
        assert len(server.seen) == count
        left_alone = tmp_path / "left-alone"
        alone = forked_command.run(arguments(left_alone, server.url))
        assert alone.returncode == 0, alone.stderr
    assert comparable(submissions(out)) == comparable(submissions(left_alone))


def submissions_now(out: Path) -> set[str]:
    """Returns the recorded ids; an incomplete last line does not count."""
    path = out / "submissions.jsonl"
    if not path.exists():
        return set()
    *lines, _ = path.read_bytes().split(b"\n")
    return {str(json.loads(line)["id"]) for line in lines}
