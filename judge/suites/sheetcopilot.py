"""The published format of SheetCopilot: long instructions for workbooks, with check boards."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.compare.boards.board import CHECK_BOARD, Board
from judge.compare.boards.board import NAME as CHECKER
from judge.core.records.reports import PublishedFigures
from judge.core.score import ScoreColumn, ScoreTable
from judge.core.task import (
    LEFT_OUT_OPTION,
    AbsentInput,
    CheckerSpec,
    FileKind,
    Gold,
    InputFile,
    Task,
    TaskQuestion,
    TestCase,
)
from judge.errors import SubmissionError, SuiteError, UsageError, WorkbookError
from judge.files.yaml_documents import read_yaml
from judge.suites.fields import FieldError
from judge.suites.folders import Boundary
from judge.suites.formats import DATA_FOLDER, Contents, FileRole, SolutionPaths, SuiteFormat
from judge.suites.suite import Suite
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, WHOLE_SHEET
from judge.workbook.cell import CellValue
from judge.workbook.reader import open_workbook

NAME = "sheetcopilot"
DEFINITION = "dataset.xlsx"
INPUTS = "task_sheets"
GOLDS = ("task_sheet_answers_v2", "task_sheet_answers")
"""Folders of golds: the second version's, then the paper's. The first one that exists is used."""

CATEGORIES = (
    "Entry and manipulation",
    "Formula",
    "Formatting",
    "Charts",
    "Pivot Table",
    "Management",
)
"""The categories in the published column; most tasks have several."""


def division_of(category: str) -> str:
    """The name of a category's division; its group ``yes`` holds the tasks of the category."""
    return category.lower().replace(" ", "_")


CATEGORY_TABLE = ScoreTable(
    "Pass@1 by category",
    (
        ScoreColumn("Total"),
        *(ScoreColumn(category, division_of(category), "yes") for category in CATEGORIES),
    ),
)

_OUTPUT = re.compile(
    r"(?P<id>[0-9]{1,6}_[A-Za-z][A-Za-z0-9]*)(?:_(?P<repeat>[0-9]{1,4})|_output)?\.xlsx"
)


class SheetCopilot(SuiteFormat):
    """The format with a ``dataset.xlsx`` next to the folders of inputs and golds."""

    names: tuple[str, ...] = (NAME,)
    definition = DEFINITION
    file_suffixes = (".xlsx",)
    output_pattern = (
        "{order}_{sheet}_{repeat}.xlsx or {no}_{sheet}_{repeat}.xlsx in a folder "
        "{order}_{sheet} or {no}_{sheet}, or {order}_{sheet}_output.xlsx"
    )

    def recognises(self, root: Path) -> bool:
        """Whether a folder holds a ``dataset.xlsx`` and a folder of inputs."""
        return (root / DEFINITION).is_file() and (root / INPUTS).is_dir()

    def load(self, root: Path) -> Contents:
        """Reads a suite; tasks whose workbooks are missing are left out, with the reason."""
        return read_suite(root)

    def output_of(self, file_name: str) -> tuple[str, int] | tuple[str, int, int] | None:
        """Reads ``{task}_{repeat}.xlsx``, where repeats are samples, and ``{task}_output.xlsx``."""
        match = _OUTPUT.fullmatch(file_name)
        if match is None:
            return None
        return (
            (match["id"], 1)
            if match["repeat"] is None
            else (match["id"], 1, max(int(match["repeat"]) - 1, 0))
        )

    def role_of(self, file_name: str, task_id: str) -> FileRole | None:
        """Recognises the task's workbook as input, and a file named after the task as output."""
        if file_name == f"{task_id.partition('_')[2]}.xlsx":
            return FileRole.INPUT
        output = self.output_of(file_name)
        return FileRole.OUTPUT if output is not None and output[0] == task_id else None

    def default_paths(self, question: TaskQuestion, folder: str = DATA_FOLDER) -> SolutionPaths:
        """The input keeps its file name; the output is ``{order}_{sheet}_output.xlsx``."""
        files = question.inputs[0].files if question.inputs else ()
        name = files[0].path.name if files else "input.xlsx"
        return SolutionPaths(f"{folder}/{name}", f"{folder}/{question.id}_output.xlsx")

    def published_figures(
        self, suite: Suite, folder: Path, accepted: Mapping[tuple[str, int], bool]
    ) -> list[PublishedFigures]:
        """Exec@1, Pass@1, A50 and A90 as published, from the logs of a results folder."""
        return published_figures(suite, folder, accepted)


