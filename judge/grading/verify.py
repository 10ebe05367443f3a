"""Checks a suite by itself: can its tasks be judged, and do they distinguish right from wrong?

Each gold must be accepted as an answer, and an unchanged input must not. Golds whose range holds
formulas without a stored value are computed and flagged. Unreadable files are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from judge.compare.cells.comparison import Dynamic
from judge.compare.cells.options import CELL_RANGE, OFF
from judge.compare.contract import Examination, GoldFaultError
from judge.compare.registry import checker_of
from judge.core.records.cases import DynamicRecord, ItemRecord
from judge.core.submission import Answer, AnswerFile, AnswerForm, Origin
from judge.core.task import Gold, Task, TestCase
from judge.core.verdict import Verdict
from judge.files.forms import Count
from judge.grading.case import CaseJudge, GradingRules, Judgement, known_fault
from judge.recalc.policy import Recalculator
from judge.workbook.reader import open_workbook, workbooks_kept


@dataclass(frozen=True, slots=True)
class DynamicCheck:
    """Whether it can be measured that an answer to the case follows its inputs.

    Attributes:
        own: the class of the gold as its own answer: ``live`` or ``not_measurable``.
        reason: why the gold is not measurable; empty if it is.
        as_constants: the class of the gold after the formulas of its answer were replaced by their
            values; None if the gold is not measurable, or a value could not be computed.
    """

    own: str
    reason: str
    as_constants: str | None


@dataclass(frozen=True, slots=True)
class ItemsCheck:
    """The items of a checklist, judged on unsolved inputs and on the golds.

    Attributes:
        deterministic: how many items the judge itself judges.
        not_judged: how many items are left to a model, a person or a program.
        without_work: ids of items that hold on the unchanged inputs, or on an empty folder.
        unreached: ids of deterministic items that can be judged on golds but hold on no gold.
        errors: ids of items that end in an error on every answer that was tried.
    """

    deterministic: Count
    not_judged: Count
    without_work: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseCheck:
    """The result of checking one test case.

    Attributes:
        task_id: the task's id as text.
        case: 1-based number of the test case.
        cells: cells in the answer range of the gold.
        gold_accepted: whether the gold is accepted as an answer.
        gold_problem: why it is not, or why the gold cannot be read.
        untouched_accepted: whether the unchanged input would be accepted; None if it cannot be
            read.
        input_problem: why the input cannot be read.
        uncached_formulas: formula cells of the gold's range that have no stored value.
        not_calculated: those of them that no engine could compute.
        notes: how the answer position was adjusted or leniently read.
        gold_forms: if golds can be given as answers in several forms (as values, as a reply):
            name of the form -> whether all golds are accepted in it.
        doubts: why the case may test little, or may accept no answer at all; one line for each
            reason.
        items: the check of its items with points; None if its checker has no items.
        dynamic: whether an answer to the task can be measured; None unless that option is set.
    """

    task_id: str
    case: Count
    cells: Count
    gold_accepted: bool
    gold_problem: str
    untouched_accepted: bool | None
    input_problem: str
    uncached_formulas: Count
    not_calculated: Count
    notes: tuple[str, ...]
    gold_forms: Mapping[str, bool] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    items: ItemsCheck | None = None
    dynamic: DynamicCheck | None = None


CheckAll = Callable[[Sequence[tuple[Task, TestCase]]], Iterable[CaseCheck]]
"""Checks cases as :func:`verify_case` does and yields the checks in the same order."""


def verify_case(task: Task, case: TestCase, judge: CaseJudge) -> CaseCheck:
    """Checks one test case; the result includes any fault of its files."""
    with workbooks_kept():
        return _verify_case(task, case, judge)


def _verify_case(task: Task, case: TestCase, judge: CaseJudge) -> CaseCheck:
    examined = Examination(units=0)
    problems: dict[str, str] = {}
    try:
        examined = checker_of(task.checker).examine(task, case, judge.compute)
        for gold in case.golds:
            for form, problem in _gold_problems(judge, task, case, gold):
                problems[form] = problems.get(form) or problem
    except GoldFaultError as error:
        name = case.golds[0].name if case.golds else "gold"
        gold_problem = f"{name}: {error.message.removeprefix(f'{name}: ')}"
    else:
        gold_problem = "; ".join(
            f"as {form}: {problem}" if form else problem
            for form, problem in problems.items()
            if problem
        )
    untouched, input_problem = _untouched(judge, task, case)
    return CaseCheck(
        task_id=task.id,
        case=case.number,
        cells=examined.units,
        gold_accepted=not gold_problem,
        gold_problem=gold_problem,
        untouched_accepted=None if gold_problem else untouched,
        input_problem=input_problem,
        uncached_formulas=examined.uncached_formulas,
        not_calculated=examined.not_calculated,
        notes=examined.notes,
        gold_forms={form: not problem for form, problem in problems.items() if form},
        doubts=examined.doubts,
        items=check_items(judge, task, case) if checker_of(task.checker).lists_items else None,
        dynamic=_dynamic(judge, task, case),
    )


def check_items(judge: CaseJudge, task: Task, case: TestCase) -> ItemsCheck | None:
    """Judges the items of a case on its inputs, on an empty folder and on its golds.

    Returns:
        The check; None if the items cannot be judged at all, which the other checks explain.
    """
    nothing = Answer(Origin.FINISHED)
    idle = [_items_on(judge, task, case, answer) for answer in (nothing, _inputs_of(task, case))]
    golds = [
        _items_on(judge, task, case, answer)
        for gold in case.golds
        for answer in _own_answers(task, gold)
    ]
    parts = [part for gold in case.golds if (part := _partial_answer(task, gold)) is not None]
    golds += [
        [item for item in _items_on(judge, task, case, answer) if item["id"] in decided]
        for answer, decided in parts
    ]
    listed = next((items for items in idle if items), None)
    if listed is None:
        return None
    deterministic = [item["id"] for item in listed if item["judged"] == "deterministic"]
    states = [{item["id"]: item["state"] for item in items} for items in (*idle, *golds) if items]
    of_golds = [{item["id"]: item["state"] for item in items} for items in golds if items]
    return ItemsCheck(
        deterministic=len(deterministic),
        not_judged=len(listed) - len(deterministic),
        without_work=tuple(
            name
            for name in deterministic
            if any(item["id"] == name and item["state"] == "holds" for run in idle for item in run)
        ),
        unreached=tuple(
            name
            for name in deterministic
            if any(name in run for run in of_golds)
            and all(run.get(name) != "holds" for run in of_golds)
        ),
        errors=tuple(
            name for name in deterministic if all(run.get(name) == "error" for run in states)
        ),
    )


def _items_on(judge: CaseJudge, task: Task, case: TestCase, answer: Answer) -> Sequence[ItemRecord]:
    return judge.judge(task, case, answer).comparison.get("items", [])


def _own_answers(task: Task, gold: Gold) -> list[Answer]:
    try:
        return list(checker_of(task.checker).own_answers(task, gold).values())
    except GoldFaultError:
        return []


def _partial_answer(task: Task, gold: Gold) -> tuple[Answer, frozenset[str]] | None:
    try:
        return checker_of(task.checker).partial_answer(task, gold)
    except GoldFaultError:
        return None


def _inputs_of(task: Task, case: TestCase) -> Answer:
    """Makes an answer from the inputs: the first if the answer is a workbook, otherwise all."""
    inputs = case.inputs[:1] if task.answer is AnswerForm.WORKBOOK else case.inputs
    files = []
    for source in inputs:
        try:
            files.append(AnswerFile(source.name, source.path.read_bytes()))
        except OSError:
            continue  # another check reports this
    return Answer(Origin.FINISHED, tuple(files))


def _dynamic(judge: CaseJudge, task: Task, case: TestCase) -> DynamicCheck | None:
    """Measures the gold with and without its formulas; None if the option is not set."""
    if task.checker.name != CELL_RANGE or task.checker.options.get("dynamic", OFF) == OFF:
        return None
    from judge.compare.cells.dynamic import constant_answer  # noqa: PLC0415  few runs use it

    gold = case.golds[0]
    try:
        data = gold.read()
    except GoldFaultError:
        return None
    own = _dynamic_record(judge, task, case, data)
    if own is None:
        return None
    as_constants = None
    if own["class"] == Dynamic.LIVE:
        workbook = open_workbook(data)
        ranges = checker_of(task.checker).areas(task, workbook, None).gold
        fixed = constant_answer(workbook, ranges, judge.compute)
        fixed_record = None if fixed is None else _dynamic_record(judge, task, case, fixed.data)
        as_constants = None if fixed_record is None else fixed_record["class"]
    return DynamicCheck(own["class"], own.get("reason", ""), as_constants)


def _dynamic_record(
    judge: CaseJudge, task: Task, case: TestCase, data: bytes
) -> DynamicRecord | None:
    answer = Answer.of_workbook(data, Origin.FINISHED, case.golds[0].name)
    return judge.judge(task, case, answer).comparison.get("dynamic")


# Inputs and golds are published workbooks: a value that Excel left is trusted.


def _gold_problems(
    judge: CaseJudge, task: Task, case: TestCase, gold: Gold
) -> Iterator[tuple[str, str]]:
    """Returns each form of a gold as an answer, with why it is not accepted (empty if it is)."""
    own = replace(case, golds=(gold,))
    for name, answer in checker_of(task.checker).own_answers(task, gold).items():
        judgement = judge.judge(task, own, answer)
        # Several right values of one variable are forms of the same kind.
        form = name.rstrip(" 0123456789")
        yield form, "" if judgement.verdict is Verdict.AC else _why(judgement)


def refused_golds(judge: CaseJudge, task: Task, case: TestCase, golds: Sequence[Gold]) -> list[str]:
    """Returns why golds are not accepted as answers to a case, one line each.

    The golds may belong to another case.

    Raises:
        GoldFaultError: one of the golds cannot be read.
    """
    reasons = []
    for gold in golds:
        answers = checker_of(task.checker).own_answers(task, gold).values()
        refused = [
            judgement
            for answer in answers
            if (judgement := judge.judge(task, case, answer)).verdict is Verdict.WA
        ]
        if refused and len(refused) == len(answers):
            reasons.append(_why(refused[0]))
    return reasons


def _untouched(judge: CaseJudge, task: Task, case: TestCase) -> tuple[bool | None, str]:
    """Returns whether the unchanged input would be accepted and, if it cannot be read, why."""
    first = case.inputs[0] if case.inputs else None
    if first is None or first.kind.value != task.answer.value or not task.answer.is_file:
        return None, ""
    try:
        data = first.path.read_bytes()
    except OSError as error:
        return None, f"{first.path.name}: cannot be read: {error.strerror}"
    answer = Answer.of_workbook(data, Origin.FINISHED, first.path.name)
    judgement = judge.judge(task, case, answer)
    if judgement.verdict in {Verdict.IW, Verdict.JE}:
        return None, f"{first.path.name}: {judgement.cause}"
    return judgement.verdict is Verdict.AC, ""


def _why(judgement: Judgement) -> str:
    return f"{judgement.verdict}: {judgement.cause}" if judgement.cause else str(judgement.verdict)


def verify_suite(
    tasks: Sequence[Task],
    recalculator: Recalculator,
    rules: GradingRules,
    *,
    jobs: int = 1,
    elsewhere: CheckAll | None = None,
    on_case: Callable[[CaseCheck, int], None] = lambda _check, _total: None,
) -> list[CaseCheck]:
    """Checks every case of the tasks, in order, except those that are left out.

    Args:
        tasks: the tasks.
        recalculator: computes golds whose range holds formulas without a value.
        rules: profile and options.
        jobs: how many cases are checked at a time.
        elsewhere: checks the cases outside this process; None for threads of this process.
        on_case: called with each finished check and the number of all checks.
    """
    pairs = [
        (task, case)
        for task in tasks
        for case in task.cases
        if known_fault(task, case.number) is None
    ]
    checks: list[CaseCheck] = []

    def take(finished: Iterable[CaseCheck]) -> None:
        for check in finished:
            checks.append(check)
            on_case(check, len(pairs))

    if elsewhere is not None:
        take(elsewhere(pairs))
        return checks
    judge = CaseJudge(recalculator, rules)

    def check_pair(pair: tuple[Task, TestCase]) -> CaseCheck:
        task, case = pair
        return verify_case(task, case, judge)

    with ThreadPoolExecutor(jobs) as pool:
        take(pool.map(check_pair, pairs))
    return checks
