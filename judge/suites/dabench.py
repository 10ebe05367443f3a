"""The published format of InfiAgent-DABench: closed questions about one table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from judge.core.score import ScoreColumn, ScoreTable
from judge.core.submission import AnswerForm
from judge.core.task import (
    AbsentInput,
    CheckerSpec,
    FileKind,
    Gold,
    InputFile,
    Task,
    TaskQuestion,
    TestCase,
)
from judge.errors import SuiteError
from judge.files.json_lines import read_json_lines
from judge.suites.fields import FieldError, Fields, shown
from judge.suites.folders import Boundary, is_plain_name
from judge.suites.formats import DATA_FOLDER, Contents, SolutionPaths, SuiteFormat

DEFINITION = "da-dev-questions.jsonl"
LABELS = "da-dev-labels.jsonl"
TABLES = "da-dev-tables"
NAME = "dabench"


TABLE = ScoreTable(
    "Accuracy by question",
    (
        ScoreColumn("Total"),
        *(ScoreColumn(level, "level", level, "Level") for level in ("easy", "medium", "hard")),
    ),
)
"""The accuracy of the published script, which counts questions without a reply as failed."""


class DABench(SuiteFormat):
    """The format with ``da-dev-questions.jsonl`` and its labels next to ``da-dev-tables``."""

    names: tuple[str, ...] = (NAME,)
    definition = DEFINITION
    file_suffixes = (".csv",)

    def recognises(self, root: Path) -> bool:
        """Whether a folder holds the questions and their labels."""
        return (root / DEFINITION).is_file() and (root / LABELS).is_file()

    def load(self, root: Path) -> Contents:
        """Reads a suite; a case whose table is missing names the table."""
        tasks, faults = read_suite(root)
        return Contents(format=NAME, tasks=tasks, faults=faults, tables=(TABLE,))

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """The paths for a program: its input is the table, under the table's own name."""
        files = question.inputs[0].files if question.inputs else ()
        name = files[0].path.name if files else "input.csv"
        return SolutionPaths(f"{folder}/{name}", f"{folder}/answer.txt")


FORMAT = DABench()


_TOLERANCE = 1e-6
"""How far a number may differ; the tolerance is small because questions say how to round."""


def read_suite(root: Path) -> tuple[tuple[Task, ...], tuple[str, ...]]:
    """Reads the tasks of a suite.

    Args:
        root: the folder with the questions and the labels.

    Returns:
        The tasks without faults; and all faults. A missing table is not a fault.

    Raises:
        SuiteError: a file is not JSON lines.
    """
    boundary = Boundary(root)
    labels: dict[str, object] = {}
    for _, record in read_json_lines(root / LABELS, SuiteError):
        labels[str(record.get("id"))] = record.get("common_answers")
    tasks: dict[str, Task] = {}
    faults = []
    for line, record in read_json_lines(root / DEFINITION, SuiteError):
        try:
            task = _task(record, labels, boundary)
        except FieldError as error:
            faults.append(f"{DEFINITION}, line {line}: {error}")
            continue
        if task.id in tasks:
            faults.append(f"{DEFINITION}, line {line} (id {task.id}): the id is already used")
        tasks.setdefault(task.id, task)
    return tuple(tasks.values()), tuple(faults)


def _task(record: Mapping[str, object], labels: Mapping[str, object], boundary: Boundary) -> Task:
    fields = Fields(record)
    raw_id = record.get("id")
    if isinstance(raw_id, bool) or not isinstance(raw_id, int):
        raise fields.error("id", f"must be an integer, not {shown(raw_id)}")
    values = _values(labels.get(str(raw_id)))
    variables = {
        name: {"type": "text"}
        if isinstance(value, str)
        else {"type": "float", "tolerance": _TOLERANCE, "relative_tolerance": 0}
        for name, value in values.items()
    }
    parts = [
        fields.text(name, blank=True).strip() for name in ("question", "constraints", "format")
    ]
    concepts = record.get("concepts")
    level = record.get("level")
    names = [str(concept) for concept in concepts] if isinstance(concepts, list) else []
    table = _table(boundary, fields)
    is_there = isinstance(table, InputFile)
    case = TestCase(
        1,
        (table,) if isinstance(table, InputFile) else (),
        (Gold(value=values),),
        () if is_there or isinstance(table, InputFile) else (table,),
    )
    groups = {"concepts": ", ".join(sorted(names)) or "none"}
    if isinstance(level, str):
        groups["level"] = level
    return Task(
        id=str(raw_id),
        instruction="\n\n".join(part for part in parts if part),
        kind=names[0] if len(names) == 1 else "Several concepts",
        cases=(case,),
        checker=CheckerSpec("typed_answer", {"variables": variables, "form": "named"}),
        answer=AnswerForm.TEXT,
        groups=groups,
        raw_id=raw_id,
    )


def _values(answers: object) -> dict[str, object]:
    """The correct values: as numbers if they are finite, otherwise as text."""
    if not isinstance(answers, list) or not answers:
        raise FieldError(f"there is no label with common_answers in {LABELS}")
    values: dict[str, object] = {}
    for answer in answers:
        if not isinstance(answer, list) or len(answer) != 2 or not isinstance(answer[0], str):
            raise FieldError(f"its label in {LABELS} must be a list of pairs of a name and a value")
        values[answer[0]] = _value(str(answer[1]))
    return values


def _value(text: str) -> object:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _table(boundary: Boundary, fields: Fields) -> InputFile | AbsentInput:
    name = fields.text("file_name", blank=True).strip()
    if not is_plain_name(name):
        raise FieldError(f"field 'file_name': {name[:80]!r} is not a plain file name")
    path = boundary.root / TABLES / name
    if boundary.has_file(path):
        return InputFile(path, FileKind.TABLE)
    return AbsentInput(f"{TABLES}/{name}", FileKind.TABLE, "fetch it with the published suite")
