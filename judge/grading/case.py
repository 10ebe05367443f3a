"""Judges one submission on the test cases of its task: turns facts into verdicts.

The sandbox reports facts, the recalculation reports values, and the comparison reports differences.
Only this module turns them into a verdict.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from judge.compare.contract import AnswerFaultError, GoldFaultError, Rules
from judge.compare.registry import checker_of
from judge.console import visible
from judge.core.finding import Finding
from judge.core.records.cases import CaseComparison
from judge.core.submission import Answer
from judge.core.task import CaseInput, FileKind, Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import JudgeError, StoreError, WorkbookError
from judge.grading.running import RunOutcome
from judge.recalc.computing import EngineCompute
from judge.recalc.policy import Recalculator
from judge.workbook.reader import open_workbook

TASK_LEFT_OUT, CASE_LEFT_OUT = "the task is left out", "the case is left out"
LEFT_OUT = (TASK_LEFT_OUT, CASE_LEFT_OUT)
"""The beginning of the cause if a task or case was left out on request; this is not a fault."""


@dataclass(frozen=True, slots=True)
class GradingRules(Rules):
    """How outputs are compared with golds, and what computes their formulas.

    Attributes:
        recalc_mode: when formulas are computed: ``auto``, ``never`` or ``always``.
        engines: identity of the calculation engines, for reuse keys.
    """

    recalc_mode: str = "auto"
    engines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on an answer.

    Attributes:
        verdict: AC, WA, NC, IW, BT or JE.
        cause: one line for people.
        comparison: the record of the comparison, as it is written to cases.jsonl.
        timings_s: seconds spent on ``recalculation`` and on ``comparison``.
        error: the failure of the judge, if the verdict is JE.
    """

    verdict: Verdict
    cause: str
    comparison: CaseComparison = field(default_factory=CaseComparison)
    timings_s: Mapping[str, float] = field(default_factory=dict)
    error: JudgeError | None = None


class CaseJudge:
    """Judges answers; every verdict on an answer comes from here.

    Safe to use from several threads.

    Args:
        recalculator: computes formulas that have no trusted value.
        rules: profile and options.

    Attributes:
        compute: computes formulas for the checkers.
        rules: profile and options.
    """

    def __init__(self, recalculator: Recalculator, rules: Rules) -> None:
        self.compute = EngineCompute(recalculator)
        self._recalculator = recalculator
        self.rules = rules
        self._input_problems: dict[CaseInput, str | None] = {}

    def judge(self, task: Task, case: TestCase, answer: Answer) -> Judgement:
        """Compares an answer with the golds of its case.

        The verdict is BT for a fault of the suite, IW for a fault of the answer and JE for a fault
        of the judge; other cases are not affected.

        Args:
            task: the task, with its checker.
            case: the case, with its golds and inputs.
            answer: the answer; its files may be hostile.

        Raises:
            StoreError: records cannot be written; every other case would fail as well.
        """
        if (fault := known_fault(task, case.number)) is not None:
            return Judgement(Verdict.BT, fault)
        started = time.perf_counter()
        compute = EngineCompute(self._recalculator)
        try:
            checker = checker_of(task.checker)
            finding = checker.check(task, case, case.golds, answer, compute, self.rules)
        except GoldFaultError as error:
            return Judgement(Verdict.BT, error.message)
        except AnswerFaultError as error:
            seconds = time.perf_counter() - started
            return Judgement(Verdict.IW, error.message, timings_s={"comparison": seconds})
        except StoreError:
            raise
        except JudgeError as error:
            return Judgement(Verdict.JE, error.message, error=error)
        except Exception as error:  # noqa: BLE001  only this case is affected
            # A bug in the judge that one file triggered: the other cases continue.
            failure = JudgeError(
                f"the judge failed: {type(error).__name__}: {error} ({_raised_at(error)})"
            )
            failure.__cause__ = error
            return Judgement(Verdict.JE, failure.message, error=failure)
        total_s = time.perf_counter() - started
        return Judgement(
            verdict_of_finding(finding),
            finding.cause,
            comparison=finding.record,
            timings_s={"recalculation": compute.spent_s, "comparison": total_s - compute.spent_s},
        )

    def conclude(self, task: Task, sample: int, case: TestCase, outcome: RunOutcome) -> CaseResult:
        """Makes the result of a case after its run.

        Args:
            task: the task, with its checker.
            sample: number of the submission among those of its task.
            case: the case, with its golds and inputs.
            outcome: the outcome of the run.

        Raises:
            StoreError: records cannot be written.
        """
        ran = bool(outcome.record) and outcome.verdict not in {None, Verdict.CE, Verdict.JE}
        fault = known_fault(task, case.number)
        if fault is None and ran:
            # If an input cannot be read, every program fails: that is the suite's fault.
            fault = self._problem_of_input(case.question)
        measured, answer = None, outcome.answer
        if fault is not None:
            outcome = RunOutcome(Verdict.BT, fault, outcome.record)
            measured = self._measured(task, case, answer)
        judgement = None
        if measured:
            judgement = Judgement(Verdict.BT, outcome.cause, measured)
        elif outcome.verdict is None and outcome.answer is not None:
            judgement = self.judge(task, case, outcome.answer)
        return case_result(task.id, sample, case.number, outcome, judgement)

    def _problem_of_input(self, case: CaseInput) -> str | None:
        """Checks each input of a suite only once, however many submissions there are."""
        if case not in self._input_problems:
            self._input_problems[case] = problem_of_input(case)
        return self._input_problems[case]

    def _measured(self, task: Task, case: TestCase, answer: Answer | None) -> CaseComparison | None:
        """Computes the figure that some checkers report on left-out tasks, without a verdict."""
        if answer is None:
            return None
        try:
            return checker_of(task.checker).measure(task, case.golds, answer)
        except (JudgeError, OSError) as error:
            return {"notes": [f"nothing was measured: {error}"]}


