"""Every answer gets its verdict in the same way, whatever the checker does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from judge.compare.cells.computing import Compute
from judge.compare.contract import (
    AnswerFaultError,
    Checker,
    Examination,
    GoldFaultError,
    Needs,
    Rules,
)
from judge.compare.profiles import get_profile
from judge.compare.registry import register, unregister
from judge.core.finding import (
    DifferenceLocation,
    Finding,
    FoundDifference,
    LocationKind,
    finding_of,
    nearest,
)
from judge.core.submission import Answer, AnswerForm, Origin
from judge.core.task import CheckerSpec, FileKind, Gold, InputFile, Task, TestCase
from judge.core.verdict import Verdict
from judge.errors import RecalcError, StoreError, UsageError
from judge.grading.case import CaseJudge
from judge.grading.running import RunOutcome, typed_outcome
from judge.recalc.policy import Recalculator

RULES = Rules(get_profile("standard"))


class Scripted(Checker):
    """A checker that follows its script; otherwise compares typed texts with gold values."""

    name = "scripted"

    def __init__(self) -> None:
        self.error: Exception | None = None

    def check_options(self, options: Mapping[str, object]) -> None:
        if options.keys() - {"case"}:
            raise UsageError("no such option")

    def needs(self, task: Task, case: TestCase, rules: Rules) -> Needs:
        return Needs(golds=False)

    def check(
        self,
        task: Task,
        case: TestCase,
        golds: Sequence[Gold],
        answer: Answer,
        compute: Compute,
        rules: Rules,
    ) -> Finding:
        if self.error is not None:
            raise self.error
        return nearest([(str(gold.value), _text_finding(gold, answer)) for gold in golds])

    def examine(self, task: Task, case: TestCase, compute: Compute | None) -> Examination:
        return Examination(units=1)

    def own_answers(self, task: Task, gold: Gold) -> dict[str, Answer]:
        return {}


def _text_finding(gold: Gold, answer: Answer) -> Finding:
    letters = max(len(str(gold.value)), len(answer.text or ""))
    wrong = [
        FoundDifference("letter", DifferenceLocation(LocationKind.KEY, str(at)))
        for at in range(letters)
        if str(gold.value)[at : at + 1] != (answer.text or "")[at : at + 1]
    ]
    return finding_of(wrong, units=letters)


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    checker = Scripted()
    register(checker)
    yield checker
    unregister(checker.name)


@pytest.fixture
def judge() -> CaseJudge:
    return CaseJudge(Recalculator([], mode="never"), RULES)


def task(*values: str) -> Task:
    golds = tuple(Gold(value=value) for value in values)
    return Task(
        "1",
        "Which word?",
        "typed",
        (TestCase(1, (), golds),),
        checker=CheckerSpec("scripted"),
        answer=AnswerForm.TEXT,
    )


def typed(text: str) -> Answer:
    return Answer(Origin.SOLUTION, text=text)


def test_a_typed_answer_is_judged(scripted: Scripted, judge: CaseJudge) -> None:
    asked = task("word")
    assert judge.judge(asked, asked.cases[0], typed("word")).verdict is Verdict.AC
    wrong = judge.judge(asked, asked.cases[0], typed("work"))
    assert (wrong.verdict, wrong.cause) == (
        Verdict.WA,
        "key 3: letter",
    )


def test_of_several_golds_the_one_that_agrees_or_the_nearest_is_named(
    scripted: Scripted, judge: CaseJudge
) -> None:
    asked = task("colour", "color")
    right = judge.judge(asked, asked.cases[0], typed("color"))
    assert right.verdict is Verdict.AC
    assert right.comparison["notes"] == ["of 2 golds, the answer agrees with color"]
    wrong = judge.judge(asked, asked.cases[0], typed("colon"))
    assert wrong.verdict is Verdict.WA
    assert wrong.comparison["notes"] == ["of 2 golds, color is the nearest"]
    assert wrong.comparison["differing_cells"] == 1


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (GoldFaultError("the gold is torn"), Verdict.BT),
        (AnswerFaultError("the answer is torn"), Verdict.IW),
        (RecalcError("no engine"), Verdict.JE),
        (KeyError("a fault in our code"), Verdict.JE),
        (RecursionError("too deep"), Verdict.JE),
    ],
)
def test_faults_have_one_verdict_each(
    scripted: Scripted, judge: CaseJudge, error: Exception, verdict: Verdict
) -> None:
    scripted.error = error
    asked = task("word")
    judgement = judge.judge(asked, asked.cases[0], typed("word"))
    assert judgement.verdict is verdict
    assert str(error).strip("'") in judgement.cause
    assert (judgement.error is not None) is (verdict is Verdict.JE)


def test_records_that_cannot_be_written_end_the_run(scripted: Scripted, judge: CaseJudge) -> None:
    scripted.error = StoreError("the disk is full")
    asked = task("word")
    with pytest.raises(StoreError):
        judge.judge(asked, asked.cases[0], typed("word"))


def test_a_case_that_ended_without_an_answer_says_what_is_missing(
    scripted: Scripted, judge: CaseJudge
) -> None:
    asked = task("word")
    missing = RunOutcome(Verdict.NO, asked.answer.missing)
    result = judge.conclude(asked, 0, asked.cases[0], missing)
    assert (result.verdict, result.cause) == (Verdict.NO, "the reply holds no answer")
    assert AnswerForm.TABLE.missing == "the program ended without writing the output table"
    result = judge.conclude(asked, 3, asked.cases[0], typed_outcome("word"))
    assert (result.verdict, result.sample, result.run["answer"]) == (Verdict.AC, 3, "word")


def test_a_question_shows_no_gold() -> None:
    secret = CheckerSpec("scripted", {"case": True, "where": "A1"}, public=("where",))
    asked = Task(
        "1",
        "Which?",
        "typed",
        (TestCase(1, (InputFile(Path("a.csv"), FileKind.TABLE),), (Gold(value="secret"),)),),
        checker=secret,
        context={"data_position": "A1:B2"},
    )
    question = asked.question
    assert question.details == {"where": "A1", "data_position": "A1:B2"}
    assert "secret" not in repr(question)
    assert question.inputs[0].path == Path("a.csv")
