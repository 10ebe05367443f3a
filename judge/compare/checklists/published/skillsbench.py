"""SkillsBench's tests of workbook tasks as items."""

from __future__ import annotations

import posixpath
from dataclasses import replace

from judge.compare.checklists.items import Outcome, State, not_judged
from judge.compare.checklists.published.data import Shown, as_check
from judge.compare.checklists.suites import PublishedSuite
from judge.compare.checklists.workspace import Workspace
from judge.compare.published.skillsbench.attempt import PASSED, SKIPPED, Attempt
from judge.compare.published.skillsbench.tests import OUTPUTS, TESTS, judge_test

__all__ = ["OUTPUTS", "SUITE", "TESTS"]


def _names(check: object) -> tuple[str, str]:
    """Task and test."""
    written = as_check(check)
    return str(written.get("task")), str(written.get("test"))


def _attempt(task: str, workspace: Workspace) -> Attempt:
    return workspace.once("skillsbench", lambda: _read(task, workspace))


def _read(task: str, workspace: Workspace) -> Attempt:
    path = workspace.path_of(posixpath.basename(OUTPUTS[task]))
    files = {posixpath.basename(name): data for name, data in workspace.before.items()}
    return Attempt(workspace.files.get(path), {**files, **workspace.golds})


def _official(check: object, workspace: Workspace) -> Outcome:
    task, test = _names(check)
    result = judge_test(task, test, _attempt(task, workspace))
    if result.result == SKIPPED:
        return not_judged(f"the test is skipped: {result.detail}")
    made = Shown(detail=result.detail).outcome(right=result.result == PASSED)
    return replace(made, state=State.ERROR) if result.result == "error" else made


def _in_words(check: object) -> str:
    test = _names(check)[1].rpartition("::")[2].removeprefix("test_")
    return test.replace("_", " ")


def _faults(check: object) -> tuple[str, ...]:
    task, test = _names(check)
    if test in TESTS.get(task, {}):
        return ()
    return (f"{task} has no test {test!r}",)


SUITE = PublishedSuite(_official, _official, _in_words, _faults)
