"""The published format of SpreadsheetBench 2: four categories, each with a ``dataset.json``."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from judge.compare.cells.options import CELL_RANGE, GROUPS
from judge.core.task import (
    LEFT_OUT_OPTION,
    CheckerSpec,
    Gold,
    InputFile,
    Task,
    TaskQuestion,
    TestCase,
)
from judge.errors import SuiteError
from judge.files.documents import BOM, MalformedError, parse_json, read_regular
from judge.suites.fields import FieldError, Fields
from judge.suites.folders import Boundary, inner_path
from judge.suites.formats import DATA_FOLDER, Contents, FileRole, SolutionPaths, SuiteFormat

NAME = "spreadsheetbench-2"
DEFINITION = "dataset.json"
DEBUGGING, VISUALIZATION = "Debugging", "Visualization"
CATEGORIES = (DEBUGGING, "Financial_Model", "Template", VISUALIZATION)
"""Names of the categories, which are also the names of their folders."""


_OUTPUT = re.compile(r"(?P<id>.+)_output\.xls[xm]", re.IGNORECASE)
_INPUT = re.compile(r".+_input\.xls[xm]", re.IGNORECASE)


class SpreadsheetBench2(SuiteFormat):
    """The format with a ``dataset.json`` in the folder of each category."""

    names: tuple[str, ...] = (NAME,)
    definition = f"{{category}}/{DEFINITION}"
    file_suffixes = (".xlsx", ".xlsm")
    output_pattern = (
        "{id}_output.xlsx, such as 02_01_output.xlsx, in the folder of its category if several "
        "categories have that id"
    )

    def recognises(self, root: Path) -> bool:
        """Whether a category's folder holds a ``dataset.json``, and the suite's folder does not."""
        return not (root / DEFINITION).exists() and any(
            (root / category / DEFINITION).is_file() for category in CATEGORIES
        )

    def load(self, root: Path) -> Contents:
        """Reads the categories that exist."""
        return read_suite(root)

    def output_of(self, file_name: str) -> tuple[str, int] | None:
        """Reads ``{id}_output.xlsx``; every task has one case."""
        match = _OUTPUT.fullmatch(file_name)
        return None if match is None else (match["id"], 1)

    def role_of(self, file_name: str, task_id: str) -> FileRole | None:
        """Reads ``{id}_output.xlsx`` as the output, and ``*_input.xlsx`` as the input.

        Inputs are named after their task, the error that they contain, or their project.
        """
        match = _OUTPUT.fullmatch(file_name)
        if match is not None and (task_id == match["id"] or task_id.endswith(f"_{match['id']}")):
            return FileRole.OUTPUT
        return FileRole.INPUT if _INPUT.fullmatch(file_name) else None

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """The input keeps its file name; the output is ``{id}_output.xlsx``."""
        files = question.inputs[0].files if question.inputs else ()
        name = files[0].path.name if files else f"{question.id}_input.xlsx"
        return SolutionPaths(f"{folder}/input/{name}", f"{folder}/output/{question.id}_output.xlsx")


FORMAT = SpreadsheetBench2()


NOT_JUDGED = (
    "the published judge of charts is a vision model that looks at pictures of them, and its "
    "verdicts cannot be repeated"
)
"""Why visualization tasks have no verdict."""

_COLOUR, _FORMULAS = "Color", "Embedded"
"""Words in the path of an input that decide how a debugging task is compared."""

_FIELDS = frozenset(
    {
        *("id", "instruction", "spreadsheet_path", "golden_response_path", "answer_position"),
        *("category", "instruction_type", "criteria"),
    }
)


@dataclass(frozen=True, slots=True)
class _Read:
    """A task, and the location of its record."""

    task: Task
    category: str
    label: str


def read_suite(root: Path) -> Contents:
    """Reads the tasks of all categories that a suite has.

    A task keeps its published id if no other category has that id; otherwise the name of its
    category is put before it. ``{category}/{id}`` is an alias of either.

    Args:
        root: the folder with the folders of the categories.

    Raises:
        SuiteError: a ``dataset.json`` cannot be read at all.
    """
    boundary = Boundary(root)
    read: list[_Read] = []
    notes: list[str] = []
    faults: list[str] = []
    definitions = []
    for category in CATEGORIES:
        path = boundary.root / category / DEFINITION
        if not os.path.isfile(path):  # noqa: PTH113 - an invalid path is not a file
            notes.append(f"{category}/{DEFINITION}: is missing, so the category has no task")
            continue
        if not boundary.holds(path):
            faults.append(f"{category}/{DEFINITION}: a link that leaves the suite")
            continue
        definitions.append(path)
        for index, record in enumerate(_records(path, category)):
            label = f"{category}/{DEFINITION}, record {index}"
            try:
                task = _task(record, category, boundary)
            except FieldError as error:
                faults.append(f"{label}: {error}")
                continue
            label = f"{label} (id {task.id})"
            read.append(_Read(task, category, label))
            if unknown := sorted(set(record) - _FIELDS if isinstance(record, dict) else ()):
                notes.append(f"{label}: unknown fields are ignored: {', '.join(unknown)}")
    faults += _repeated(read)
    return Contents(
        format=NAME,
        tasks=tuple(_with_unique_ids(read)),
        notes=tuple(notes),
        faults=tuple(faults),
        definitions=tuple(definitions),
    )


def _records(path: Path, category: str) -> list[object]:
    data = read_regular(path, SuiteError) or b""
    try:
        records = parse_json(data.removeprefix(BOM))
    except MalformedError as error:
        raise _broken(path, category, f"is {error}") from error
    if not isinstance(records, list):
        raise _broken(path, category, f"must be a list of tasks, not {type(records).__name__}")
    return records


def _broken(path: Path, category: str, problem: str) -> SuiteError:
    return SuiteError(f"{path} {problem}", faults=(f"{category}/{DEFINITION} {problem}",))


def _repeated(read: list[_Read]) -> Iterator[str]:
    """Yields a fault for each record whose id is already used in its category."""
    first: dict[tuple[str, str], str] = {}
    for entry in read:
        first_label = first.setdefault((entry.category, entry.task.id), entry.label)
        if first_label != entry.label:
            yield f"{entry.label}: the id is already used by {first_label}"


def _with_unique_ids(read: list[_Read]) -> Iterator[Task]:
    """Yields the tasks with ids that are unique across all categories."""
    count = Counter(entry.task.id for entry in read)
    for entry in read:
        task = entry.task
        aliases = (f"{entry.category}/{task.id}",)
        if count[task.id] == 1:
            yield replace(task, aliases=aliases)
        else:
            own = f"{entry.category}_{task.id}"
            yield replace(task, id=own, raw_id=own, aliases=aliases)


# -- records --------------------------------------------------------------------------------------


def _task(record: object, category: str, boundary: Boundary) -> Task:
    if not isinstance(record, dict):
        raise FieldError("must be an object with the fields of a task")
    fields = Fields({name: value for name, value in record.items() if value is not None})
    raw_id = _id(fields)
    instruction = _text(fields, "instruction")
    before = _file(fields, "spreadsheet_path", category, boundary)
    groups = {"category": category}
    golds: tuple[Gold, ...] = ()
    excluded = None
    if category == VISUALIZATION:
        checker = CheckerSpec("charts", {LEFT_OUT_OPTION: NOT_JUDGED})
        excluded = NOT_JUDGED
        if record.get("golden_response_path"):
            golds = (Gold(_file(fields, "golden_response_path", category, boundary)),)
    else:
        golds = (Gold(_file(fields, "golden_response_path", category, boundary)),)
        checker = _checker(fields, category)
        if category == DEBUGGING:
            groups["error"] = before.stem.removesuffix("_input")
    return Task(
        id=str(raw_id),
        instruction=instruction,
        kind=category,
        cases=(TestCase(1, (InputFile(before),), golds),),
        checker=checker,
        groups=groups,
        excluded=excluded,
        raw_id=raw_id,
    )


def _checker(fields: Fields, category: str) -> CheckerSpec:
    """The checker of a task; the question does not state the answer position.

    Colours are not compared if formulas are.

    Source: SpreadsheetBench 2, ``evaluation.py``, which searches the input's path for two words.
    """
    options: dict[str, object] = {
        "answer_position": _text(fields, "answer_position"),
        "accept": GROUPS,
    }
    path = _text(fields, "spreadsheet_path")
    if category == DEBUGGING and _FORMULAS in path:
        options["formulas"] = True
    elif category == DEBUGGING and _COLOUR in path:
        options["style"] = ("font_color",)
    return CheckerSpec(CELL_RANGE, options)


def _text(fields: Fields, name: str) -> str:
    value = fields.values.get(name)
    if isinstance(value, str) and not value.strip():
        raise fields.error(name, f"must be text, not {value!r}")
    return fields.text(name)


def _id(fields: Fields) -> int | str:
    value = fields.values.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = _text(fields, "id")
    if "/" in text or "\0" in text or text in {".", ".."}:
        raise fields.error("id", f"must not hold a slash: {text[:80]!r}")
    return text


def _file(fields: Fields, name: str, category: str, boundary: Boundary) -> Path:
    """Reads a file name, which is relative to the folder of the category."""
    text = _text(fields, name)
    relative = inner_path(text.replace("\\", "/"))
    if relative is None:
        raise fields.error(name, f"leaves the category: {text[:80]!r}")
    path = boundary.root / category / relative
    if not os.path.isfile(path):  # noqa: PTH113 - an invalid path is not a file
        raise FieldError(f"field {name!r}: there is no file {category}/{relative}")
    if not boundary.has_file(path):
        raise FieldError(f"field {name!r}: {category}/{relative} is a link that leaves the suite")
    return path
