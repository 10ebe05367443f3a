"""The published formats of five suites that are judged by checklists.

They are IB-bench, OfficeBench, OpenComputer, SkillsBench and WindowsAgentArena-V2. The first four
share :class:`ChecklistFormat`, which reads the folders, files and answers of their tasks.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
import tomllib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from judge.compare.checklists.items import NAME as CHECKLIST
from judge.compare.checklists.items import RUBRIC
from judge.compare.published.skillsbench.items import OUTPUTS, TESTS
from judge.compare.registry import check_options
from judge.compare.rules.options import NAME as RULES
from judge.core.submission import AnswerForm
from judge.core.task import (
    KIND_OF_SUFFIX,
    LEFT_OUT_OPTION,
    CheckerSpec,
    FileKind,
    Gold,
    InputFile,
    Task,
    TaskQuestion,
    TestCase,
)
from judge.errors import SubmissionError, SuiteError, UsageError
from judge.files.documents import read_json, read_text
from judge.files.yaml_documents import read_yaml
from judge.suites.desktop import DESKTOP_FOLDER, DesktopFormat
from judge.suites.fields import FieldError, Fields
from judge.suites.folders import REPLY, Boundary, is_folder, is_regular, regular_files
from judge.suites.formats import DATA_FOLDER, Contents, SolutionPaths, SuiteFormat

_MAX_TASKS = 10_000
_MAX_DEPTH = 3
_OUTPUT = re.compile(r"(?P<id>[\w.-]{1,120}?)_output(?:_1)?\.(?:xlsx|pptx)")


REQUESTED_FILE = "file"
"""Name of the task detail that names the requested file."""


class ChecklistFormat(SuiteFormat):
    """A format whose tasks are lists of checks with points.

    Attributes:
        folders: paths below the suite's folder that may hold the tasks.
        work_folder: the folder in which programs change files; its files are their answer.
        output_folder: the folder into which programs write their answer, for suites without a
            ``work_folder``. If both are empty, the answer is one file.
    """

    file_suffixes: tuple[str, ...] = (".xlsx",)
    output_pattern = "{id}.xlsx, or a folder {id} with the files of an answer"
    folders: tuple[str, ...] = ("tasks",)
    work_folder: str = ""
    output_folder: str = ""
    has_folder_answers = True

    def tasks_folder(self, root: Path) -> Path | None:
        """The folder that holds the tasks of a suite; None if the suite has no such folder."""
        for folder in self.folders:
            if any(self.definitions_in(root / folder)):
                return root / folder
        return None

    @abstractmethod
    def definitions_in(self, folder: Path) -> Iterator[Path]:
        """The files that define the tasks of a folder, in order."""

    @abstractmethod
    def tasks_of(self, definition: Path, boundary: Boundary) -> Iterator[Task]:
        """The tasks that a file defines.

        Raises:
            FieldError: the file does not have the suite's format.
            SuiteError: a file of the task cannot be read.
        """

    def notes_of(self, tasks: Sequence[Task]) -> tuple[str, ...]:  # noqa: ARG002
        """Notes on the tasks, for people to read, one line each."""
        return ()

    def recognises(self, root: Path) -> bool:
        """Whether a folder holds tasks of the suite."""
        try:
            return self.tasks_folder(root) is not None
        except OSError:
            return False

    def load(self, root: Path) -> Contents:
        """Reads a suite; tasks that cannot be read are returned as faults."""
        folder = self.tasks_folder(root)
        if folder is None:
            raise SuiteError(f"{root} holds no tasks of {self.names[0]}")
        boundary = Boundary(root)
        tasks: list[Task] = []
        faults: list[str] = []
        definitions = list(self.definitions_in(folder))[:_MAX_TASKS]
        for path in definitions:
            name = path.relative_to(root).as_posix()
            if not boundary.has_file(boundary.root / name):
                faults.append(f"{name}: leads out of the suite's folder")
                continue
            try:
                tasks.extend(self.tasks_of(boundary.root / name, boundary))
            except FieldError as error:
                faults.append(f"{name}: {error}")
        return Contents(
            self.names[0],
            tuple(tasks),
            self.notes_of(tasks),
            tuple(faults),
            definitions=tuple(definitions),
        )

    def folder_answers(self, folder: Path, tasks: Mapping[str, str]) -> Mapping[str, Path]:
        """Finds folders and files named after a task, in folders at most three levels deep."""
        answers = {
            tasks[path.stem]: path
            for path in _entries_of(folder)
            if path.stem in tasks and path.suffix in self.file_suffixes and is_regular(path)
        }
        waiting = [folder]
        while waiting:
            parent = waiting.pop()
            for path in _folders_in(parent):
                parts = path.relative_to(folder).parts
                task_id = next(
                    (tasks[name] for name in (parts[-1], "/".join(parts[-2:])) if name in tasks),
                    None,
                )
                if task_id is None:
                    if len(parts) < _MAX_DEPTH:
                        waiting.append(path)
                elif task_id in answers:
                    raise SubmissionError(
                        f"{folder}: task {task_id} has two answers: {answers[task_id]} and {path}",
                        hint="Name the folder of one run.",
                    )
                else:
                    answers[task_id] = path
        return answers

    def output_of(self, file_name: str) -> tuple[str, int] | None:
        """Reads ``{id}_output.xlsx`` or ``{id}_output_1.xlsx``."""
        match = _OUTPUT.fullmatch(file_name)
        return None if match is None else (match["id"], 1)

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """Paths of the first input, under its own name, and of the output file or folder."""
        files = question.inputs[0].files if question.inputs else ()
        name = PurePosixPath(files[0].name if files else "input.xlsx")
        if self.work_folder:
            work = f"{folder}/{self.work_folder}/"
            return SolutionPaths(f"{work}{name}", work)
        if self.output_folder:
            return SolutionPaths(f"{folder}/{name}", f"{folder}/{self.output_folder}/")
        requested_file = PurePosixPath(question.details.get(REQUESTED_FILE, name.name))
        stem = requested_file.stem.removesuffix("_output_1")
        return SolutionPaths(f"{folder}/{name}", f"{folder}/{stem}_output{requested_file.suffix}")


def _folders_in(folder: Path) -> list[Path]:
    return [path for path in _entries_of(folder) if is_folder(path)]


def _entries_of(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise SubmissionError(f"{folder} cannot be listed: {error.strerror}") from error


ANSWER_CONTENTS = "leaves"
"""Name of the task detail that describes the files in the folder of an answer."""


def checklist(options: Mapping[str, object]) -> CheckerSpec:
    """The checker of a task.

    Raises:
        FieldError: the items are not valid.
    """
    spec = CheckerSpec(CHECKLIST, options)
    try:
        check_options(CheckerSpec(CHECKLIST, spec.own_options))
    except UsageError as error:
        raise FieldError(error.message) from error
    return spec


def checklist_task(
    task_id: str,
    instruction: str,
    spec: CheckerSpec,
    *,
    inputs: Sequence[InputFile] = (),
    golds: Sequence[Gold] = (),
    kind: str = "",
    groups: Mapping[str, str] | None = None,
    requested_file: str = "",
    details: Mapping[str, str] | None = None,
    aliases: tuple[str, ...] = (),
) -> Task:
    """A task with one case, whose answer is a folder of files or a single file."""
    return Task(
        id=task_id,
        instruction=instruction,
        kind=kind,
        cases=(TestCase(1, tuple(inputs), tuple(golds)),),
        checker=spec,
        answer=AnswerForm.FILES,
        groups=groups or {},
        context={**({REQUESTED_FILE: requested_file} if requested_file else {}), **(details or {})},
        raw_id=task_id,
        aliases=aliases,
    )


def input_files(folder: Path, boundary: Boundary) -> list[InputFile]:
    """All files below a folder, with their relative paths; empty if there is no such folder."""
    return [
        InputFile(path, file_kind(path), below=path.relative_to(folder).as_posix())
        for path in (regular_files(folder) if folder.is_dir() else ())
        if boundary.has_file(path)
    ]


def file_kind(path: Path) -> FileKind:
    """The kind of an input file, by its suffix; text if the suffix is unknown."""
    return KIND_OF_SUFFIX.get(path.suffix.lower(), FileKind.TEXT)


def workbook_first(files: Sequence[InputFile]) -> list[InputFile]:
    """Puts workbooks first, because programs are given the path of the first file."""
    return sorted(files, key=lambda file: file.kind is not FileKind.WORKBOOK)


# -- IB-bench: tasks of investment bankers, answered by a JSON reply and a workbook ----------------

PASS_SHARE = 0.6
_GOLD = "_golden"
_DIFFICULTIES = {"e": "easy", "m": "medium", "h": "hard"}


class IbBench(ChecklistFormat):
    """The format with ``tasks/*/rubric.json`` and ``meta.yaml``."""

    names = ("ib-bench",)
    definition = "tasks/*/rubric.json"
    folders = ("eval/tasks", "tasks")
    output_pattern = "{id}.json with {id}_output_1.xlsx next to it, or a folder {id}"
    output_folder = "output"

    def definitions_in(self, folder: Path) -> Iterator[Path]:
        """One ``rubric.json`` in the folder of each task."""
        for path in sorted(folder.glob("*/rubric.json")):
            if (path.parent / "meta.yaml").is_file():
                yield path

    def tasks_of(self, definition: Path, boundary: Boundary) -> Iterator[Task]:
        """The task of a ``rubric.json``."""
        folder = definition.parent
        rubric = read_json(definition, SuiteError)
        if not isinstance(rubric, dict) or not isinstance(rubric.get("criteria"), dict):
            raise FieldError("must hold an object with criteria")
        items = [
            _item_of_criterion(name, criterion) for name, criterion in rubric["criteria"].items()
        ]
        inputs, golds = _files(folder, boundary)
        options: dict[str, object] = {
            "evaluator": "ib-bench",
            "pass_share": PASS_SHARE,
            "items": items,
        }
        if all(item["kind"] in {"llm", "human"} for item in items):
            options[LEFT_OUT_OPTION] = "every item needs a model or a person"
        groups = {"difficulty": _DIFFICULTIES.get(folder.name[:1], folder.name[:1])}
        kind, requested_file = _kind(folder / "meta.yaml"), f"{folder.name}_output_1.xlsx"
        yield checklist_task(
            folder.name,
            _instruction(folder / "prompt.md"),
            checklist(options),
            inputs=workbook_first(inputs),
            golds=golds,
            kind=kind,
            groups=groups,
            requested_file=requested_file,
            details={
                ANSWER_CONTENTS: (
                    f"{REPLY} with the reply as JSON, "
                    f"and {requested_file} if the task wants a workbook"
                ),
                RUBRIC: rubric_hash(rubric),
            },
        )

    def folder_answers(self, folder: Path, tasks: Mapping[str, str]) -> Mapping[str, Path]:
        """Finds the responses that the suite recorded as ``{id}.json``, and folders of answers."""
        responses = {path.stem: path for path in _responses_in(folder) if path.stem in tasks}
        return {**super().folder_answers(folder, tasks), **responses}


