"""The sample for desktops: its golds decide, and there is a step list for every task."""

from __future__ import annotations

import pytest

from judge.api.judging import Judge
from judge.api.options import JudgingOptions
from judge.desktop.contract import Signal
from judge.desktop.steps import Say, read_steps
from judge.inference.desktop.setting import why_not_asked
from judge.suites import load_suite
from judge.suites.validate import validate_suite
from tests.conftest import REPOSITORY

SAMPLE = REPOSITORY / "dataset" / "sample-desktop"
TASKS = ("profit", "summary", "chart", "impossible")


def test_golds_are_accepted_and_untouched_inputs_are_not() -> None:
    suite = load_suite("sample-desktop")
    assert validate_suite(suite) == []
    assert tuple(task.id for task in suite.tasks) == TASKS
    with Judge(suite, JudgingOptions(recalc="never"), runs=False) as judge:
        for task in suite.tasks[:-1]:
            case = task.cases[0]
            assert [each.value for each in judge(task, case.gold_path).verdicts] == ["AC"], task.id
            assert [each.value for each in judge(task, case.input_path).verdicts] == ["WA"], task.id
        verdicts = [judge("impossible", text).verdicts[0].value for text in ("FAIL", "DONE")]
        assert verdicts == ["AC", "WA"]


@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_steps(task: str) -> None:
    steps = read_steps(SAMPLE / "steps" / f"{task}.yaml")
    says = [each for each in steps if isinstance(each, Say)]
    assert says == ([Say(Signal.FAIL)] if task == "impossible" else [])


def test_infeasible_tasks_are_worded_like_the_others() -> None:
    tasks = {task.id: task.question for task in load_suite("sample-desktop").tasks}
    assert [name for name, question in tasks.items() if question.signals] == ["impossible"]
    assert {why_not_asked(question) for question in tasks.values()} == {None}
    typed = load_suite("sample-typed").tasks[0].question
    assert "typed" in (why_not_asked(typed) or "")
