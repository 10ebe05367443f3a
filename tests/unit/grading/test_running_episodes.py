"""Judging what episodes left: the stored file, FAIL, missing and changed files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.compare.cells.options import range_spec
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import KeptOutput, Origin, Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import Verdict
from judge.grading.batch import Settings, grade
from judge.grading.case import GradingRules
from judge.grading.rejudge import rejudge_cases
from judge.grading.running import EPISODE, episode_outcome, kept_key
from judge.grading.store import RunDirectory
from judge.recalc.policy import Recalculator
from judge.sandbox.scripted import ScriptedSandbox
from tests.unit.grading.test_batch import workbook


def settings() -> Settings:
    return Settings(
        sandbox=ScriptedSandbox(),
        recalculator=Recalculator([], mode="never"),
        rules=GradingRules(profile=get_profile("standard"), recalc_mode="never"),
        limits=Limits(),
    )


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """Two cases whose answer is 1 and 2 in A1."""
    cases = []
    for number in (1, 2):
        case = TestCase.of_workbooks(number, tmp_path / f"i{number}", tmp_path / f"g{number}")
        case.input_path.write_bytes(workbook(-number))
        case.gold_path.write_bytes(workbook(number))
        cases.append(case)
    return Task("t", "?", "Cell-Level Manipulation", tuple(cases), range_spec("A1"))


def _kept(store: RunDirectory, value: object, **more: Any) -> KeptOutput:
    return KeptOutput(store.path, store.put_workbook(workbook(value)), "a.xlsx", **more)


def _submission(outputs: dict[int, KeptOutput]) -> Submission:
    return Submission("t", None, "/mnt/data/in.xlsx", "/mnt/data/out.xlsx", outputs=outputs)


def _verdicts(store: RunDirectory, task: Task, submission: Submission) -> list[Verdict]:
    found = grade(store, [(task, submission)], settings())
    return [each.verdict for each in found.results.values()]


def test_the_file_that_is_kept_is_judged(tmp_path: Path, task: Task) -> None:
    with RunDirectory(tmp_path / "run") as store:
        first = _kept(store, 1)  # once: a workbook holds the second in which it was written
        submission = _submission({1: first, 2: _kept(store, 7)})
        assert _verdicts(store, task, submission) == [Verdict.AC, Verdict.WA]
        again = grade(store, [(task, submission)], settings())
        assert again.reused == 2
        (result, _) = again.results.values()
        assert result.run["status"] == EPISODE
        assert result.run["origin"] == "solution"
        other = _submission({1: first, 2: _kept(store, 2)})
        changed = grade(store, [(task, other)], settings())
        assert changed.reused == 1
        assert [each.verdict for each in changed.results.values()] == [Verdict.AC, Verdict.AC]


def test_who_gives_up_is_wrong_and_stays_so(tmp_path: Path, task: Task) -> None:
    with RunDirectory(tmp_path / "run") as store:
        # Even where the file is right.
        submission = _submission({1: _kept(store, 1, ended="fail"), 2: _kept(store, 2)})
        found = grade(store, [(task, submission)], settings())
        first, second = found.results.values()
        assert (first.verdict, second.verdict) == (Verdict.WA, Verdict.AC)
        assert first.cause == "it was answered that the task cannot be done"
        cases = [(task, 0, case) for case in task.cases]
        rejudged = rejudge_cases(
            store, cases, settings(), lambda _, digest: store.get_workbook(digest) or "gone"
        )
        assert [each.after.verdict for each in rejudged] == [Verdict.WA, Verdict.AC]
        assert [each.unproven for each in rejudged] == ["", ""]


def test_what_is_missing_or_was_changed(tmp_path: Path, task: Task) -> None:
    with RunDirectory(tmp_path / "run") as store:
        kept = _kept(store, 1)
        nothing = KeptOutput(store.path, None, problem="it is a link")
        found = grade(store, [(task, _submission({1: nothing}))], settings())
        first, second = found.results.values()
        assert (first.verdict, first.cause) == (Verdict.NO, "no file was left: it is a link")
        assert (second.verdict, second.cause) == (Verdict.NO, "no episode was held on this case")
        assert kept.sha256 is not None
        right = store.get_workbook(kept.sha256)
        assert right is not None
        store.workbook_path(kept.sha256).write_bytes(workbook(2))
        submission = _submission({1: kept, 2: nothing})
        found = grade(store, [(task, submission)], settings())
        first, second = found.results.values()
        assert first.verdict is Verdict.JE
        assert "was changed" in first.cause
        # Put in its place again, it is judged: a JE is no result.
        store.workbook_path(kept.sha256).write_bytes(right)
        again = grade(store, [(task, submission)], settings())
        assert again.reused == 1
        assert again.results["t", 0, 1].verdict is Verdict.AC


def test_values_are_trusted_where_only_the_program_wrote_them(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run") as store:
        by_hand, by_code = _kept(store, 1, gui_only=True), _kept(store, 1)
        origins = []
        for each in (by_hand, by_code):
            for trusts in (True, False):
                answer = episode_outcome(each, trusts_values=trusts).answer
                assert answer is not None
                origins.append(answer.origin)
        # What a record says is not enough: the command has to trust it.
        assert origins == [Origin.FINISHED, *[Origin.SOLUTION] * 3]
        assert kept_key(by_hand) != kept_key(by_code)
        assert len({kept_key(x) for x in (None, by_hand, replace(by_hand, ended="fail"))}) == 3
