from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from judge.annotate.annotator import Annotator
from judge.annotate.answers import ProgramRuns
from judge.annotate.hack import Hack, edits_between, save_hack, solutions_file, try_hack
from judge.annotate.strength import (
    killed,
    measure,
    smallest_cover,
    strength_of,
    try_case,
    wrong_solutions,
)
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import TestCase
from judge.core.verdict import Verdict
from judge.errors import SubmissionError, WorkbookError
from judge.grading.batch import Settings
from judge.grading.case import GradingRules
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import RunRequest, RunResult
from judge.sandbox.scripted import ScriptedSandbox, Step
from judge.suites.suite import load_suite
from tests.unit.annotate.books import table, values
from tests.unit.annotate.conftest import doubling_case
from tests.unit.annotate.test_gold import CRASHED, TASK, program, wrote
from tests.unit.annotate.test_suggest import double

AC, WA, JE = Verdict.AC, Verdict.WA, Verdict.JE
RULES = GradingRules(get_profile("standard"))


def three_cases() -> tuple[TestCase, ...]:
    return tuple(replace(TASK.cases[0], number=number) for number in (1, 2, 3))


def solution(name: str, code: str = "pass") -> Submission:
    return replace(program(name), code=code)


@pytest.mark.parametrize(
    ("kills", "cover"),
    [
        ({}, ()),
        ({1: "", 2: ""}, ()),
        ({1: "ab", 2: "bc", 3: "abc"}, (3,)),
        ({1: "ab", 2: "bc", 3: "c"}, (1, 2)),
        ({1: "a", 2: "b", 3: "c"}, (1, 2, 3)),
        ({number: chr(96 + number) for number in range(1, 15)}, tuple(range(1, 15))),
    ],
)
def test_the_fewest_cases_that_keep_the_kills(
    kills: Mapping[int, str], cover: tuple[int, ...]
) -> None:
    assert smallest_cover({number: frozenset(names) for number, names in kills.items()}) == cover


def test_the_kill_matrix_of_a_task() -> None:
    task = replace(TASK, cases=three_cases())
    verdicts = {
        "right": {1: AC, 2: AC, 3: AC},
        "wrong on 2": {1: AC, 2: WA, 3: AC},
        "wrong on 2 and 3": {1: AC, 2: WA, 3: Verdict.RE},
        "not judged": {1: AC, 2: JE, 3: AC},
        "half run": {1: AC},
    }
    names = {name: solution(name, code=name) for name in verdicts}
    found = strength_of(task, names, verdicts)
    assert found.solutions == ("right", "wrong on 2", "wrong on 2 and 3")
    assert found.kills == {
        1: frozenset(),
        2: {"wrong on 2", "wrong on 2 and 3"},
        3: {"wrong on 2 and 3"},
    }
    assert found.adds == {1: frozenset(), 2: {"wrong on 2"}, 3: frozenset()}
    assert found.smallest == (2,)
    assert found.survivors == {"right"}
    assert found.unprotected == ""


def test_tasks_that_no_case_protects() -> None:
    task = replace(TASK, cases=three_cases()[:1])
    verdicts = {"a": {1: AC}, "b": {1: AC}}
    different = {"a": solution("a", "1"), "b": solution("b", "2")}
    assert "all 2 different" in strength_of(task, different, verdicts).unprotected
    same = {"a": solution("a", "1"), "b": solution("b", "1")}
    assert strength_of(task, same, verdicts).unprotected == ""
    passes = strength_of(task, same, verdicts, untouched_passes=True)
    assert passes.unprotected == "an untouched input passes"


def test_wrong_solutions_are_distinguished(suite: Path) -> None:
    task = load_suite(suite).task("7")
    right = solution("right", "for row in range(2, ws.max_row): pass")
    found = wrong_solutions(task, right, first_sample=10)
    assert [each.sample for each in found] == list(range(10, 10 + len(found)))
    assert "hard-coded range, line 1: 5" in [each.label for each in found]
    assert wrong_solutions(task, replace(right, code=None)) == []


