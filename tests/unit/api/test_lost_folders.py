"""A results directory that is removed while it is in use: an error, and no wrong report."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import judge.api.resources
from judge.api.commands import score
from judge.api.options import ScoreOptions
from judge.api.progress import Silent
from judge.api.rejudging import rejudge
from judge.errors import StoreError
from judge.grading.batch import Event
from judge.grading.store import CASES_FILE, REPORT_FILE, RunDirectory
from judge.report.html import report_html
from judge.report.load import load_run
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from tests.unit.report.runs import TABLE, TaskSpec, book, make_suite

SUITE = (TaskSpec("1", cases=2), TaskSpec("2", cases=2))


def removed(run: Path) -> None:
    shutil.rmtree(run)


def renamed(run: Path) -> None:
    run.rename(run.parent / "elsewhere")


def replaced(run: Path) -> None:
    """Replaced by a copy, so that every file has the right name and content."""
    shutil.copytree(run, run.parent / "copy")
    shutil.rmtree(run)
    (run.parent / "copy").rename(run)


def without_records(run: Path) -> None:
    (run / CASES_FILE).unlink()


def other_records(run: Path) -> None:
    data = (run / CASES_FILE).read_bytes()
    (run / "new").write_bytes(data * 2)
    (run / "new").rename(run / CASES_FILE)


def cut_records(run: Path) -> None:
    with (run / CASES_FILE).open("r+b") as file:
        file.truncate(10)


LOST = "while this command was using it|has changed while it was in use"
LOSSES = [removed, renamed, replaced, without_records, other_records, cut_records]
Loss = Callable[[Path], None]


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return make_suite(tmp_path / "suite", SUITE).root


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    folder = tmp_path / "outputs"
    folder.mkdir()
    for name in ("1_1", "2_1", "1_2", "2_2"):
        (folder / f"{name}_output.xlsx").write_bytes(book(TABLE))
    return folder


class Losing(Silent):
    """A progress display that removes something after a number of cases."""

    def __init__(self, run: Path, loss: Loss, at: int) -> None:
        self._run, self._loss, self._at = run, loss, at

    def __call__(self, event: Event) -> None:
        if event.done == self._at:
            self._loss(self._run)


def losing(run: Path, loss: Loss, at: int = 1) -> Callable[[str], Losing]:
    return lambda _name: Losing(run, loss, at)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("at", [1, 4])
def test_scoring_workbooks_ends_with_an_error(
    tmp_path: Path, suite: Path, outputs: Path, loss: Loss, at: int
) -> None:
    run = tmp_path / "run"
    options = ScoreOptions(dataset=str(suite), out=run, recalc="never", jobs=1)
    with pytest.raises(StoreError, match=LOST) as caught:
        score(outputs, options, progress=losing(run, loss, at))
    assert caught.value.exit_code == 9
    assert not (run / REPORT_FILE).exists()


@pytest.mark.parametrize("loss", LOSSES)
def test_scoring_programs_ends_with_an_error(
    tmp_path: Path, suite: Path, monkeypatch: pytest.MonkeyPatch, loss: Loss
) -> None:
    right = RunResult(status=RunStatus.OK, output_status=OutputStatus.COLLECTED, output=book(TABLE))
    sandbox = ScriptedSandbox([right] * 8)
    monkeypatch.setattr(judge.api.resources, "open_sandbox", lambda *_, **__: sandbox)
    lines = [f'{{"id": "{number}", "solution": "pass"}}\n' for number in (1, 2)]
    (tmp_path / "solutions.jsonl").write_text("".join(lines))
    run = tmp_path / "run"
    options = ScoreOptions(dataset=str(suite), out=run, recalc="never", jobs=1)
    with pytest.raises(StoreError, match=LOST):
        score(tmp_path / "solutions.jsonl", options, progress=losing(run, loss))
    assert not (run / REPORT_FILE).exists()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_run_that_is_complete_is_not_reported_on_from_memory(
    tmp_path: Path, suite: Path, outputs: Path, loss: Loss
) -> None:
    """Everything is reused and nothing appended, but the records are checked all the same."""
    run = tmp_path / "run"
    options = ScoreOptions(dataset=str(suite), out=run, recalc="never", jobs=1)
    score(outputs, options)
    (run / REPORT_FILE).unlink()
    with pytest.raises(StoreError, match=LOST):
        score(outputs, options, progress=losing(run, loss, 2))
    assert not (run / REPORT_FILE).exists()


def test_records_that_were_rewritten_in_place_are_missed(
    tmp_path: Path, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file with the same length: what it lacks is noticed from what was judged."""
    right = RunResult(status=RunStatus.OK, output_status=OutputStatus.COLLECTED, output=book(TABLE))
    sandbox = ScriptedSandbox([right] * 8)
    monkeypatch.setattr(judge.api.resources, "open_sandbox", lambda *_, **__: sandbox)
    (tmp_path / "solutions.jsonl").write_text('{"id": "1", "solution": "pass"}\n')
    run = tmp_path / "run"

    def blank(path: Path) -> None:
        size = (path / CASES_FILE).stat().st_size
        with (path / CASES_FILE).open("r+b") as file:
            file.write(b" " * (size - 1))

    options = ScoreOptions(dataset=str(suite), out=run, recalc="never", jobs=1)
    with pytest.raises(StoreError, match="2 of the 2 verdicts of this command are not in it"):
        score(tmp_path / "solutions.jsonl", options, progress=losing(run, blank, 2))
    assert not (run / REPORT_FILE).exists()
    (again,) = score(tmp_path / "solutions.jsonl", options)
    assert again.report["overall"]["soft_restriction"] == 1


