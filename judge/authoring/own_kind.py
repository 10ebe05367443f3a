"""Common part of all kinds of tasks in suites of the judge's own format: ``suite.json``.

A task is checked before it is added: its golds have to be accepted, its untouched inputs refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judge.authoring.kinds import DraftKind, DraftTask, Record
from judge.compare.profiles import get_profile
from judge.core.submission import AnswerForm
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import SuiteError, UsageError
from judge.files.documents import dump_json, read_json
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.verify import CaseCheck, verify_case
from judge.recalc.policy import Recalculator
from judge.suites.own_format import DEFINITION, FORMAT_NAME, VERSION, read_task
from judge.suites.validate import Severity, SuiteFinding


def check_verdicts(task: Task) -> Sequence[SuiteFinding]:
    """Checks a task as ``judge verify`` does, with the values that its files store.

    It is an error if a gold is not accepted, or if the untouched inputs of all cases are accepted.
    Values of formulas that are not stored in the file are not checked.
    """
    judge = CaseJudge(Recalculator((), mode="never"), GradingRules(get_profile("standard")))
    checks = [verify_case(task, case, judge) for case in task.cases]
    findings = [_refused(task, check) for check in checks if not check.gold_accepted]
    passed = [check for check in checks if check.untouched_accepted]
    everywhere = len(passed) == len(checks)
    findings.extend(
        SuiteFinding(
            Severity.ERROR if everywhere else Severity.WARNING,
            task.id,
            f"case {check.case}",
            "the untouched input is accepted: the task asks for nothing that it lacks",
        )
        for check in passed
    )
    return findings


def _refused(task: Task, check: CaseCheck) -> SuiteFinding:
    # NC: the checker needs a value that no engine has computed yet.
    if check.gold_problem.startswith(Verdict.NC):
        message = "formulas of the gold have no stored value; `judge verify` computes them"
        return SuiteFinding(Severity.WARNING, task.id, f"case {check.case}", message)
    message = f"the gold is not accepted as its own answer: {check.gold_problem}"
    return SuiteFinding(Severity.ERROR, task.id, f"case {check.case}", message)


NOTES = ("original_question", "source_url")
"""Fields that the format cannot hold: the origin of the question."""


class OwnKind(DraftKind):
    """Tasks in a ``suite.json``, with a folder of files for each; a suite may mix several kinds."""

    definition = DEFINITION
    folder = "files"
    noted = NOTES

    def records(self, root: Path) -> list[Record]:
        """The tasks in ``suite.json``."""
        records = _document(root).get("tasks")
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            raise SuiteError(f"{root / self.definition}: field 'tasks' must be a list of tasks")
        return records

    def text_of(self, root: Path, records: Sequence[Record]) -> str:
        """The document with these tasks; its tables are kept."""
        document: dict[str, Any] = {"format": FORMAT_NAME, "version": VERSION}
        if (root / self.definition).exists():
            document = _document(root)
        return dump_json({**document, "tasks": list(records)}, indent=2) + "\n"

    def changed(self, record: Record, before: Task, root: Path) -> Task:  # noqa: ARG002
        """The task that the suite would read from the record."""
        return task_of(record, root)

    def check(self, task: Task) -> Sequence[SuiteFinding]:
        """Checks, for workbooks, that golds are accepted and untouched inputs are not."""
        return check_verdicts(task) if task.answer is AnswerForm.WORKBOOK else ()

    def write(self, tasks: Sequence[DraftTask], source: Path, target: Path) -> int:
        """Writes the judge's own format, with files at the same paths as in the suite."""
        root = source.resolve()
        for task in tasks:
            for case in task.task.cases:
                for path in case.paths:
                    destination = target / _within(path, root)
                    destination.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, destination)
        text = self.text_of(source, [task.record for task in tasks])
        (target / self.definition).write_text(text, encoding="utf-8")
        return sum(len(task.task.cases) for task in tasks)


def task_of(record: Record, root: Path) -> Task:
    """The task of a record.

    Raises:
        UsageError: the record has faults.
    """
    task, faults = read_task(record, root)
    if task is None:
        raise UsageError(f"task {record.get('id')}: {'; '.join(faults)}")
    return task


def named_values(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    """Parses options of the form ``NAME=VALUE``.

    Raises:
        UsageError: an option does not have this form.
    """
    pairs = []
    for item in given:
        name, mark, value = item.partition("=")
        if not mark or not name.strip():
            raise UsageError(f"--{option} {item}: must be NAME=VALUE")
        pairs.append((name.strip(), value))
    return pairs


def _document(root: Path) -> dict[str, Any]:
    document = read_json(root / DEFINITION, SuiteError)
    if not isinstance(document, dict):
        raise SuiteError(f"{root / DEFINITION}: must be an object")
    return document


def _within(path: Path, root: Path) -> Path:
    """The path of a file in its suite; if the file is a link, the path of the link itself."""
    return (path.parent.resolve() / path.name).relative_to(root)
