"""The judge's own format: a ``suite.json`` next to any files, which supports every task feature.

Every fault is reported with its field. Tasks of a suite in any format can be written as such a
document.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from judge.compare.files.options import NAME as METRICS
from judge.compare.files.options import expects_signal
from judge.compare.registry import check_options
from judge.core.score import ScoreColumn, ScoreTable
from judge.core.submission import AnswerForm
from judge.core.task import (
    KIND_OF_SUFFIX,
    CheckerSpec,
    FileKind,
    Gold,
    InputFile,
    Task,
    TaskQuestion,
    TestCase,
)
from judge.errors import SuiteError, UsageError
from judge.files.documents import MalformedError, dump_json, json_type, parse_json, read_regular
from judge.suites.fields import Fields, shown
from judge.suites.folders import Boundary, inner_path
from judge.suites.formats import DATA_FOLDER, Contents, FileRole, SolutionPaths, SuiteFormat

DEFINITION = "suite.json"
FORMAT_NAME = "sheetjudge"
VERSION = 1
NAME = f"{FORMAT_NAME}-v{VERSION}"
"""The name of the format."""


_SUFFIXES = (".xlsx", ".xlsm", ".csv", ".tsv", ".txt", ".json")
_ENDING = "|".join(re.escape(suffix) for suffix in _SUFFIXES)
_OUTPUT = re.compile(rf"^(?P<number>\d+)_(?P<id>.+)_output(?:{_ENDING})$", re.IGNORECASE)
_SUFFIX_OF_ANSWER = {
    AnswerForm.WORKBOOK: ".xlsx",
    AnswerForm.TABLE: ".csv",
    AnswerForm.FILES: ".xlsx",
    AnswerForm.TEXT: ".txt",
}


class OwnFormat(SuiteFormat):
    """The format with a ``suite.json`` that lists tasks, cases and files."""

    names: tuple[str, ...] = (NAME,)
    definition = DEFINITION
    file_suffixes = _SUFFIXES
    output_pattern = "{n}_{id}_output.xlsx (or .xlsm, .csv, .tsv, .txt, .json)"

    def recognises(self, root: Path) -> bool:
        """Whether there is a ``suite.json``."""
        return (root / DEFINITION).is_file()

    def load(self, root: Path) -> Contents:
        """Reads a suite."""
        return read_suite(root)

    def output_of(self, file_name: str) -> tuple[str, int] | None:
        """Reads ``{n}_{id}_output.xlsx``, or the same with another suffix."""
        match = _OUTPUT.match(file_name)
        return None if match is None else (match["id"], int(match["number"]))

    def role_of(self, file_name: str, task_id: str) -> FileRole | None:
        """Reads ``{id}_input`` and ``{id}_output`` with any suffix, perhaps after a case number."""
        match = re.fullmatch(rf"(?:\d+_)?{re.escape(task_id)}_(input|output)\.\w+", file_name)
        return None if match is None else FileRole(match[1])

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """``input/1_{id}_input`` and ``output/1_{id}_output``, with the suffix of each file."""
        files = question.inputs[0].files if question.inputs else ()
        suffix = files[0].path.suffix if files else ".xlsx"
        return SolutionPaths(
            f"{folder}/input/1_{question.id}_input{suffix}",
            f"{folder}/output/1_{question.id}_output{_SUFFIX_OF_ANSWER[question.answer]}",
        )

    def definition_of(self, root: Path, tasks: Sequence[Task]) -> str:
        """The ``suite.json`` for the tasks."""
        return f"{dump_json(suite_document(tasks, root), indent=2)}\n"


FORMAT = OwnFormat()


# -- reading --------------------------------------------------------------------------------------

_HINT = "dataset/schema.md describes what a suite.json looks like"
_MAX_ID_CHARS = 200
_BOM = b"\xef\xbb\xbf"


def read_suite(root: Path) -> Contents:
    """Reads a suite.

    Args:
        root: the folder with the ``suite.json``.

    Returns:
        The tasks without faults; the tables of scores; and all faults, each with its file and its
        field. Unknown or irregular content is always a fault, so there are no notes.

    Raises:
        SuiteError: the ``suite.json`` is not a JSON object of this format and version.
    """
    records, tables, problems = _read_definition(root / DEFINITION)
    boundary = Boundary(root)
    tasks: list[Task] = []
    faults = [f"{DEFINITION}: {problem}" for problem in problems]
    seen: dict[str, int] = {}
    for index, record in enumerate(records):
        task, task_faults = _read_task(record, boundary)
        label = _label(index, record)
        faults.extend(f"{label}: {fault}" for fault in task_faults)
        if task is None:
            continue
        if task.id in seen:
            faults.append(f"{label}: field 'id' is already used by task {seen[task.id]}")
        seen.setdefault(task.id, index)
        tasks.append(task)
    return Contents(NAME, tuple(tasks), faults=tuple(faults), tables=tables)


def read_task(record: object, root: Path) -> tuple[Task | None, list[str]]:
    """Reads one task.

    Args:
        record: the task, as in a ``suite.json``.
        root: the folder that its paths are relative to.

    Returns:
        The task, or None if it has faults; and its faults.
    """
    return _read_task(record, Boundary(root))


def _read_definition(path: Path) -> tuple[list[object], tuple[ScoreTable, ...], list[str]]:
    """Reads the records of the tasks, the tables, and the faults of the tables."""
    data = read_regular(path, SuiteError)
    if data is None:
        raise _broken(path, ["is missing"])
    try:
        document = parse_json(data.removeprefix(_BOM))
    except MalformedError as error:
        raise _broken(path, [f"is {error}"]) from error
    if not isinstance(document, dict):
        raise _broken(path, [f"must be an object, not {json_type(document)}"])
    faults: list[str] = []
    fields = Fields(document, faults=faults)
    fields.only("format", "version", "tables", "tasks")
    if fields.text("format") not in {FORMAT_NAME, ""}:
        fields.fault("format", f"must be {FORMAT_NAME!r}, not {shown(document['format'])}")
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        fields.fault("version", f"must be {VERSION}, not {shown(version)}")
    records = fields.items("tasks", required=True)
    if not faults and not records:
        fields.fault("tasks", "is empty: a suite needs at least one task")
    if faults:
        raise _broken(path, faults)
    return records, _tables(fields), faults


def _tables(fields: Fields) -> tuple[ScoreTable, ...]:
    """The tables of scores that reports on the suite show."""
    tables = []
    for table in fields.objects("tables", required=False):
        table.only("title", "columns")
        columns = []
        for column in table.objects("columns", required=True):
            column.only("label", "heading", "division", "group")
            division = column.optional_text("division") or ""
            group = column.text("group") if division else ""
            heading = column.optional_text("heading") or ""
            columns.append(ScoreColumn(column.text("label"), division, group, heading))
        tables.append(ScoreTable(table.text("title"), tuple(columns)))
    return tuple(tables)


def _broken(path: Path, problems: list[str]) -> SuiteError:
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return SuiteError(
        f"{path}: {problems[0]}{more}",
        faults=tuple(f"{DEFINITION}: {problem}" for problem in problems),
        hint=_HINT,
    )


def _label(index: int, record: object) -> str:
    task_id = record.get("id") if isinstance(record, dict) else None
    named = isinstance(task_id, int | str) and not isinstance(task_id, bool)
    return f"{DEFINITION}, task {index}" + (f" (id {shown(task_id)})" if named else "")


def _read_task(record: object, boundary: Boundary) -> tuple[Task | None, list[str]]:
    """Reads a task; returns None if it has faults, and the faults."""
    if not isinstance(record, dict):
        return None, [f"must be an object, not {shown(record)}"]
    faults: list[str] = []
    fields = Fields(record, faults=faults)
    fields.only(
        *("id", "instruction", "kind", "groups", "context", "answer", "checker", "cases"),
        "excluded",
    )
    raw_id = _raw_id(fields)
    checker = _checker(fields)
    task = Task(
        id=str(raw_id),
        instruction=fields.text("instruction", blank=True),
        kind=fields.text("kind"),
        cases=_cases(fields, checker, boundary),
        checker=checker,
        answer=fields.choice("answer", AnswerForm.WORKBOOK),
        groups=fields.texts_by_name("groups"),
        context=fields.texts_by_name("context"),
        excluded=fields.optional_text("excluded"),
        raw_id=raw_id,
        signals=checker.name == METRICS and expects_signal(checker.options),
    )
    _check_names(task, fields)
    return (None if faults else task), faults


def _check_names(task: Task, fields: Fields) -> None:
    """Checks that no further input has the name under which programs get the first input."""
    taken = f"1_{task.id}_input"
    for case in task.cases:
        for file in case.inputs[1:]:
            if file.path.stem == taken:
                fields.fault(
                    "cases",
                    f"have a further input called {file.path.name}, a name reserved for the first",
                )


def _raw_id(fields: Fields) -> int | str:
    value = fields.values.get("id")
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    text = fields.text("id")
    if "/" in text or text in {".", ".."} or not text.isprintable() or len(text) > _MAX_ID_CHARS:
        fields.fault(
            "id",
            f"must be at most {_MAX_ID_CHARS} printable characters without a slash, "
            f"not {shown(text)}",
        )
    return text


def _checker(fields: Fields) -> CheckerSpec:
    if "checker" not in fields.values:
        fields.fault("checker", "is missing")
        return CheckerSpec()
    value = fields.values["checker"]
    inner = Fields(fields.mapping("checker"), "checker.", fields.faults)
    if not isinstance(value, dict):
        return CheckerSpec()
    inner.only("name", "options", "public")
    options = _frozen(inner.mapping("options"))
    public = inner.items("public", required=False)
    for index, name in enumerate(public):
        if not isinstance(name, str) or name not in options:
            inner.fault(f"public[{index}]", f"must name an option, not {shown(name)}")
    spec = CheckerSpec(inner.text("name"), options, tuple(str(name) for name in public))
    if spec.name and (fault := _fault_of(spec)):
        inner.fault("options", f"does not fit: {fault}")
    return spec


def _fault_of(spec: CheckerSpec) -> str:
    """Why the options do not fit the checker; empty if they do."""
    try:
        check_options(spec)
    except UsageError as error:
        return error.message
    return ""


def _cases(fields: Fields, checker: CheckerSpec, boundary: Boundary) -> tuple[TestCase, ...]:
    """Reads the cases; returns them in the order of their numbers."""
    cases: dict[int, TestCase] = {}
    before = len(fields.faults or ())
    for position, inner in enumerate(fields.objects("cases", required=True), start=1):
        inner.only("number", "inputs", "golds")
        number = inner.values.get("number", position)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            inner.fault("number", f"must be an integer of at least 1, not {shown(number)}")
            number = position
        if number in cases:
            inner.fault("number", f"is {number}, which another case already has")
        cases[number] = TestCase(number, _inputs(inner, boundary), _golds(inner, checker, boundary))
    if not cases and len(fields.faults or ()) == before:
        fields.fault("cases", "is empty: a task needs at least one test case")
    return tuple(cases[number] for number in sorted(cases))


def _inputs(case: Fields, boundary: Boundary) -> tuple[InputFile, ...]:
    inputs: list[InputFile] = []
    for fields in case.objects("inputs", required=False, short="path"):
        fields.only("path", "kind")
        path = _file(fields, boundary)
        if path is None:
            continue
        if any(other.path.name == path.name for other in inputs):
            fields.fault("path", f"is a second input called {path.name!r}")
        kind = KIND_OF_SUFFIX.get(path.suffix.lower())
        if kind is None and "kind" not in fields.values:
            fields.fault("kind", f"is missing, and {path.suffix or path.name!r} does not imply it")
        inputs.append(InputFile(path, fields.choice("kind", kind or FileKind.TEXT)))
    return tuple(inputs)


def _golds(case: Fields, checker: CheckerSpec, boundary: Boundary) -> tuple[Gold, ...]:
    golds: list[Gold] = []
    for fields in case.objects("golds", required=False, short="path"):
        fields.only("path", "value", "options")
        options = _frozen(fields.mapping("options"))
        if options and checker.name:
            # They complete the options of the task, and are checked together with those.
            fault = _fault_of(checker.with_options(options))
            if fault and fault != _fault_of(checker):
                fields.fault("options", f"does not fit: {fault}")
        if ("path" in fields.values) == ("value" in fields.values):
            fields.fault("path", "or 'value' is required, but not both")
        elif "path" in fields.values:
            golds.append(Gold(path=_file(fields, boundary), options=options))
        else:
            golds.append(Gold(value=fields.values["value"], options=options))
    return tuple(golds)


def _file(fields: Fields, boundary: Boundary) -> Path | None:
    """Reads a path, which must be a regular file in the suite's folder."""
    text = fields.text("path")
    if not text.strip():
        return None
    relative = inner_path(text)
    if relative is None or "\\" in text:
        fields.fault(
            "path", f"must be relative to the suite, with '/' and without '..', not {shown(text)}"
        )
        return None
    path = boundary.root / relative
    try:
        if not boundary.holds(path):
            fields.fault("path", f"is a link that leaves the suite: {text}")
        elif not stat.S_ISREG(path.stat().st_mode):
            fields.fault("path", f"is not a regular file: {text}")
        elif not os.access(path, os.R_OK):
            fields.fault("path", f"cannot be read: {text}: Permission denied")
        else:
            return path
    except OSError as error:
        fields.fault("path", f"cannot be read: {text}: {error.strerror}")
    except ValueError as error:  # the name holds a lone surrogate
        fields.fault("path", f"cannot be the name of a file: {shown(text)}: {error}")
    return None