def rubric_hash(rubric: Mapping[str, Any]) -> str:
    """The hash of a rubric; published scores identify the rubric by it."""
    return hashlib.sha256(json.dumps(rubric, sort_keys=True).encode()).hexdigest()[:8]


def _responses_in(folder: Path) -> list[Path]:
    try:
        return [path for path in sorted(folder.glob("*.json")) if is_regular(path)]
    except OSError as error:
        raise SubmissionError(f"{folder} cannot be listed: {error.strerror}") from error


def _item_of_criterion(name: str, criterion: Any) -> dict[str, object]:
    if not isinstance(criterion, dict):
        raise FieldError(f"criterion {name!r} is not an object")
    fields = Fields(criterion, f"criteria.{name}.")
    kind = fields.text("type")
    item: dict[str, object] = {
        "id": name,
        "points": criterion.get("points", 0),
        "words": fields.text("description", blank=True),
    }
    if kind == "programmatic":
        check = {"id": name, **criterion}
        gates: Mapping[str, object] = {"gates": ["llm"]} if criterion.get("gates_llm") else {}
        return {**item, "kind": "published", "suite": "ib-bench", "check": check, **gates}
    if kind == "llm_judge":
        concepts = criterion.get("core_concepts")
        more = {"concepts": concepts} if isinstance(concepts, list) else {}
        return {**item, "kind": "llm", "scale": "numeric", "min": 0, "max": 1, **more}
    if kind == "human_judge":
        guide = criterion.get("scoring_guide")
        return {**item, "kind": "human", "guide": guide if isinstance(guide, str) else str(guide)}
    raise fields.error("type", f"is {kind!r}, which is not known")


