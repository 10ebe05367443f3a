"""Suites as tasks of Inspect: a sample for each task, its prompt as the input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, GenerateConfig

from judge.errors import SuiteError, UsageError, WorkbookError
from judge.inference.plan import InferencePlan
from judge.suites.suite import Suite, remember_suite
from sheetjudge.inspect.asking import ASKING_OPTIONS, Asking, Room, asking_of
from sheetjudge.inspect.faults import shown_by_inspect
from sheetjudge.inspect.messages import inspect_content
from sheetjudge.inspect.metrics import INSTRUCTION_TYPE, QUESTION
from sheetjudge.inspect.scorer import JUDGING_OPTIONS, check_judging, judge_verdict, options_of
from sheetjudge.inspect.solver import judge_rounds
from sheetjudge.inspect.suites import SUITE, SUITE_DIGEST, loaded_suite


@task
def spreadsheetbench(suite: str = "sample", mode: str = "single", **options: Any) -> Task:
    """Tasks that ask for a workbook, or any other suite of the judge.

    Args:
        suite: a folder, an archive or a name.
        mode: ``single``, ``multi`` (or ``multi/row-exec`` …) or ``text``.
        **options: of ``judge infer`` (``ids``, ``limit``, ``rounds`` …) and of the scorer
            (``profile``, ``style`` …).
    """
    return _task(suite, mode, options)


@task
def typed(suite: str = "sample-typed", mode: str = "single", **options: Any) -> Task:
    """Questions over tables and pictures that ask for a typed answer; arguments likewise."""
    return _task(suite, mode, options)


@task
def babelbench(suite: str = "babelbench", mode: str = "multi", **options: Any) -> Task:
    """BabelBench, in rounds as its authors ask it; arguments likewise."""
    return _task(suite, mode, options)


def _task(suite: str, mode: str, options: dict[str, Any]) -> Task:
    with shown_by_inspect():
        if unknown := sorted(options.keys() - ASKING_OPTIONS - JUDGING_OPTIONS):
            raise UsageError(
                f"the task has no option {', '.join(unknown)}",
                hint=f"It has suite, mode, {', '.join(sorted(ASKING_OPTIONS | JUDGING_OPTIONS))}.",
            )
        asked = {name: value for name, value in options.items() if name in ASKING_OPTIONS}
        judged = {name: value for name, value in options.items() if name in JUDGING_OPTIONS}
        asking = asking_of(suite, mode, asked)
        remember_suite(loaded_suite(str(suite)), str(suite))
        with closing(asking.room_for_prompts()) as room:
            samples = list(_samples(asking, room))
        # The suite is left to the samples' digest: a path would be in every shared log.
        scoring = judge_verdict(**judged)
        check_judging(loaded_suite(str(suite)), options_of(judged))
    return Task(
        dataset=MemoryDataset(samples, name=asking.plan.suite.name),
        solver=judge_rounds(suite=suite, mode=mode, **asked),
        scorer=scoring,
        config=_config(asking.plan),
        metadata={
            SUITE: asking.plan.suite.name,
            SUITE_DIGEST: asking.plan.suite.digest,
            "setting": asking.plan.setting.name,
        },
    )


def _config(plan: InferencePlan) -> GenerateConfig:
    """Temperature and nucleus of the mode; what the user says to Inspect counts before them.

    A nucleus of 1 is not said: it is what APIs take anyway, and some refuse it with a temperature.
    """
    top_p = plan.setting.top_p
    return GenerateConfig(temperature=plan.setting.temperature, top_p=None if top_p == 1 else top_p)


def _samples(asking: Asking, room: Room) -> Iterator[Sample]:
    plan, suite = asking.plan, loaded_suite(asking.plan.suite.source)
    for assignment in plan.assignments:
        question = assignment.question
        try:
            content = room.solver.prompt(assignment, question.inputs[0])
        except (SuiteError, WorkbookError):
            content = question.instruction  # the solver says what is wrong, for this sample alone
        shown = inspect_content(content, room.pictures)
        yield Sample(
            id=question.id,
            input=shown if isinstance(shown, str) else [ChatMessageUser(content=shown)],
            metadata={
                INSTRUCTION_TYPE: question.kind,
                QUESTION: _question_of(suite, question.id),
                SUITE: plan.suite.name,
                SUITE_DIGEST: plan.suite.digest,
                "setting": plan.setting_of(question).name,
                "groups": dict(suite.task(question.id).groups),
            },
        )


def _question_of(suite: Suite, task_id: str) -> str:
    """What the phrasings of a task share; they are not independent of each other."""
    phrasing = suite.task(task_id).phrasing
    return task_id if phrasing is None else phrasing.of