def _frozen(options: Mapping[str, object]) -> dict[str, object]:
    """Converts lists in options to tuples, which checkers expect."""
    return {name: _tuples(value) for name, value in options.items()}


def _tuples(value: object) -> object:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


# -- writing --------------------------------------------------------------------------------------


def suite_document(
    tasks: Iterable[Task], root: Path, tables: Iterable[ScoreTable] = ()
) -> dict[str, Any]:
    """The document of a ``suite.json`` from which :func:`judge.suites.load_suite` reads the tasks.

    Args:
        tasks: the tasks, of a suite of any format.
        root: the folder that the ``suite.json`` will be in; all files are in it.
        tables: the tables of scores that reports on the suite show.

    Raises:
        UsageError: a file is elsewhere, or a gold is not a file yet.
    """
    shown = [_table(table) for table in tables]
    return {
        "format": FORMAT_NAME,
        "version": VERSION,
        **({"tables": shown} if shown else {}),
        "tasks": [_task(task, root.resolve()) for task in tasks],
    }


def _table(table: ScoreTable) -> dict[str, Any]:
    columns = [
        {name: value for name, value in asdict(column).items() if value} for column in table.columns
    ]
    return {"title": table.title, "columns": columns}


def _task(task: Task, root: Path) -> dict[str, Any]:
    checker = {
        "name": task.checker.name,
        "options": dict(task.checker.options),
        "public": [name for name in task.checker.public if name in task.checker.options],
    }
    return {
        "id": task.written_id,
        "instruction": task.instruction,
        "kind": task.kind,
        "groups": dict(task.groups),
        "context": dict(task.context),
        "answer": task.answer.value,
        "checker": checker,
        "excluded": task.excluded,
        "cases": [_case(case, root) for case in task.cases],
    }


def _case(case: TestCase, root: Path) -> dict[str, Any]:
    return {
        "number": case.number,
        "inputs": [
            {"path": _relative(file.path, root), "kind": file.kind.value} for file in case.inputs
        ],
        "golds": [_gold(gold, root) for gold in case.golds],
    }


def _gold(gold: Gold, root: Path) -> dict[str, Any]:
    if gold.data is not None:
        raise UsageError("a gold is not a file yet", hint="Write it into the suite's folder first.")
    options = {"options": dict(gold.options)} if gold.options else {}
    if gold.path is None:
        return {"value": gold.value, **options}
    return {"path": _relative(gold.path, root), **options}


def _relative(path: Path, root: Path) -> str:
    try:
        return path.relative_to(root).as_posix()
    except ValueError as error:
        raise UsageError(
            f"{path} is not in {root}", hint="Copy it into the suite's folder first."
        ) from error