def _files(folder: Path, boundary: Boundary) -> tuple[list[InputFile], list[Gold]]:
    """The input files, and the authors' finished workbooks as golds."""
    inputs, golds = [], []
    for path in sorted(folder.iterdir()):
        if not boundary.has_file(path):
            continue
        if path.name.startswith("input"):
            inputs.append(InputFile(path, file_kind(path)))
        elif path.name.startswith(_GOLD) and path.suffix == ".xlsx":
            golds.append(Gold(path))
    return inputs, golds


def _instruction(path: Path) -> str:
    """The instruction: the part of the prompt that begins with the section ``Task``."""
    text = read_text(path, SuiteError)
    return (text[text.index("## Task") :] if "## Task" in text else text).strip()


def _kind(path: Path) -> str:
    document = read_yaml(path, SuiteError)
    task = document.get("task") if isinstance(document, dict) else None
    kind = task.get("type") if isinstance(task, dict) else None
    return kind if isinstance(kind, str) else ""


IB_BENCH = IbBench()


# -- OfficeBench: tasks in a folder with documents, calendars and mail -----------------------------

_FOLDER = re.compile(r"(?P<applications>\d)-\d{1,4}")


class OfficeBench(ChecklistFormat):
    """The format with ``tasks/A-N/subtasks/S.json``; the judge calls such a task ``A-N-S``."""

    names = ("officebench",)
    definition = "tasks/*/subtasks/*.json"
    output_pattern = "a folder {id}, or {A-N}/{S}, with the changed workspace"
    work_folder = "testbed"

    def definitions_in(self, folder: Path) -> Iterator[Path]:
        """One file for each task, in the order of their numbers."""
        found_files = (
            path
            for path in folder.glob("*/subtasks/*.json")
            if _FOLDER.fullmatch(path.parent.parent.name) and path.stem.isdecimal()
        )
        yield from sorted(
            found_files,
            key=lambda path: (*map(int, path.parent.parent.name.split("-")), int(path.stem)),
        )

    def tasks_of(self, definition: Path, boundary: Boundary) -> Iterator[Task]:
        """The task of a file; its workspace is ``testbed``, its golds are in ``reference``."""
        fields, checks = _read_checks(definition, "evaluation")
        folder = definition.parent.parent
        items = [
            {"id": str(number), "kind": "published", "suite": "officebench", "check": check}
            for number, check in enumerate(checks)
        ]
        golds = input_files(folder / "reference", boundary)
        yield checklist_task(
            f"{folder.name}-{definition.stem}",
            fields.text("task"),
            checklist({"evaluator": "officebench", "items": items}),
            inputs=workbook_first(input_files(folder / "testbed", boundary)),
            golds=[Gold(file.path) for file in golds],
            kind=f"{folder.name.partition('-')[0]} applications",
            groups={"applications": folder.name.partition("-")[0]},
            aliases=(f"{folder.name}/{definition.stem}",),
        )