@pytest.mark.parametrize("apply", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_judging_again_ends_with_an_error(
    tmp_path: Path, suite: Path, outputs: Path, loss: Loss, apply: bool
) -> None:
    run = tmp_path / "run"
    score(outputs, ScoreOptions(dataset=str(suite), out=run, recalc="never", jobs=1))
    (run / REPORT_FILE).unlink()
    done = 0

    def on_case(_case: object, _total: int) -> None:
        nonlocal done
        done += 1
        if done == 2:
            loss(run)

    with pytest.raises(StoreError, match=LOST) as caught:
        rejudge(run, recalc="never", apply=apply, jobs=1, on_case=on_case)
    assert caught.value.exit_code == 9
    assert not (run / REPORT_FILE).exists()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_report_is_of_what_is_there(
    tmp_path: Path, suite: Path, outputs: Path, loss: Loss
) -> None:
    run = tmp_path / "run"
    score(outputs, ScoreOptions(dataset=str(suite), out=run, recalc="never", jobs=1))

    def on_page(done: int, _total: int) -> None:
        if done == 1:
            loss(run)

    with pytest.raises(StoreError, match=LOST):
        report_html(run, on_page=on_page)


def test_a_run_that_goes_on_can_be_read_meanwhile(
    tmp_path: Path, suite: Path, outputs: Path
) -> None:
    run = tmp_path / "run"
    options = ScoreOptions(dataset=str(suite), out=run, recalc="never", jobs=1)
    score(outputs, options)
    loaded = load_run(run)
    score(outputs, ScoreOptions(dataset=str(suite), out=run, recalc="never", profile="strict"))
    loaded.check_intact()


def test_a_folder_that_takes_nothing_is_an_error(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run") as store:
        store.append(CASES_FILE, {"task": "1"})
        shutil.rmtree(tmp_path / "run")
        with pytest.raises(StoreError, match="is gone"):
            store.append(CASES_FILE, {"task": "2"})
        with pytest.raises(StoreError, match="is gone"):
            store.put_workbook(b"data")
        with pytest.raises(StoreError, match="is gone"):
            store.write_run({})
    assert not (tmp_path / "run").exists()
