"""Runs in progress: progress, locks, and what is read again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.errors import StoreError
from judge.grading.store import CASES_FILE, RunDirectory
from judge.report.view import RunShelf, is_judging
from tests.browser.made_run import few_tasks, make_run, make_suite


@pytest.fixture
def results(tmp_path: Path) -> Path:
    tasks = few_tasks()[:2]
    make_suite(tmp_path / "suite", tasks)
    make_run(tmp_path / "results" / "one", tmp_path / "suite", tasks)
    return tmp_path / "results"


def test_runs_are_the_folders_that_hold_one(results: Path) -> None:
    (results / "notes").mkdir()
    (results / "file").write_text("")
    assert list(RunShelf(results).runs()) == ["one"]
    assert list(RunShelf(results / "one").runs()) == ["one"]


@pytest.mark.parametrize("name", ["", ".", "..", "../one", "one/", "/etc", "notes", "\x00"])
def test_nothing_else_is_looked_for(results: Path, name: str) -> None:
    with pytest.raises(StoreError):
        RunShelf(results).path(name)


def test_progress(results: Path) -> None:
    shelf = RunShelf(results)
    progress = shelf.progress("one")
    assert (progress.done, progress.total, progress.running) == (6, 6, False)
    assert progress.verdicts == {"AC": 4, "WA": 2}


def test_progress_of_a_file_that_is_being_written(results: Path) -> None:
    path = results / "one" / CASES_FILE
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:20])
    shelf = RunShelf(results)
    assert shelf.progress("one").done == 1
    with path.open("ab") as file:
        file.write(lines[1][20:] + lines[2])
    assert shelf.progress("one").done == 3
    # The same case judged again is one case.
    with path.open("ab") as file:
        file.write(lines[2])
    assert shelf.progress("one").done == 3
    path.write_bytes(lines[0])
    assert shelf.progress("one").done == 1


def test_a_run_is_going_while_it_is_locked(results: Path) -> None:
    assert not is_judging(results / "one")
    with RunDirectory(results / "one") as store:
        store.lock()
        assert is_judging(results / "one")
    assert not is_judging(results / "one")
    assert not is_judging(results / "nowhere")


def test_looking_never_takes_the_lock(results: Path) -> None:
    shelf = RunShelf(results)
    with RunDirectory(results / "one") as store:
        shelf.progress("one")
        store.lock()


def test_reports_are_made_again_where_something_changed(results: Path) -> None:
    shelf = RunShelf(results)
    before = shelf.open("one")
    assert shelf.open("one") is before
    path = results / "one" / CASES_FILE
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines[0]["verdict"] = "WA"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    after = shelf.open("one")
    assert after is not before
    assert after.data.overall.soft_restriction != before.data.overall.soft_restriction


def test_no_such_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        RunShelf(tmp_path / "nowhere")