def _read_checks(definition: Path, name: str) -> tuple[Fields, list[Any]]:
    """Reads the definition of a task, and its list of checks from the field ``name``."""
    record = read_json(definition, SuiteError)
    if not isinstance(record, dict):
        raise FieldError("must hold an object")
    fields, checks = Fields(record), record.get(name)
    if not isinstance(checks, list):
        raise fields.error(name, "must be a list")
    return fields, checks


OFFICEBENCH = OfficeBench()


# -- OpenComputer: tasks for LibreOffice Calc ------------------------------------------------------

_DOUBTFUL = {"calc_loan_amortization_schedule": "its instruction and its check differ in sign (O9)"}


class OpenComputer(ChecklistFormat):
    """The format with ``tasks/calc_*/task.json``."""

    names = ("opencomputer",)
    definition = "tasks/calc_*/task.json"
    folders = ("task_generator/tasks", "tasks")
    work_folder = "Documents"

    def definitions_in(self, folder: Path) -> Iterator[Path]:
        """One ``task.json`` in the folder of each task."""
        yield from sorted(folder.glob("calc_*/task.json"))

    def tasks_of(self, definition: Path, boundary: Boundary) -> Iterator[Task]:
        """The task of a ``task.json``; its files are in ``env``."""
        fields, checks = _read_checks(definition, "verification")
        task_id = fields.text("id")
        inputs = workbook_first(input_files(definition.parent / "env", boundary))
        items = [_item_of_check(number, check) for number, check in enumerate(checks)]
        yield checklist_task(
            task_id,
            fields.text("task"),
            checklist({"evaluator": "opencomputer", "items": items}),
            inputs=inputs,
            kind="libreoffice_calc",
            requested_file=inputs[0].name if inputs else "",
            details={DESKTOP_FOLDER: self.work_folder},
        )

    def notes_of(self, tasks: Sequence[Task]) -> tuple[str, ...]:
        """A note for each task whose check contradicts its instruction."""
        return tuple(f"{task.id}: {_DOUBTFUL[task.id]}" for task in tasks if task.id in _DOUBTFUL)


