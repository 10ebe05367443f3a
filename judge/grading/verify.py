"""A suite held against itself: can its tasks be judged, and do they tell right from wrong?

Each gold must be accepted as its own answer; an input that nobody touched must not be; golds whose
range holds formulas without a value are computed and flagged; files that cannot be read are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from judge.comparison.answer_range import prepare
from judge.core.task import Task, TestCase
from judge.core.verdict import Verdict
from judge.errors import JudgeError, PositionError, WorkbookError
from judge.grading.case import GradingRules, Judgement, judge_output
from judge.recalc.policy import Origin, Recalculator
from judge.workbook.reader import open_workbook


@dataclass(frozen=True, slots=True)
class CaseCheck:
    """What is known of one test case.

    Attributes:
        task_id: the task's id as text.
        case: 1-based number of the test case.
        cells: cells in the answer range of the gold.
        gold_accepted: whether the gold is accepted as its own answer.
        gold_problem: why not, or why the gold cannot be read.
        untouched_accepted: whether the input as it is would be accepted; None where it cannot be
            read.
        input_problem: why the input cannot be read.
        uncached_formulas: formula cells of the gold's range that have no stored value.
        not_calculated: those of them that no engine could compute.
        notes: liberties taken with the answer position.
    """

    task_id: str
    case: int
    cells: int
    gold_accepted: bool
    gold_problem: str
    untouched_accepted: bool | None
    input_problem: str
    uncached_formulas: int
    not_calculated: int
    notes: tuple[str, ...]


def verify_case(
    task: Task, case: TestCase, recalculator: Recalculator, rules: GradingRules
) -> CaseCheck:
    """Checks one test case; whatever is wrong with its files is in the result."""
    gold_data = case.gold_path.read_bytes()
    cells = uncached = not_calculated = 0
    notes: tuple[str, ...] = ()
    try:
        gold = open_workbook(gold_data)
        plan = prepare(
            task.checker,
            answer_position=task.answer_position,
            answer_sheet=task.answer_sheet,
            gold=gold,
            output=None,
        )
        notes = plan.notes
        cells = sum(each.size for each in plan.gold_ranges)
        uncached = sum(
            not cell.has_cached_value
            for each in plan.gold_ranges
            for cell in gold.formula_cells(each)
        )
        if uncached:
            filled = recalculator.fill(gold, plan.gold_ranges, origin=Origin.GOLD)
            not_calculated = len(filled.not_calculated)
    except (WorkbookError, PositionError) as error:
        gold_problem = f"{case.gold_path.name}: {error.message}"
    else:
        judgement = _judge(task, case, gold_data, gold_data, recalculator, rules)
        gold_problem = "" if judgement.verdict is Verdict.AC else _why(judgement)
    untouched, input_problem = _untouched(task, case, gold_data, recalculator, rules)
    return CaseCheck(
        task_id=task.id,
        case=case.number,
        cells=cells,
        gold_accepted=not gold_problem,
        gold_problem=gold_problem,
        untouched_accepted=None if gold_problem else untouched,
        input_problem=input_problem,
        uncached_formulas=uncached,
        not_calculated=not_calculated,
        notes=notes,
    )


def _untouched(
    task: Task,
    case: TestCase,
    gold_data: bytes,
    recalculator: Recalculator,
    rules: GradingRules,
) -> tuple[bool | None, str]:
    input_data = case.input_path.read_bytes()
    judgement = _judge(task, case, gold_data, input_data, recalculator, rules)
    if judgement.verdict in {Verdict.IW, Verdict.JE}:
        return None, f"{case.input_path.name}: {judgement.cause}"
    return judgement.verdict is Verdict.AC, ""


def _judge(
    task: Task,
    case: TestCase,
    gold_data: bytes,
    output_data: bytes,
    recalculator: Recalculator,
    rules: GradingRules,
) -> Judgement:
    try:
        return judge_output(
            task,
            gold_data,
            output_data,
            recalculator=recalculator,
            rules=rules,
            # Inputs and golds are published workbooks: a value that Excel left is trusted.
            origin=Origin.FINISHED,
            input_path=case.input_path,
        )
    except JudgeError as error:
        return Judgement(Verdict.JE, error.message)


def _why(judgement: Judgement) -> str:
    return f"{judgement.verdict}: {judgement.cause}" if judgement.cause else str(judgement.verdict)


def verify_suite(
    tasks: Sequence[Task],
    recalculator: Recalculator,
    rules: GradingRules,
    *,
    jobs: int = 1,
    on_case: Callable[[CaseCheck, int], None] = lambda _check, _total: None,
) -> list[CaseCheck]:
    """Checks every case of the tasks, in order.

    Args:
        tasks: the tasks.
        recalculator: computes golds whose range holds formulas without a value.
        rules: profile and options.
        jobs: cases at one time.
        on_case: told of each finished check and of how many there are in all.
    """
    pairs = [(task, case) for task in tasks for case in task.cases]
    checks: list[CaseCheck] = []

    def check_pair(pair: tuple[Task, TestCase]) -> CaseCheck:
        task, case = pair
        return verify_case(task, case, recalculator, rules)

    with ThreadPoolExecutor(jobs) as pool:
        for check in pool.map(check_pair, pairs):
            checks.append(check)
            on_case(check, len(pairs))
    return checks