def verdict_of_finding(finding: Finding) -> Verdict:
    """Returns AC, WA, or NC if the answer differs only in values that could not be computed."""
    if finding.agrees:
        return Verdict.AC
    return Verdict.NC if finding.undecided else Verdict.WA


def known_fault(task: Task, case: int | None = None) -> str | None:
    """Returns why a task, or one of its cases, is a known bad test; None if no fault is known.

    Args:
        task: the task.
        case: number of the case; None for the whole task.
    """
    reason = task.reason_left_out(case)
    if reason is None:
        return None
    return f"{CASE_LEFT_OUT if task.reason_left_out() is None else TASK_LEFT_OUT}: {reason}"


def problem_of_input(case: CaseInput) -> str | None:
    """Returns why an input workbook of a case cannot be read; None if all can be read."""
    for file in case.files:
        if file.kind is FileKind.WORKBOOK:
            try:
                open_workbook(file.path)
            except WorkbookError as error:
                return f"{file.path.name}: {error.message}"
    return None


def case_result(
    task_id: str, sample: int, case: int, outcome: RunOutcome, judgement: Judgement | None
) -> CaseResult:
    """Combines the outcome of the run and the judgement into a result.

    Raises:
        JudgeError: neither of them has a verdict.
    """
    verdict, cause = outcome.verdict, outcome.cause
    comparison: CaseComparison = {}
    timings_s: dict[str, float] = {}
    if (wall_s := outcome.record.get("wall_s")) is not None:
        timings_s["run"] = float(wall_s)
    if judgement is not None:
        verdict, cause, comparison = judgement.verdict, judgement.cause, judgement.comparison
        timings_s.update(judgement.timings_s)
    if verdict is None:
        raise JudgeError(f"case {case} of task {task_id} was not judged")
    return CaseResult(
        task_id=task_id,
        sample=sample,
        case=case,
        verdict=verdict,
        cause=visible(cause),
        run=outcome.record,
        comparison=comparison,
        timings_s=timings_s,
    )


def _raised_at(error: Exception) -> str:
    """Returns the file and line at which an exception was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(frame.filename).name}, line {frame.lineno}"
