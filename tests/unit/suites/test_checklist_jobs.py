"""Other outputs through ``benchmarks/checklists.py``: faults are named, not raised."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.checklists import JOBS, Run, agree
from judge.compare.cells.computing import NoEngines

CHECK = {
    "command": "check-file-exists /home/user/Documents/a.csv",
    "key": "exists",
    "expected": True,
}


def folder(root: Path, *jobs: Mapping[str, object]) -> Path:
    task = root / "opencomputer/tasks/calc_a"
    task.mkdir(parents=True)
    record = {"id": "calc_a", "task": "Write it.", "verification": [CHECK]}
    (task / "task.json").write_text(json.dumps(record))
    (root / "a.csv").write_bytes(b"a\n")
    (root / JOBS).write_text("".join(json.dumps(job) + "\n" for job in jobs))
    return root


def job(name: str, **fields: object) -> dict[str, object]:
    files = [{"name": "a.csv", "path": "a.csv"}]
    return {"suite": "opencomputer", "job": name, "task": "calc_a", "files": files, **fields}


@pytest.mark.parametrize("tasks", [False, True])
def test_odd_jobs_are_named_and_the_others_judged(
    tmp_path: Path, tasks: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    data = folder(
        tmp_path,
        job("right"),
        job("none", files=[{"name": "a.csv", "missing": True}]),
        job("gone", files=[{"name": "a.csv", "path": "gone.csv"}]),
        job("unknown", task="calc_b"),
        {**job("other"), "suite": "nobody"},
    )
    lines = list(Run(data, NoEngines(), tasks=tasks).lines(["opencomputer"]))
    assert [line.record() for line in lines] == [
        {"suite": "opencomputer", "job": "right", "check": "0", "passed": True},
        {"suite": "opencomputer", "job": "none", "check": "0", "passed": False},
    ]
    said = capsys.readouterr().err
    assert "gone: not judged" in said
    assert "unknown: not judged" in said
    assert "no suite 'nobody'" in said


def test_another_list_of_jobs_has_its_outputs_next_to_it_or_with_the_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = folder(tmp_path / "data")
    listed = tmp_path / "kept" / "others.jsonl"
    listed.parent.mkdir()
    (listed.parent / "b.csv").write_bytes(b"b\n")
    own = [{"name": "a.csv", "path": "b.csv"}]
    lines = [json.dumps(job("with")), json.dumps(job("beside", files=own)), "no json", "[]"]
    listed.write_text("\n".join(lines))
    run = Run(data, NoEngines(), listed=listed)
    assert [line.job for line in run.lines(["opencomputer"]) if line.passed] == ["with", "beside"]
    assert run.not_judged == 0
    said = capsys.readouterr().err
    assert "line 3: not a job" in said
    assert "line 4: not a job" in said


def test_a_check_that_raises_fails_and_a_skipped_test_does_not() -> None:
    assert agree(None, False)
    assert agree("error", "failure")
    assert not agree("skipped", "failure")
    assert not agree(True, None)
