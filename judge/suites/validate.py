"""Finds everything wrong or odd in a suite, without running programs or computing formulas."""

from __future__ import annotations

import enum
import filecmp
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from judge.compare.contract import GoldFaultError
from judge.compare.registry import checker_of
from judge.core.task import FileKind, Gold, Task, TestCase
from judge.errors import UsageError, WorkbookError
from judge.suites.corrections import CorrectedSuite
from judge.suites.suite import Suite
from judge.workbook.reader import open_workbook

_Find = Callable[["Severity", str | Path, str], None]


class Severity(enum.StrEnum):
    """How serious a finding is."""

    ERROR = "error"
    """The case cannot be judged."""
    WARNING = "warning"
    """The case can be judged, but it tests little or may contain a mistake."""
    NOTE = "note"
    """A tolerated irregularity, or a note from the suite."""


@dataclass(frozen=True, slots=True)
class SuiteFinding:
    """A fault or an oddity of a suite.

    Attributes:
        severity: how serious it is.
        task: the task's id as text, or None for the whole suite.
        file: the file that has the fault, relative to the suite.
        message: what is wrong or odd.
    """

    severity: Severity
    task: str | None
    file: str
    message: str


def validate_suite(
    suite: Suite,
    *,
    on_progress: Callable[[int, int | None], None] = lambda _done, _total: None,
) -> list[SuiteFinding]:
    """Checks a loaded suite, including its workbooks.

    Broken definitions and missing files are reported by :func:`judge.suites.load_suite`.

    Args:
        suite: the suite.
        on_progress: called with the number of tasks done and the number of all tasks.

    Returns:
        The findings, in suite order; those about the whole suite come first.
    """
    findings = [_of_note(note) for note in suite.notes]
    root, definition = suite.root.resolve(), suite.conventions.definition
    for done, task in enumerate(suite.tasks, start=1):
        findings.extend(check_task(task, root, definition))
        on_progress(done, len(suite.tasks))
    return findings


def findings_of_corrections(corrected: CorrectedSuite) -> list[SuiteFinding]:
    """Findings for the corrections that were applied to a suite, and for those that do not fit."""
    definition = corrected.suite.conventions.definition
    return [
        *(
            SuiteFinding(Severity.NOTE, correction.task, definition, f"corrected: {correction}")
            for correction in corrected.applied
        ),
        *(
            SuiteFinding(
                Severity.WARNING,
                correction.task,
                definition,
                f"not corrected, because {correction.field} does not have the value that the "
                f"correction expects: {correction}",
            )
            for correction in corrected.unfit
        ),
    ]


def _of_note(note: str) -> SuiteFinding:
    """Turns a note of the loader, which begins with the name of a file, into a finding."""
    file, _, message = note.partition(": ")
    return SuiteFinding(Severity.NOTE, None, file, message)


def check_task(task: Task, root: Path, definition: str) -> list[SuiteFinding]:
    """Checks one task.

    Args:
        task: the task.
        root: the suite's folder; files are named relative to it.
        definition: name of the file that defines the suite's tasks.
    """
    findings: list[SuiteFinding] = []

    def find(severity: Severity, file: str | Path, message: str) -> None:
        shown = _shown_path(file, root)
        finding = SuiteFinding(severity, task.id, shown, message.removeprefix(f"{file}: "))
        if finding not in findings:
            findings.append(finding)

    if not task.instruction.strip():
        find(Severity.WARNING, definition, "the instruction is empty: there is no question")
    if task.excluded is not None:
        find(Severity.NOTE, definition, f"the suite leaves it out: {task.excluded}")
    reason = task.reason_left_out()
    if reason is not None and reason != task.excluded:
        find(Severity.NOTE, definition, f"left out, and not judged: {reason}")
    for case in task.cases:
        _check_case(task, case, definition, find)
    return findings


def _shown_path(file: str | Path, root: Path) -> str:
    """The path of a file relative to the suite; for a file outside the suite, only its name."""
    if isinstance(file, str):
        return file
    return str(file.relative_to(root)) if file.is_relative_to(root) else file.name


def _check_case(task: Task, case: TestCase, definition: str, find: _Find) -> None:
    for file in case.inputs:
        if file.kind is FileKind.WORKBOOK:
            try:
                open_workbook(file.path)
            except WorkbookError as error:
                find(Severity.ERROR, file.path, error.message)
    for missing in case.absent:
        find(Severity.WARNING, missing.name, f"is missing: {missing.advice}")
    if (reason := task.reason_left_out(case.number)) is not None:
        if task.reason_left_out() is None:
            find(Severity.NOTE, definition, f"case {case.number} is left out: {reason}")
        return  # its golds are not used, so faults in them do not matter
    gold = case.golds[0] if case.golds else Gold()
    shown = gold.path or definition
    if gold.path is not None and case.inputs and _same_content(case.input_path, gold.path):
        find(Severity.WARNING, shown, "the gold is the untouched input")
    try:
        examined = checker_of(task.checker).examine(task, case, None)
    except (GoldFaultError, UsageError) as error:
        find(Severity.ERROR, shown, error.message)
        return
    for note in examined.notes:
        find(Severity.NOTE, definition, note)
    for doubt in examined.doubts:
        find(Severity.WARNING, shown, doubt)


def _same_content(first: Path, second: Path) -> bool:
    return first.stat().st_size == second.stat().st_size and filecmp.cmp(
        first, second, shallow=False
    )
