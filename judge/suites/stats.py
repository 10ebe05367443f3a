"""Statistics that show people what a suite contains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypedDict, TypeVar

from judge.compare.checklists.items import NAME as CHECKLIST
from judge.compare.checklists.items import ChecklistOptions, Judged
from judge.compare.checklists.kinds import kind_of
from judge.compare.registry import checker_of
from judge.core.task import Task
from judge.errors import SuiteError
from judge.suites.suite import Suite

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
    """Counts the checklist items of a suite; empty without checklists."""

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