FORMAT = SheetCopilot()


COLUMNS = ("Sheet Name", "No.", "Context", "Instructions", "Categories", "Atomic actions")
_MAX_TASKS = 10_000
_MAX_GOLDS = 100
_SHEET = re.compile(r"[A-Za-z][A-Za-z0-9]{0,99}")
_BOARD = "_check.yaml"


@dataclass
class _SuiteFiles:
    """Where the files of a suite are.

    Attributes:
        boundary: the folder of the suite.
        golds: name of the folder of golds; None if the suite has no golds.
        boards: the check boards that were read; they are part of the suite's definition.
    """

    boundary: Boundary
    golds: str | None
    boards: list[Path] = field(default_factory=list)


def read_suite(root: Path) -> Contents:
    """Reads the tasks of a suite.

    Args:
        root: the folder with the ``dataset.xlsx``.

    Raises:
        SuiteError: the ``dataset.xlsx`` cannot be read as a table with the published columns.
    """
    boundary = Boundary(root)
    chosen = next((gold for gold in GOLDS if (boundary.root / gold).is_dir()), None)
    files = _SuiteFiles(boundary, chosen)
    tasks: list[Task] = []
    faults: list[str] = []
    notes = [f"golds of {chosen}"] if chosen else [f"no golds: neither {' nor '.join(GOLDS)}"]
    for order, row in enumerate(_rows(boundary.root / DEFINITION), start=1):
        try:
            tasks.append(_task(order, row, files))
        except FieldError as error:
            faults.append(f"{DEFINITION}, row {order + 1}: {error}")
    absent = sum(LEFT_OUT_OPTION in task.checker.options for task in tasks)
    if absent:
        notes.append(f"{absent} tasks are left out: their workbooks are missing")
    return Contents(
        format=NAME,
        tasks=tuple(tasks),
        notes=tuple(notes),
        faults=tuple(faults),
        tables=(CATEGORY_TABLE,),
        definitions=(boundary.root / DEFINITION, *files.boards),
    )


def _rows(path: Path) -> Iterator[Mapping[str, CellValue]]:
    """The rows of the first sheet, by heading."""
    try:
        workbook = open_workbook(path)
        if not workbook.sheet_names:
            raise SuiteError(f"{path}: has no worksheet")
        values = workbook.sheet(workbook.sheet_names[0]).values(WHOLE_SHEET)
    except WorkbookError as error:
        raise SuiteError(f"{path}: {error.message}") from error
    by_row: dict[int, dict[int, CellValue]] = {}
    for key, value in values.items():
        if value is not None:
            by_row.setdefault(key >> COLUMN_BITS, {})[key & COLUMN_MASK] = value
    headings = {str(value): column for column, value in by_row.pop(1, {}).items()}
    missing = [name for name in COLUMNS if name not in headings]
    if missing:
        raise SuiteError(f"{path}: the columns {', '.join(missing)} are missing")
    if len(by_row) > _MAX_TASKS:
        raise SuiteError(f"{path}: has more than {_MAX_TASKS:,} rows")
    for row in range(2, max(by_row, default=1) + 1):
        cells = by_row.get(row, {})
        yield {name: cells.get(headings[name]) for name in COLUMNS}


