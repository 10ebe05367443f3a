"""SkillsBench's tests of workbook tasks as items."""

from __future__ import annotations

import posixpath
from dataclasses import replace

from judge.compare.checklists.items import Outcome, State, not_judged
from judge.compare.checklists.published.data import Shown, as_check, as_meant
from judge.compare.checklists.published.skillsbench_meant import Computed, meant_outcome
from judge.compare.checklists.suites import PublishedSuite
from judge.compare.checklists.workspace import MissingError, Workspace
from judge.compare.published.skillsbench.attempt import PASSED, SKIPPED, Attempt
from judge.compare.published.skillsbench.tests import OUTPUTS, TESTS, judge_test
from judge.errors import WorkbookError

__all__ = ["OUTPUTS", "SUITE", "TESTS"]


def _names(check: object) -> tuple[str, str]:
    """Returns the task and the test that a check names."""
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


def _standard(check: object, workspace: Workspace) -> Outcome:
    task, test = _names(check)
    attempt = workspace.once("skillsbench computed", lambda: _computed(task, workspace))
    result, fault = meant_outcome(task, test, attempt, workspace)
    official = _official(check, workspace)
    return as_meant(official, Shown(detail=result.detail), fault, right=result.result == PASSED)


def _computed(task: str, workspace: Workspace) -> Computed:
    read = _attempt(task, workspace)
    try:
        book = workspace.book(posixpath.basename(OUTPUTS[task]))
    except (MissingError, WorkbookError):
        book = None
    return Computed(read.output, read.files, book)


def _in_words(check: object) -> str:
    test = _names(check)[1].rpartition("::")[2].removeprefix("test_")
    return test.replace("_", " ")


def _faults(check: object) -> tuple[str, ...]:
    task, test = _names(check)
    if test in TESTS.get(task, {}):
        return ()
    return (f"{task} has no test {test!r}",)


SUITE = PublishedSuite(_official, _standard, _in_words, _faults)
