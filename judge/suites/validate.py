"""Finds everything wrong or odd in a suite, and counts what it has; runs and computes nothing."""

from __future__ import annotations

import enum
import filecmp
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypedDict, TypeVar

from judge.compare.checklists.items import NAME as CHECKLIST
from judge.compare.checklists.items import ChecklistOptions, Judged
from judge.compare.checklists.kinds import kind_of
from judge.compare.contract import GoldFaultError
from judge.compare.registry import checker_of
from judge.core.task import FileKind, Gold, Task, TestCase
from judge.errors import SuiteError, UsageError, WorkbookError
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
    root, definition = suite.root.resolve(), suite.suite_format.definition
    for done, task in enumerate(suite.tasks, start=1):
        findings.extend(check_task(task, root, definition))
        on_progress(done, len(suite.tasks))
    return findings


def findings_of_corrections(corrected: CorrectedSuite) -> list[SuiteFinding]:
    """Findings for the corrections that were applied to a suite, and for those that do not fit."""
    definition = corrected.suite.suite_format.definition
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


_Key = TypeVar("_Key", str, int)


@dataclass(frozen=True, slots=True)
class SuiteStats:
    """Counts of a suite.

    Attributes:
        tasks: number of tasks.
        cases: number of test cases.
        tasks_by_type: instruction type -> tasks.
        cases_by_type: instruction type -> test cases.
        tasks_by_case_count: number of cases -> how many tasks have that many.
        tasks_by_checker: name of the checker, with its styles -> tasks.
        items_by_kind: kind of checklist items -> how many.
        points_by_judge: who judges checklist items (deterministic, llm, human, program) -> points.
        tasks_by_judging: how far tasks with a checklist are judged without a model or a person
            (``in full``, ``in part`` or ``not at all``) -> tasks.
        excluded: tasks that the suite itself leaves out.
        named_sheet: tasks whose position or ``answer_sheet`` names a sheet.
        several_ranges: tasks whose position has several ranges, separated by commas.
        median_instruction_words: median number of words in an instruction.
        workbook_bytes: size of all inputs and golds.
        largest_workbook_bytes: size of the largest one; 0 without workbooks.
    """

    tasks: int
    cases: int
    tasks_by_type: dict[str, int]
    cases_by_type: dict[str, int]
    tasks_by_case_count: dict[int, int]
    tasks_by_checker: dict[str, int]
    items_by_kind: dict[str, int]
    points_by_judge: dict[str, float]
    tasks_by_judging: dict[str, int]
    excluded: int
    named_sheet: int
    several_ranges: int
    median_instruction_words: float
    workbook_bytes: int
    largest_workbook_bytes: int


def compute_stats(suite: Suite) -> SuiteStats:
    """Computes the statistics of a suite; reads the sizes of its workbooks but opens none.

    Raises:
        SuiteError: a workbook has disappeared since the suite was loaded.
    """
    sizes = []
    for task in suite.tasks:
        for case in task.cases:
            for path in case.paths:
                try:
                    sizes.append(path.stat().st_size)
                except OSError as error:
                    raise SuiteError(f"{path} cannot be read: {error.strerror}") from error
    cases_by_type: Counter[str] = Counter()
    for task in suite.tasks:
        cases_by_type[task.kind] += len(task.cases)
    return SuiteStats(
        tasks=len(suite.tasks),
        cases=suite.case_count,
        tasks_by_type=_counts(task.kind for task in suite.tasks),
        cases_by_type=dict(sorted(cases_by_type.items())),
        tasks_by_case_count=_counts(len(task.cases) for task in suite.tasks),
        tasks_by_checker=_counts(
            checker_of(task.checker).describe(task.checker) for task in suite.tasks
        ),
        **_checklists(suite.tasks),
        excluded=sum(task.excluded is not None for task in suite.tasks),
        named_sheet=sum(
            "answer_sheet" in task.details or "!" in task.details.get("answer_position", "")
            for task in suite.tasks
        ),
        several_ranges=sum("," in task.details.get("answer_position", "") for task in suite.tasks),
        median_instruction_words=median(len(task.instruction.split()) for task in suite.tasks),
        workbook_bytes=sum(sizes),
        largest_workbook_bytes=max(sizes, default=0),
    )


class _Checklists(TypedDict):
    """Counts the checklist items of a suite; empty if it has no checklists."""

    items_by_kind: dict[str, int]
    points_by_judge: dict[str, float]
    tasks_by_judging: dict[str, int]


def _checklists(tasks: Iterable[Task]) -> _Checklists:
    kinds: Counter[str] = Counter()
    judging: Counter[str] = Counter()
    points: dict[str, float] = {}
    for task in tasks:
        if task.checker.name != CHECKLIST:
            continue
        items = ChecklistOptions.of(task.checker.own_options).items
        judges = [kind_of(item).judged for item in items]
        kinds.update(item.kind for item in items)
        for item, judged in zip(items, judges, strict=True):
            own = 0.0 if item.penalty else item.points
            points[judged.value] = points.get(judged.value, 0.0) + own
        judging[_judging(task, judges)] += 1
    return {
        "items_by_kind": dict(sorted(kinds.items())),
        "points_by_judge": dict(sorted(points.items())),
        "tasks_by_judging": dict(sorted(judging.items())),
    }


def _judging(task: Task, judges: Sequence[Judged]) -> str:
    """How far a task is judged without a model or a person: in full, in part or not at all."""
    if task.reason_left_out() is not None or Judged.DETERMINISTIC not in judges:
        return "not at all"
    return "in full" if set(judges) == {Judged.DETERMINISTIC} else "in part"


def _counts(values: Iterable[_Key]) -> dict[_Key, int]:
    return dict(sorted(Counter(values).items()))
