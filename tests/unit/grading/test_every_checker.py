"""What the judge does for every checker: cases that are left out, golds that cannot be opened."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from judge.compare.cells.options import range_spec
from judge.compare.contract import Rules
from judge.compare.profiles import get_profile
from judge.compare.registry import check_options, checker_names, checker_of
from judge.core.submission import Answer, AnswerFile, AnswerForm, Origin
from judge.core.task import (
    LEFT_OUT_CASES_OPTION,
    LEFT_OUT_OPTION,
    CheckerSpec,
    Gold,
    InputFile,
    Task,
    TestCase,
)
from judge.core.verdict import Verdict
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.keys import FileDigests, comparison_key
from judge.grading.verify import verify_case
from judge.recalc.policy import Recalculator
from tests.boards import Made, workbook
from tests.unit.compare.boards.test_boards import board

REASON = "the gold of the case is blank"
RULE = {"type": "sheet_data", "sheet_idx0": "RI0", "sheet_idx1": "EI0"}
ASKED = {"func": "compare_csv", "result": "out.csv", "gold": "gold.xlsx"}


@dataclass(frozen=True)
class Example:
    """A task of one checker, and an answer that is right.

    Attributes:
        spec: the checker with its options.
        reads_golds: whether its golds are files that it opens.
        decides: whether it decides anything.
        context: what the suite states, such as the answer position.
    """

    spec: CheckerSpec
    reads_golds: bool = True
    decides: bool = True
    context: Mapping[str, str] = field(default_factory=dict)


EXAMPLES: Mapping[str, Example] = {
    "boards": Example(CheckerSpec("boards", {"board": board((1, "cells.values"))})),
    "cell_range": Example(range_spec("B2:B9")),
    "charts": Example(CheckerSpec("charts"), decides=False),
    "checklist": Example(
        CheckerSpec(
            "checklist",
            {"items": [{"id": "all", "kind": "range", "range": "A1:C9", "gold": "gold.xlsx"}]},
        )
    ),
    "metrics": Example(CheckerSpec("metrics", {"metrics": (ASKED,)})),
    "rules": Example(CheckerSpec("rules", {"rules": (RULE,)})),
    "typed_answer": Example(
        CheckerSpec("typed_answer", {"variables": {"total": {"type": "int"}}}), reads_golds=False
    ),
    "unjudged": Example(CheckerSpec("unjudged"), reads_golds=False, decides=False),
}


@pytest.fixture
def judge() -> CaseJudge:
    return CaseJudge(Recalculator([], mode="never"), Rules(get_profile("standard")))


def task_of(example: Example, folder: Path) -> Task:
    """Two equal cases, the second of which is left out."""
    cases = []
    for number in (1, 2):
        home = folder / str(number)
        home.mkdir()
        (home / "input.xlsx").write_bytes(workbook(Made(value=1)))
        gold = Gold(value={"total": 7})
        if example.spec.name != "typed_answer":
            gold = Gold(home / "gold.xlsx")
            text = b"a,b\n1,2\n"
            content = text if example.spec.name == "metrics" else workbook()
            (home / "gold.xlsx").write_bytes(content)
        cases.append(TestCase(number, (InputFile(home / "input.xlsx"),), (gold,)))
    spec = example.spec.with_options({LEFT_OUT_CASES_OPTION: {"2": REASON}})
    form = AnswerForm.WORKBOOK if example.reads_golds else AnswerForm.TEXT
    return Task("7", "?", "?", tuple(cases), spec, answer=form, context=example.context)


def right(task: Task) -> Answer:
    """An answer that is right, even if the golds are changed later."""
    if task.checker.name in {"typed_answer", "unjudged"}:
        return Answer(Origin.SOLUTION, values={"total": 7})
    if task.checker.name == "metrics":
        return Answer(Origin.FINISHED, (AnswerFile("out.csv", b"a,b\n1,2\n"),))
    return Answer.of_workbook(workbook(), Origin.FINISHED)


def test_no_checker_is_missing_here() -> None:
    assert set(EXAMPLES) == set(checker_names())


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_case_that_is_left_out_leaves_the_others_alone(
    name: str, tmp_path: Path, judge: CaseJudge
) -> None:
    example, task = EXAMPLES[name], task_of(EXAMPLES[name], tmp_path)
    first, second = task.cases
    expected = Verdict.AC if example.decides else Verdict.BT
    verdict = judge.judge(task, first, right(task))
    assert (verdict.verdict, REASON in verdict.cause) == (expected, False), verdict.cause
    left_out = judge.judge(task, second, right(task))
    assert (left_out.verdict, REASON in left_out.cause) == (Verdict.BT, True)


@pytest.mark.parametrize("option", [LEFT_OUT_OPTION, LEFT_OUT_CASES_OPTION])
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_whatever_is_asked_of_a_checker_it_never_sees_why_something_is_left_out(
    name: str, option: str, tmp_path: Path, judge: CaseJudge
) -> None:
    asked = EXAMPLES[name]
    before = replace(task_of(asked, tmp_path), checker=asked.spec)
    value: object = REASON if option == LEFT_OUT_OPTION else {"2": REASON}
    task = replace(before, checker=asked.spec.with_options({option: value}))
    checker, case = checker_of(task.checker), task.cases[0]
    check_options(task.checker)
    assert checker.describe(task.checker) == checker.describe(before.checker)
    assert checker.needs(task, case, judge.rules) == checker.needs(before, case, judge.rules)
    assert checker.examine(task, case, None) == checker.examine(before, case, None)
    assert checker.own_answers(task, case.golds[0]) == checker.own_answers(before, case.golds[0])
    compared = checker.compared(task, case.golds, right(task), judge.rules)
    assert compared == checker.compared(before, case.golds, right(task), judge.rules)
    assert checker.aspects(task.checker) == checker.aspects(before.checker)
    requirements = checker.requirements(task, case.golds[0])
    assert requirements == checker.requirements(before, case.golds[0])
    measured = checker.measure(task, case.golds, right(task))
    assert measured == checker.measure(before, case.golds, right(task))


@pytest.mark.parametrize("name", [each for each in sorted(EXAMPLES) if EXAMPLES[each].decides])
@pytest.mark.parametrize("option", [LEFT_OUT_OPTION, LEFT_OUT_CASES_OPTION])
def test_what_is_left_out_changes_the_key_of_what_was_judged_before(
    name: str, option: str, tmp_path: Path
) -> None:
    task = replace(task_of(EXAMPLES[name], tmp_path), checker=EXAMPLES[name].spec)
    value: object = REASON if option == LEFT_OUT_OPTION else {"1": REASON}
    now = replace(task, checker=task.checker.with_options({option: value}))
    rules = GradingRules(get_profile("standard"))
    keys = {
        comparison_key("run", each, each.cases[0], rules, FileDigests()) for each in (task, now)
    }
    assert len(keys) == 2


FAULTS = {
    "missing": "No such file",
    "a folder": "not a regular file",
    "a loop of links": "symbolic links",
    "a FIFO": "not a regular file",
    "a file in place of its folder": "Not a directory",
    "a value": "is a value",
    "not what it should be": "",
}


def spoil(gold: Path, fault: str) -> Gold:
    """Makes a gold unreadable."""
    gold.unlink()
    if fault == "a folder":
        gold.mkdir()
    elif fault == "a loop of links":
        gold.symlink_to(gold)
    elif fault == "a FIFO":
        os.mkfifo(gold)
    elif fault == "a file in place of its folder":
        gold.write_bytes(b"")
        return Gold(gold / "gold.xlsx")
    elif fault == "not what it should be":
        gold.write_bytes(b"\xff\xfe\x00")
    return Gold(value=1) if fault == "a value" else Gold(gold)


OPENED = [each for each in sorted(EXAMPLES) if EXAMPLES[each].reads_golds]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", [each for each in OPENED if EXAMPLES[each].decides])
def test_a_gold_that_cannot_be_opened_is_a_bad_test(
    name: str, fault: str, tmp_path: Path, judge: CaseJudge
) -> None:
    task = task_of(EXAMPLES[name], tmp_path)
    case = task.cases[0]
    answer = right(task)
    case = replace(case, golds=(spoil(case.gold_path, fault),))
    judged = judge.judge(task, case, answer)
    assert (judged.verdict, judged.error) == (Verdict.BT, None), judged.cause
    assert FAULTS[fault] in judged.cause or name in {"cell_range", "metrics"}, judged.cause
    # It has a key of its own, under which the file that is put back is not looked for.
    rules = GradingRules(get_profile("standard"))
    before = comparison_key("run", task, task.cases[1], rules, FileDigests())
    assert comparison_key("run", task, case, rules, FileDigests()) != before
    checked = verify_case(task, case, judge)
    assert (checked.gold_accepted, checked.gold_problem != "") == (False, True)


@pytest.mark.parametrize("name", [each for each in OPENED if EXAMPLES[each].decides])
def test_a_machine_that_can_open_no_file_is_not_a_fault_of_the_gold(
    name: str, tmp_path: Path, judge: CaseJudge
) -> None:
    task = task_of(EXAMPLES[name], tmp_path)
    answer, case = right(task), task.cases[0]
    gold = Gold(_BusyPath(case.gold_path))
    judged = judge.judge(task, replace(case, golds=(gold,)), answer)
    assert (judged.verdict, judged.error is not None) == (Verdict.JE, True), judged.cause


class _BusyPath(type(Path())):  # type: ignore[misc]
    """A path on a machine that has too many files open."""

    def read_bytes(self) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_an_input_that_is_gone_is_named_by_verify(tmp_path: Path, judge: CaseJudge) -> None:
    task = task_of(EXAMPLES["rules"], tmp_path)
    task.cases[0].input_path.unlink()
    checked = verify_case(task, task.cases[0], judge)
    assert checked.gold_accepted
    assert checked.input_problem == "input.xlsx: cannot be read: No such file or directory"
