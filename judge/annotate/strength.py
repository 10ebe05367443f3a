"""How strong the cases of a suite are: which wrong solutions each of them kills."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from judge.annotate.casebook import CaseData
from judge.annotate.judging import judge_workbooks, run_on_workbook
from judge.annotate.wrong_programs import wrong_programs
from judge.core.limits import Limits
from judge.core.records.cases import CaseComparison
from judge.core.submission import Origin, Submission
from judge.core.task import Task
from judge.core.verdict import CaseResult, Verdict
from judge.errors import WorkbookError
from judge.grading.batch import Event, Settings, grade
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.store import RunDirectory
from judge.grading.verify import verify_case
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import Sandbox
from judge.workbook.address import MAX_ROW
from judge.workbook.reader import open_workbook

MAX_EXACT = 12
"""Cases of one task up to which the smallest set is found for certain."""


@dataclass(frozen=True, slots=True)
class TaskStrength:
    """How strong the cases of one task are.

    Attributes:
        task_id: the task.
        cases: numbers of its cases.
        solutions: names of the solutions that were judged on all of them.
        kills: case -> the solutions that it does not accept.
        adds: case -> the solutions that only this case does not accept.
        smallest: the fewest cases that kill all that any kills.
        survivors: solutions that every case accepts.
        untouched_passes: whether the input as it is passes a case.
        programs: how many different programs there are among the solutions.
    """

    task_id: str
    cases: tuple[int, ...]
    solutions: tuple[str, ...]
    kills: Mapping[int, frozenset[str]]
    adds: Mapping[int, frozenset[str]]
    smallest: tuple[int, ...]
    survivors: frozenset[str]
    untouched_passes: bool
    programs: int

    @property
    def unprotected(self) -> str:
        """Why no case protects the task, or empty."""
        if self.untouched_passes:
            return "an untouched input passes"
        if self.programs > 1 and not any(self.kills.values()):
            return f"all {self.programs} different solutions pass every case"
        return ""


def strength_of(
    task: Task,
    solutions: Mapping[str, Submission],
    verdicts: Mapping[str, Mapping[int, Verdict]],
    *,
    untouched_passes: bool = False,
) -> TaskStrength:
    """Measures how strong the cases of a task are.

    Args:
        task: the task.
        solutions: name -> solution.
        verdicts: name -> case -> verdict. Solutions without a scored verdict on every case are
            left out.
        untouched_passes: whether the input as it is passes a case.
    """
    cases = tuple(case.number for case in task.cases)
    judged = {
        name: found
        for name, found in verdicts.items()
        if all(number in found and found[number].is_scored for number in cases)
    }
    kills = {
        number: frozenset(name for name, found in judged.items() if found[number] != Verdict.AC)
        for number in cases
    }
    return TaskStrength(
        task_id=task.id,
        cases=cases,
        solutions=tuple(judged),
        kills=kills,
        adds={
            number: frozenset(
                name
                for name in kills[number]
                if not any(name in kills[other] for other in cases if other != number)
            )
            for number in cases
        },
        smallest=smallest_cover(kills),
        survivors=frozenset(judged) - frozenset().union(*kills.values()),
        untouched_passes=untouched_passes,
        programs=len({solutions[name].code for name in judged}),
    )


def smallest_cover(kills: Mapping[int, frozenset[str]]) -> tuple[int, ...]:
    """The fewest cases that kill every solution that any of them kills.

    Certain for up to :data:`MAX_EXACT` cases, otherwise greedy: always the case that kills most of
    the rest.
    """
    everything = frozenset().union(*kills.values()) if kills else frozenset()
    if len(kills) <= MAX_EXACT:
        for size in range(len(kills) + 1):
            for chosen in itertools.combinations(kills, size):
                if frozenset().union(*(kills[each] for each in chosen)) == everything:
                    return chosen
    left, chosen_so_far = set(everything), []
    while left:
        best = max(kills, key=lambda number: len(kills[number] & left))
        chosen_so_far.append(best)
        left -= kills[best]
    return tuple(sorted(chosen_so_far))


# -- wrong solutions ------------------------------------------------------------------------------


def wrong_solutions(task: Task, right: Submission, *, first_sample: int = 1) -> list[Submission]:
    """Mutants of a right solution, as solutions with a label that says what is wrong.

    Args:
        task: its task, whose first input says how many rows there are.
        right: a solution that all cases accept.
        first_sample: sample number of the first mutant.
    """
    if right.code is None:
        return []
    found = wrong_programs(right.code, last_row=_last_row(task))
    return [
        replace(
            right,
            code=each.code,
            sample=first_sample + index,
            label=f"{each.mistake}, line {each.line}: {each.detail}",
            expected=(),
            provenance={},
        )
        for index, each in enumerate(found)
    ]


def _last_row(task: Task) -> int:
    try:
        workbook = open_workbook(task.cases[0].input_path)
        used = [workbook.used_range(sheet) for sheet in workbook.sheet_names]
    except WorkbookError:
        return MAX_ROW
    return max((each.max_row for each in used if each is not None), default=1)


# -- judging --------------------------------------------------------------------------------------


def judge_solutions(
    out: Path,
    pairs: Sequence[tuple[Task, Submission]],
    settings: Settings,
    *,
    on_event: Callable[[Event], None] = lambda _: None,
) -> list[CaseResult]:
    """Judges solutions on all cases of their tasks; continues what the folder holds already.

    Raises:
        JudgeError: a case could not be judged for a fault of the judge, or the batch was stopped.
    """
    with RunDirectory(out) as store:
        store.lock()
        outcome = grade(store, pairs, settings, on_event=on_event)
    if outcome.stopped is not None:
        raise outcome.stopped
    return list(outcome.results.values())


def verdicts_by_name(
    results: Iterable[CaseResult], names: Mapping[tuple[str, int], str]
) -> dict[str, dict[str, dict[int, Verdict]]]:
    """Task -> solution -> case -> verdict.

    Args:
        results: what was judged.
        names: (task, sample) -> name of the solution.
    """
    found: dict[str, dict[str, dict[int, Verdict]]] = {}
    for result in results:
        name = names.get((result.task_id, result.sample))
        if name is not None:
            found.setdefault(result.task_id, {}).setdefault(name, {})[result.case] = result.verdict
    return found


@dataclass(frozen=True, slots=True)
class Trial:
    """How a solution fared on a case that is not in the suite yet.

    Attributes:
        name: the solution.
        verdict: its verdict.
        cause: why, in one line.
        comparison: the cells in which it differs, as the comparison records them.
    """

    name: str
    verdict: Verdict
    cause: str
    comparison: CaseComparison = field(default_factory=CaseComparison)


def try_case(
    task: Task,
    case: CaseData,
    solutions: Mapping[str, Submission],
    sandbox: Sandbox,
    recalculator: Recalculator,
    rules: GradingRules,
    limits: Limits | None = None,
) -> list[Trial]:
    """Judges solutions on one case, keeping nothing.

    Raises:
        SandboxError: the sandbox failed.
    """
    judge = CaseJudge(recalculator, rules)
    found = []
    for name, submission in solutions.items():
        with sandbox.session() as session:
            outcome = run_on_workbook(session, submission, case.input, limits or Limits())
        verdict, cause = outcome.verdict, outcome.cause
        comparison = CaseComparison()
        if verdict is None:
            assert outcome.answer is not None
            judgement = judge_workbooks(
                judge, task, case.gold, outcome.answer.data, origin=Origin.SOLUTION
            )
            verdict, cause = judgement.verdict, judgement.cause
            comparison = judgement.comparison
        found.append(Trial(name, verdict, cause, comparison))
    return found


def killed(trials: Iterable[Trial]) -> list[Trial]:
    """The trials that a solution lost for a fault of its own."""
    return [
        trial for trial in trials if trial.verdict.is_scored and trial.verdict is not Verdict.AC
    ]


# -- a whole suite --------------------------------------------------------------------------------


def measure(
    pairs: Sequence[tuple[Task, Submission]],
    settings: Settings,
    out: Path,
    *,
    mutants: bool = True,
    on_event: Callable[[Event], None] = lambda _: None,
) -> list[TaskStrength]:
    """How strong the cases of the solutions' tasks are, task by task.

    Args:
        pairs: solutions with their tasks; those of one task have different sample numbers.
        settings: how to judge.
        out: folder for the verdicts; continued where it holds some.
        mutants: whether wrong solutions are made of the accepted ones, and judged too.
        on_event: called after each case.

    Raises:
        JudgeError: the batch was stopped.
    """
    results = judge_solutions(out / "solutions", pairs, settings, on_event=on_event)
    made: list[tuple[Task, Submission]] = []
    if mutants:
        lost = {
            (result.task_id, result.sample)
            for result in results
            if result.verdict is not Verdict.AC
        }
        for task, right in pairs:
            if right.key not in lost:
                first = FIRST_MUTANT * (right.sample + 1)
                made += [
                    (task, solution)
                    for solution in wrong_solutions(task, right, first_sample=first)
                ]
        if made:
            results += judge_solutions(out / "mutants", made, settings, on_event=on_event)
    everything = [*pairs, *made]
    names = {each.key: solution_name(each) for _, each in everything}
    verdicts = verdicts_by_name(results, names)
    found = []
    for task in {task.id: task for task, _ in pairs}.values():
        solutions = {solution_name(each): each for other, each in everything if other.id == task.id}
        untouched = _untouched_passes(task, settings)
        found.append(
            strength_of(task, solutions, verdicts.get(task.id, {}), untouched_passes=untouched)
        )
    return found


FIRST_MUTANT = 1_000
"""Sample number of the first mutant of sample 0; those of sample 1 begin at twice that."""


def solution_name(submission: Submission) -> str:
    """The name of a solution in a kill matrix; unique within its task."""
    return f"{submission.sample}: {submission.label or submission.model or 'solution'}"


def _untouched_passes(task: Task, settings: Settings) -> bool:
    judge = CaseJudge(settings.recalculator, settings.rules)
    checks = (verify_case(task, case, judge) for case in task.cases)
    return any(bool(check.untouched_accepted) for check in checks)