def _item_of_check(number: int, check: Any) -> dict[str, object]:
    words = check.get("description") if isinstance(check, dict) else None
    item: dict[str, object] = {
        "id": str(number),
        "kind": "published",
        "suite": "opencomputer",
        "check": check,
    }
    return {**item, "words": words} if isinstance(words, str) else item


OPENCOMPUTER = OpenComputer()


# -- SkillsBench: Harbor tasks whose tests the judge implements as its own checks ------------------

_NOT_WORKED_ON = ("Dockerfile", "skills/", "groundtruth/")
"""Files of ``environment`` that are not inputs of the agent."""


class SkillsBench(ChecklistFormat):
    """The format with ``tasks/*/task.toml``; only the workbook tasks are read."""

    names = ("skillsbench",)
    definition = "tasks/*/task.toml"
    file_suffixes = (".xlsx", ".pptx")
    output_pattern = "{id}.xlsx or {id}.pptx, or a folder {id} with the file that the task names"

    def definitions_in(self, folder: Path) -> Iterator[Path]:
        """The ``task.toml`` of each of the seven workbook tasks."""
        for task in sorted(TESTS):
            if (folder / task / "instruction.md").is_file():
                yield folder / task / "task.toml"

    def tasks_of(self, definition: Path, boundary: Boundary) -> Iterator[Task]:
        """The task of a ``task.toml``; inputs are in ``environment``, golds in ``tests``."""
        folder = definition.parent
        try:
            metadata = tomllib.loads(read_text(definition, SuiteError)).get("metadata", {})
        except tomllib.TOMLDecodeError as error:
            raise FieldError(f"cannot be read as TOML: {error}") from error
        items = [
            {
                "id": test,
                "kind": "published",
                "suite": "skillsbench",
                "check": {"task": folder.name, "test": test},
            }
            for test in TESTS[folder.name]
        ]
        inputs = [
            file
            for file in input_files(folder / "environment", boundary)
            if not file.below.startswith(_NOT_WORKED_ON)
        ]
        oracles = input_files(folder / "tests", boundary)
        words = {
            name: str(metadata[name])
            for name in ("category", "difficulty")
            if isinstance(metadata, dict) and isinstance(metadata.get(name), str)
        }
        yield checklist_task(
            folder.name,
            read_text(folder / "instruction.md", SuiteError),
            checklist({"evaluator": "skillsbench", "items": items}),
            inputs=workbook_first(inputs),
            golds=[Gold(file.path) for file in oracles if file.path.suffix == ".xlsx"],
            kind=words.get("category", ""),
            groups=words,
            requested_file=posixpath.basename(OUTPUTS[folder.name]),
        )


SKILLSBENCH = SkillsBench()


# -- WindowsAgentArena-V2: OSWorld's format, but on Windows ----------------------------------------

_WAA_EVALUATOR = "spider2v"
"""The evaluator; its ``compare_table`` is that of Spider2-V, an older version of OSWorld's."""


class WindowsAgentArena(DesktopFormat):
    """The format with ``examples/libreoffice_calc``; the names of its tasks end with ``-WOS``."""

    def __init__(self) -> None:
        super().__init__(_WAA_EVALUATOR, "libreoffice_calc", examples="examples")
        self.names = ("waa-v2",)

    def recognises(self, root: Path) -> bool:
        """Whether a folder holds a task for Windows."""
        return any(True for _ in (root / self.definition).glob("*-WOS.json"))

    def load(self, root: Path) -> Contents:
        """Reads a suite; a task whose workbooks are missing is left out."""
        contents = super().load(root)
        tasks = tuple(map(_rules_as_items, contents.tasks))
        return replace(contents, format="waa-v2", tasks=tasks)


def _rules_as_items(task: Task) -> Task:
    """The task with one checklist item for each rule; unchanged if rules do not decide it."""
    if task.checker.name != RULES:
        return task
    options: Mapping[str, object] = task.checker.options
    rules = options.get("rules")
    items = [
        {"id": str(number), "kind": "published", "suite": "waa-v2", "check": rule}
        for number, rule in enumerate(rules if isinstance(rules, list) else [])
    ]
    left_out = {name: value for name, value in options.items() if name == LEFT_OUT_OPTION}
    return replace(
        task, checker=CheckerSpec(CHECKLIST, {"evaluator": "waa-v2", "items": items, **left_out})
    )


WINDOWS_AGENT_ARENA = WindowsAgentArena()
