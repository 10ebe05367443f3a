"""A small suite of questions without golds, plans for it, and replies, for tests of inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from judge.core.records.runs import WrittenSubmission
from judge.core.submission import AnswerForm
from judge.core.task import CaseInput, InputFile, TaskQuestion
from judge.files.forms import checked, declared_only
from judge.inference.config import ModelSpec, Price, load_setting
from judge.inference.content import ContentLimits
from judge.inference.plan import Assignment, InferencePlan, SuiteReference
from judge.inference.prompt import load_feedback, load_template
from judge.suites.spreadsheetbench import InstructionType

MakePlan = Callable[..., InferencePlan]


def write_workbook(path: Path, number: int) -> Path:
    workbook = openpyxl.Workbook()
    worksheet = workbook.active
    assert worksheet is not None
    worksheet.title = "Data"
    worksheet.append(["Name", "Amount"])
    for row in range(10):
        worksheet.append([f"row {row}", number * 100 + row])
    workbook.save(path)
    return path


def question(number: int, path: Path) -> CaseInput:
    return CaseInput(number, (InputFile(path),))


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Separates what the judge remembers about its user from what it remembers about the tester."""
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def questions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Assignment, ...]:
    folder = tmp_path_factory.mktemp("inputs")
    return tuple(
        Assignment(
            TaskQuestion(
                id=str(task),
                instruction=f"Sum up the amounts of task {task}.",
                kind=InstructionType.CELL_LEVEL.value,
                details={"answer_position": "B12"},
                answer=AnswerForm.WORKBOOK,
                inputs=tuple(
                    question(n, write_workbook(folder / f"{n}_{task}_input.xlsx", task * 10 + n))
                    for n in (1, 2, 3)
                ),
            ),
            raw_id=task,
        )
        for task in range(1, 6)
    )


@pytest.fixture
def make_plan(questions: tuple[Assignment, ...]) -> MakePlan:
    def make(mode: str = "single", feedback: str | None = None, **changes: Any) -> InferencePlan:
        setting = load_setting(mode, feedback)
        setting = replace(setting, rounds=changes.pop("rounds", setting.rounds))
        plan = InferencePlan(
            suite=SuiteReference("small", "/suite", "0" * 64, "spreadsheetbench-v0.1"),
            assignments=questions,
            model=ModelSpec("scripted", "scripted-1", price=Price(1.0, 2.0)),
            model_name="scripted-1",
            setting=setting,
            template=load_template(setting.prompt),
            feedback=load_feedback(),
            content=ContentLimits(rows=setting.rows),
        )
        return replace(plan, **changes)

    return make


def code(task: str, body: str = "workbook = 1") -> str:
    return f"```python\n{body}\nopen('/mnt/data/output/1_{task}_output.xlsx', 'w')\n```"


def check_declared(record: Mapping[str, object]) -> None:
    """Checks that a submissions.jsonl record has the published type and no other fields."""
    written = checked(dict(record), WrittenSubmission)
    assert declared_only(written, WrittenSubmission) == record