def _task(order: int, row: Mapping[str, CellValue], files: _SuiteFiles) -> Task:
    sheet, number = str(row["Sheet Name"] or ""), row["No."]
    if _SHEET.fullmatch(sheet) is None:
        raise FieldError(f"column 'Sheet Name': {sheet[:80]!r} is not a name of a workbook")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise FieldError(f"column 'No.': expected a number from 1, found {number!r}"[:200])
    named = f"{number}_{sheet}"
    golds = _golds(sheet, named, files)
    source = files.boundary.root / INPUTS / f"{sheet}.xlsx"
    inputs = (InputFile(source),) if files.boundary.has_file(source) else ()
    lacking = [] if inputs else [f"{INPUTS}/{sheet}.xlsx"]
    if not golds:
        lacking.append(f"{files.golds or GOLDS[0]}/{sheet}/{named}/{named}_gt1.xlsx")
    reason = f"workbooks are missing: {', '.join(lacking)}" if lacking else ""
    categories = [category.strip() for category in str(row["Categories"] or "").split(",")]
    absent = () if inputs else (AbsentInput(lacking[0], FileKind.WORKBOOK, "fetch it"),)
    return Task(
        id=f"{order}_{sheet}",
        # The published agent is given both fields, but a prompt has only one field for them.
        instruction="\n\n".join(
            str(row[name]).strip() for name in ("Context", "Instructions") if row[name]
        ),
        kind=", ".join(category for category in CATEGORIES if category in categories)
        or "no category",
        cases=(TestCase(1, inputs, golds, absent),),
        checker=CheckerSpec(CHECKER, {LEFT_OUT_OPTION: reason} if reason else {}),
        groups={
            division_of(category): "yes" if category in categories else "no"
            for category in CATEGORIES
        },
        raw_id=f"{order}_{sheet}",
        aliases=(named,),
    )


def atomic_actions(root: Path) -> Mapping[str, int]:
    """Task id -> the least number of actions that it takes, without functions in formulas.

    Raises:
        SuiteError: the ``dataset.xlsx`` cannot be read.
    """
    return {
        f"{order}_{row['Sheet Name']}": sum(
            "function" not in action for action in str(row["Atomic actions"] or "").split(",")
        )
        for order, row in enumerate(_rows(root / DEFINITION), start=1)
    }


def _golds(sheet: str, named: str, files: _SuiteFiles) -> tuple[Gold, ...]:
    """The golds of a task, each with its board, sorted by name."""
    if files.golds is None:
        return ()
    folder = files.boundary.root / files.golds / sheet / named
    try:
        names = sorted(
            entry.name
            for entry in folder.iterdir()
            if entry.suffix == ".xlsx" and "$" not in entry.name
        )
    except OSError:
        return ()
    if len(names) > _MAX_GOLDS:
        raise FieldError(f"{folder.name} holds more than {_MAX_GOLDS} golds")
    golds = []
    for name in names:
        path = folder / name
        if not files.boundary.has_file(path):
            continue
        board = path.with_name(path.stem + _BOARD)
        if not files.boundary.has_file(board):
            raise FieldError(f"{name} has no board: {board.name} is missing")
        golds.append(Gold(path, options={"board": _board(board)}))
        files.boards.append(board)
    return tuple(golds)


def _board(path: Path) -> Mapping[str, object]:
    document = read_yaml(path, SuiteError)
    board = document.get(CHECK_BOARD) if isinstance(document, dict) else None
    try:
        Board.of(board)
    except UsageError as error:
        raise FieldError(f"{path.name}, field {CHECK_BOARD!r}: {error.message}") from error
    return dict(board or {})


_FOLDER = re.compile(r"[0-9]{1,6}_[A-Za-z][A-Za-z0-9]{0,99}")
_LOG = "_log.yaml"
_MAX_ENTRIES = 100_000


@dataclass(frozen=True, slots=True)
class ActionLog:
    """The contents of a task's log.

    Attributes:
        successes: how many repeats ended with a workbook.
        actions: how many actions each successful repeat planned.
        workbooks: how many workbooks of repeats the folder holds.
        repeats: numbers of the samples that left a workbook, counted from 0.
    """

    successes: int
    actions: tuple[int, ...]
    workbooks: int
    repeats: frozenset[int]


