"""The certified tasks of a published suite: grades that careful readers gave to its golds.

A file of ``dataset/certified`` grades the tasks of one suite, with reasons. A grade is valid only
for the workbooks that the grader read. The grades lead to corrections
(:meth:`Certification.corrections`) and to scores over certified tasks.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NotRequired, TypedDict

from judge.core.records.runs import CertifiedIdentity
from judge.core.task import TestCase
from judge.errors import SuiteError
from judge.files.documents import MalformedError
from judge.files.forms import Sha256, TaskId, checked
from judge.files.yaml_documents import read_yaml
from judge.suites.corrections import Correction, CorrectionFaultError, correction_of
from judge.suites.suite import CERTIFIED_FOLDER, Suite, certified_files, data_folder, file_digest


class Grade(enum.StrEnum):
    """How far a task's gold can be trusted."""

    SOUND = "sound"
    """The gold's values follow from the question and the input, and every right answer passes."""
    WEAK = "weak"
    """The gold is right, but the untouched input passes, or part of the answer is not compared."""
    AMBIGUOUS = "ambiguous"
    """Reasonable readings of the question give different values; nothing says which is meant."""
    FAULTY = "faulty"
    """The gold, or the answer position, contradicts the question, the input or itself."""

    @property
    def is_certified(self) -> bool:
        """Whether a verdict on the task counts in the certified score."""
        return self in {Grade.SOUND, Grade.WEAK}

    @property
    def is_doubtful(self) -> bool:
        """Whether a right answer may differ from the gold."""
        return self in {Grade.AMBIGUOUS, Grade.FAULTY}


class GradedTask(TypedDict):
    """One graded task.

    ``readers`` are the grades that the readers gave independently, before they were reconciled.
    ``readings`` are the possible readings of an ambiguous question, ``unscored`` is the part of the
    request that is not compared, and ``reports`` are public reports about the task.
    ``corrections`` are written as in ``dataset/corrections``; they are applied when a faulty task
    is judged.
    """

    task: TaskId
    grade: Grade
    reason: str
    readers: list[Grade]
    input_sha256: Sha256
    gold_sha256: Sha256
    untouched_passes: NotRequired[bool]
    unscored: NotRequired[str]
    readings: NotRequired[list[str]]
    evidence: NotRequired[str]
    reports: NotRequired[list[str]]
    corrections: NotRequired[list[dict[str, object]]]


class _Document(TypedDict):
    format: str
    name: str
    source: str
    tasks: list[GradedTask]


@dataclass(frozen=True)
class Certification:
    """The grades of a suite's tasks.

    Attributes:
        format: the format of the suite.
        name: the suite's name for people.
        source: who read the tasks, and how.
        digest: SHA-256 of the file.
        tasks: task id -> its grade and reasons.
    """

    format: str
    name: str
    source: str
    digest: str
    tasks: Mapping[str, GradedTask]

    @cached_property
    def _corrections_by_task(self) -> Mapping[str, tuple[Correction, ...]]:
        return {task_id: self._corrections_of(task) for task_id, task in self.tasks.items()}

    def corrections(self) -> tuple[Correction, ...]:
        """The corrections of the suite: right golds and positions, and tasks to leave out.

        An ambiguous task is left out, and so is a faulty one without a correct gold or position.
        """
        return tuple(
            correction
            for corrections in self._corrections_by_task.values()
            for correction in corrections
        )

    def _corrections_of(self, task: GradedTask) -> tuple[Correction, ...]:
        """The corrections of one task.

        Raises:
            CorrectionFaultError: one of them is not valid.
        """
        grade = task["grade"]
        source = f"certified tasks of {self.name}"
        entries = [{"source": source, **entry} for entry in task.get("corrections", ())]
        if not entries and not grade.is_certified:
            entries = [
                {
                    "case": 1,
                    "field": "exclude",
                    "gold_sha256": task["gold_sha256"],
                    "input_sha256": task["input_sha256"],
                    "reason": f"{grade}: {task['reason']}",
                    "evidence": task.get("evidence", task["reason"]),
                    "source": source,
                }
            ]
        return tuple(
            correction_of(self.format, {"task": str(task["task"]), **entry}) for entry in entries
        )

    def is_corrected(self, task_id: str) -> bool:
        """Whether a task is faulty, but can be judged after a correction."""
        return any(
            correction.field != "exclude" for correction in self._corrections_by_task[task_id]
        )

    def grades_of(self, suite: Suite) -> dict[str, Grade]:
        """Task id -> grade, for the tasks of the suite whose workbooks are those that were graded.

        Raises:
            SuiteError: a workbook cannot be read.
        """
        tasks = {task.id: task for task in suite.whole.tasks}
        return {
            task_id: graded["grade"]
            for task_id, graded in self.tasks.items()
            if (task := tasks.get(task_id)) is not None
            and len(task.cases) == 1
            and _has_files(task.cases[0], graded)
        }

    def identity(
        self, suite: Suite, corrections: Iterable[Mapping[str, object]]
    ) -> CertifiedIdentity:
        """The entry of run.json about the grades.

        Args:
            suite: the suite that the run answers.
            corrections: those that the run is judged with, as run.json describes them.
        """
        grades = self.grades_of(suite)
        corrected_fields = {(str(record["task"]), record["field"]) for record in corrections}
        applied = all(
            (correction.task, correction.field) in corrected_fields
            for task_id in grades
            for correction in self._corrections_by_task[task_id]
        )
        return {
            "name": self.name,
            "digest": self.digest,
            "applied": applied,
            "grades": {task_id: grade.value for task_id, grade in grades.items()},
            "corrected": [task_id for task_id in grades if self.is_corrected(task_id)],
        }