def test_a_suite_is_measured_with_mutants_and_resumed(suite: Path, tmp_path: Path) -> None:
    task = load_suite(suite).task("7")
    right = solution("right", "for row in range(2, ws.max_row): pass")

    def run(request: RunRequest) -> RunResult:
        # Only the mutant with the hard-coded range is wrong, and only on the third case.
        (data,) = request.files.values()
        third = values(data)[2, 1] == 7
        if "range(2, 5)" in request.program and third:
            return wrote(doubling_case(1, 1, 1, 1)[1])
        return double(request)

    mutants = len(wrong_solutions(task, right))
    sandbox = ScriptedSandbox([run] * 3 * (1 + mutants))
    recalculator = Recalculator([], mode="never")
    settings = Settings(sandbox, recalculator, RULES, Limits())
    (found,) = measure([(task, right)], settings, tmp_path / "out")
    assert len(found.solutions) == 1 + mutants
    assert [len(found.kills[number]) for number in (1, 2, 3)] == [0, 0, 1]
    assert found.smallest == (3,)
    assert len(found.mistakes_left) == mutants - 1
    assert all(", line " in mistake for mistake in found.mistakes_left)
    assert not any("hard-coded range" in mistake for mistake in found.mistakes_left)
    again = Settings(ScriptedSandbox([]), recalculator, RULES, Limits())
    assert measure([(task, right)], again, tmp_path / "out") == [found]


def test_solutions_are_a_file_or_those_of_a_run(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=r"holds no submissions\.jsonl"):
        solutions_file(tmp_path)
    held = tmp_path / "submissions.jsonl"
    held.write_text("")
    assert solutions_file(tmp_path) == solutions_file(held) == held


def test_a_fault_of_ours_kills_nobody(suite: Path) -> None:
    with Annotator(suite, recalculator=Recalculator([], mode="never")) as desk:
        case = desk.book.case("7", 1)
    sandbox = ScriptedSandbox([wrote(case.gold), wrote(case.input)])
    with ProgramRuns(sandbox) as runs:
        trials = try_case(
            TASK,
            case,
            {"a": solution("a", "1"), "b": solution("b", "2")},
            runs,
            Recalculator([], mode="never"),
            RULES,
        )
    assert [each.verdict for each in trials] == [AC, WA]
    assert [each.name for each in killed([*trials, replace(trials[0], verdict=JE)])] == ["b"]


# -- hacks ----------------------------------------------------------------------------------------


def hacked(suite: Path, workbook: bytes, script: list[Step]) -> tuple[Annotator, Hack]:
    desk = Annotator(
        suite, sandbox=ScriptedSandbox(script), recalculator=Recalculator([], mode="never")
    )
    references = [solution("a", "1"), solution("b", "2")]
    return desk, try_hack(
        desk, "7", workbook, references=references, accepted={"old": solution("old", "3")}
    )


def test_a_hack_that_kills_becomes_a_case(suite: Path) -> None:
    workbook = doubling_case(1, 2, -3, 4)[0]
    wrong = wrote(doubling_case(1, 2, 3, 4)[1])
    desk, outcome = hacked(suite, workbook, [double, double, wrong])
    assert outcome.admitted
    saved = save_hack(desk, "7", "ann", outcome)
    assert saved.input_path.read_bytes() == workbook
    assert values(saved.gold_path.read_bytes())[4, 2] == -6
    assert saved.record["kills"] == ["old"]
    assert saved.record["kind"] == "hack"


def test_a_hack_that_kills_nobody_is_not_admitted(suite: Path) -> None:
    _, outcome = hacked(suite, doubling_case(1, 2, -3, 4)[0], [double, double, double])
    assert not outcome.refused
    assert not outcome.admitted


def test_what_is_not_a_case_is_refused(suite: Path) -> None:
    wrong = wrote(doubling_case(9, 9, 9, 9)[1])
    _, outcome = hacked(suite, doubling_case(1, 2, -3, 4)[0], [double, wrong])
    assert "sources disagree" in outcome.refused
    _, outcome = hacked(suite, doubling_case(1, 2, -3, 4)[0], [CRASHED, CRASHED])
    assert "no source gives the answer" in outcome.refused
    renamed = table(("number", "double"), (1,), (2,), (3,), (5,), title="Other")
    _, outcome = hacked(suite, renamed, [])
    assert outcome.refused == (
        "this workbook is not one of task 7: it has the sheets Other, those of the task are Sheet"
    )
    others = table(("name", "city"), *[(f"name {each}", "Rome") for each in range(9)])
    _, outcome = hacked(suite, others, [])
    assert outcome.refused == (
        "this workbook is not one of task 7: of the 6 cells of case 1, it has 0"
    )
    with pytest.raises(WorkbookError):
        hacked(suite, b"no workbook", [])


def test_the_edits_between_two_workbooks() -> None:
    before, after = table(("a", 1), ("=B1", None)), table(("a", 2), ("=B1+1", "new"))
    edited = edits_between(before, after)
    assert len(edited) == 3
    assert edits_between(before, before) == []