def read_logs(suite: Suite, folder: Path) -> tuple[dict[str, ActionLog], list[str]]:
    """The logs of a results folder.

    Args:
        suite: the suite that was answered.
        folder: the folder with a folder for each task.

    Returns:
        Task id -> its log; and the logs that cannot be read, one line each.

    Raises:
        SubmissionError: the folder cannot be listed.
    """
    try:
        entries = sorted(entry for entry in folder.iterdir() if _FOLDER.fullmatch(entry.name))
    except OSError as error:
        raise SubmissionError(f"{folder} cannot be listed: {error.strerror}") from error
    logs: dict[str, ActionLog] = {}
    problems: list[str] = []
    for entry in entries[:_MAX_ENTRIES]:
        task_id = suite.task_id_in(entry.name, ())
        path = entry / f"{entry.name}{_LOG}"
        if task_id not in suite or not path.is_file():
            continue
        try:
            logs[task_id] = _log(read_yaml(path, SubmissionError), entry)
        except (SubmissionError, OSError) as error:
            problems.append(str(error))
    return logs, problems


def _log(document: Any, folder: Path) -> ActionLog:
    if not isinstance(document, dict) or not isinstance(document.get("Success Count"), int):
        raise SubmissionError(f"{folder.name}{_LOG}: the field 'Success Count' is not a number")
    responses = document.get("Success Response")
    names = [
        path.name
        for path in folder.iterdir()
        if path.name.endswith(".xlsx") and "source" not in path.name and "~$" not in path.name
    ]
    numbers = (re.fullmatch(rf"{re.escape(folder.name)}_(\d{{1,4}})\.xlsx", name) for name in names)
    return ActionLog(
        successes=document["Success Count"],
        actions=tuple(map(_planned, responses if isinstance(responses, list) else [])),
        workbooks=len(names),
        repeats=frozenset(int(number[1]) - 1 for number in numbers if number is not None),
    )


def _planned(response: Any) -> int:
    """The actions of a plan: a list of steps, each a list of actions."""
    plan = response.get("refined response") if isinstance(response, dict) else None
    return sum(len(step) for step in plan or () if isinstance(step, list | str))


def published_figures(
    suite: Suite, folder: Path, accepted: Mapping[tuple[str, int], bool]
) -> list[PublishedFigures]:
    """Exec@1, Pass@1, A50 and A90 of each repeat, as the published evaluation gives them.

    Tasks without a folder or a log do not count in the denominator. A50 and A90 are the median and
    the 90th percentile, over the tasks that passed, of planned actions divided by the task's atomic
    actions; None if no task passed.

    Args:
        suite: the suite that was answered.
        folder: the folder of finished outputs.
        accepted: task and sample -> whether its output was accepted.

    Returns:
        An entry for each repeat; empty if no task has a log.

    Raises:
        SubmissionError: the folder cannot be listed.
        SuiteError: the suite's ``dataset.xlsx`` cannot be read.
    """
    logs, problems = read_logs(suite, folder)
    if not logs:
        return []
    least = atomic_actions(suite.root)
    samples = sorted({0, *(repeat for log in logs.values() for repeat in log.repeats)})
    figures = []
    for sample in samples:
        executed = [
            task_id
            for task_id, log in logs.items()
            if sample in log.repeats and log.workbooks == log.successes > 0
        ]
        passed = [
            task_id
            for task_id in executed
            if accepted.get((task_id, sample)) and logs[task_id].actions
        ]
        ratios = sorted(
            logs[task_id].actions[sample] / least[task_id]
            for task_id in passed
            if sample < len(logs[task_id].actions) and least.get(task_id)
        )
        figures.append(
            PublishedFigures(
                repeat=sample + 1,
                tasks=len(logs),
                executed=len(executed),
                passed=len(passed),
                exec_at_1=len(executed) / len(logs),
                pass_at_1=len(passed) / len(logs),
                a50=_percentile(ratios, 50),
                a90=_percentile(ratios, 90),
                problems=problems,
            )
        )
    return figures


def _percentile(ordered: list[float], percent: float) -> float | None:
    """A percentile, interpolated between neighbours; None if there are no values."""
    if not ordered:
        return None
    rank = (len(ordered) - 1) * percent / 100
    low, high = math.floor(rank), math.ceil(rank)
    return ordered[low] + (ordered[high] - ordered[low]) * (rank - low)