def _has_files(case: TestCase, graded: GradedTask) -> bool:
    """Whether a case still has the workbooks that were graded."""
    if not case.inputs or not case.golds or case.golds[0].path is None:
        return False
    return (
        file_digest(case.golds[0].path).hex() == graded["gold_sha256"]
        and file_digest(case.inputs[0].path).hex() == graded["input_sha256"]
    )


def certified_folder() -> Path:
    """The folder of the grades that ship with the judge.

    Raises:
        SuiteError: the installation is incomplete.
    """
    return data_folder() / CERTIFIED_FOLDER


def certification_of(suite: Suite) -> Certification | None:
    """The grades that ship with the judge for a suite's format; None if its tasks were not graded.

    Raises:
        SuiteError: the file cannot be read.
    """
    for path in certified_files(suite.format):
        certification = read_certification(path)
        if certification.format == suite.format:
            return certification
    return None


def certified_identity(
    suite: Suite, corrections: Iterable[Mapping[str, object]]
) -> CertifiedIdentity | None:
    """The entry of run.json about the grades of a suite's tasks; None if nobody graded them.

    Args:
        suite: the suite that the run answers.
        corrections: the corrections that the run is judged with, as run.json describes them.

    Raises:
        SuiteError: a file of grades, or a workbook, cannot be read.
    """
    certification = certification_of(suite)
    if certification is None:
        return None
    identity = certification.identity(suite, corrections)
    return identity if identity["grades"] else None


def read_certification(path: Path) -> Certification:
    """Reads a file of grades.

    Raises:
        SuiteError: it cannot be read, or a field is not valid; the message names the field.
    """
    return certification_in(read_yaml(path, SuiteError), path)


def certification_in(document: object, path: Path) -> Certification:
    """Reads the grades from a parsed YAML document.

    Args:
        document: the document.
        path: the file that it was read from, for messages and for the digest.

    Raises:
        SuiteError: a field is not valid; the message names it.
    """
    try:
        fields = checked(document, _Document)
        certification = Certification(
            fields["format"],
            fields["name"],
            fields["source"],
            file_digest(path).hex(),
            _by_id(fields),
        )
        certification.corrections()
    except (MalformedError, CorrectionFaultError) as fault:
        raise SuiteError(
            f"{path}: {fault}", hint="dataset/schema.md describes what a certified task looks like"
        ) from fault
    return certification


def _by_id(document: _Document) -> dict[str, GradedTask]:
    """Task id -> the task.

    Raises:
        MalformedError: a task is graded twice.
    """
    tasks: dict[str, GradedTask] = {}
    for task in document["tasks"]:
        task_id = str(task["task"])
        if task_id in tasks:
            raise MalformedError(f"field tasks: task {task_id} is graded twice")
        tasks[task_id] = _with_grades(task)
    return tasks


def _with_grades(task: GradedTask) -> GradedTask:
    """Makes a certified task from a record; names of grades become :class:`Grade` values."""
    return {
        **task,
        "grade": Grade(task["grade"]),
        "readers": [Grade(grade) for grade in task["readers"]],
    }
