"""Reads a ``dataset.xlsx`` with the inputs and golds next to it. Opens no other workbook."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from judge.compare.boards.board import CHECK_BOARD, Board
from judge.compare.boards.board import NAME as CHECKER
from judge.core.task import (
    LEFT_OUT_OPTION,
    AbsentInput,
    CheckerSpec,
    FileKind,
    Gold,
    InputFile,
    Task,
    TestCase,
)
from judge.errors import SuiteError, UsageError, WorkbookError
from judge.files.yaml_documents import read_yaml
from judge.suites.boundary import Boundary
from judge.suites.formats import Contents
from judge.suites.sheetcopilot import CATEGORIES, DEFINITION, GOLDS, INPUTS, NAME, division_of
from judge.suites.sheetcopilot.format import CATEGORY_TABLE
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, WHOLE_SHEET
from judge.workbook.cell import CellValue
from judge.workbook.reader import open_workbook

COLUMNS = ("Sheet Name", "No.", "Context", "Instructions", "Categories", "Atomic actions")
_MOST_TASKS = 10_000
_MOST_GOLDS = 100
_SHEET = re.compile(r"[A-Za-z][A-Za-z0-9]{0,99}")
_BOARD = "_check.yaml"


class _FieldError(Exception):
    """What is wrong with a row."""


@dataclass
class _Places:
    """Where the files of a suite are.

    Attributes:
        boundary: the folder of the suite.
        golds: name of the folder of golds; None if there is none.
        boards: the boards that were read, which belong to the definition.
    """

    boundary: Boundary
    golds: str | None
    boards: list[Path] = field(default_factory=list)

    def is_file(self, path: Path) -> bool:
        """Whether a path is a regular file of the suite."""
        try:
            return self.boundary.holds(path) and stat.S_ISREG(path.stat().st_mode)
        except (OSError, ValueError):
            return False


def read_suite(root: Path) -> Contents:
    """Reads the tasks of a suite.

    Args:
        root: the folder with the ``dataset.xlsx``.

    Raises:
        SuiteError: the ``dataset.xlsx`` cannot be read as a table with the published columns.
    """
    boundary = Boundary(root)
    chosen = next((each for each in GOLDS if (boundary.root / each).is_dir()), None)
    places = _Places(boundary, chosen)
    tasks: list[Task] = []
    faults: list[str] = []
    notes = [f"golds of {chosen}"] if chosen else [f"no golds: neither {' nor '.join(GOLDS)}"]
    for order, row in enumerate(_rows(boundary.root / DEFINITION), start=1):
        try:
            tasks.append(_task(order, row, places))
        except _FieldError as error:
            faults.append(f"{DEFINITION}, row {order + 1}: {error}")
    absent = sum(LEFT_OUT_OPTION in each.checker.options for each in tasks)
    if absent:
        notes.append(f"{absent} tasks are left out: their workbooks are not there")
    return Contents(
        format=NAME,
        tasks=tuple(tasks),
        notes=tuple(notes),
        faults=tuple(faults),
        tables=(CATEGORY_TABLE,),
        definitions=(boundary.root / DEFINITION, *places.boards),
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
    if len(by_row) > _MOST_TASKS:
        raise SuiteError(f"{path}: has more than {_MOST_TASKS:,} rows")
    for row in range(2, max(by_row, default=1) + 1):
        found = by_row.get(row, {})
        yield {name: found.get(headings[name]) for name in COLUMNS}


def _task(order: int, row: Mapping[str, CellValue], places: _Places) -> Task:
    sheet, number = str(row["Sheet Name"] or ""), row["No."]
    if _SHEET.fullmatch(sheet) is None:
        raise _FieldError(f"column 'Sheet Name': {sheet[:80]!r} is not a name of a workbook")
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise _FieldError(f"column 'No.': expected a number from 1, found {number!r}"[:200])
    named = f"{number}_{sheet}"
    golds = _golds(sheet, named, places)
    source = places.boundary.root / INPUTS / f"{sheet}.xlsx"
    inputs = (InputFile(source),) if places.is_file(source) else ()
    lacking = [] if inputs else [f"{INPUTS}/{sheet}.xlsx"]
    if not golds:
        lacking.append(f"{places.golds or GOLDS[0]}/{sheet}/{named}/{named}_gt1.xlsx")
    reason = f"the workbooks are not there: {', '.join(lacking)}" if lacking else ""
    categories = [each.strip() for each in str(row["Categories"] or "").split(",")]
    absent = () if inputs else (AbsentInput(lacking[0], FileKind.WORKBOOK, "fetch it"),)
    return Task(
        id=f"{order}_{sheet}",
        # The published agent is given both; a prompt has one place for what a person asks.
        instruction="\n\n".join(
            str(row[name]).strip() for name in ("Context", "Instructions") if row[name]
        ),
        kind=", ".join(each for each in CATEGORIES if each in categories) or "no category",
        cases=(TestCase(1, inputs, golds, absent),),
        checker=CheckerSpec(CHECKER, {LEFT_OUT_OPTION: reason} if reason else {}),
        groups={division_of(each): "yes" if each in categories else "no" for each in CATEGORIES},
        raw_id=f"{order}_{sheet}",
        aliases=(named,),
    )


def atomic_actions(root: Path) -> Mapping[str, int]:
    """How many actions each task takes at least, functions of formulas aside, by its id.

    Raises:
        SuiteError: the ``dataset.xlsx`` cannot be read.
    """
    return {
        f"{order}_{row['Sheet Name']}": sum(
            "function" not in each for each in str(row["Atomic actions"] or "").split(",")
        )
        for order, row in enumerate(_rows(root / DEFINITION), start=1)
    }


def _golds(sheet: str, named: str, places: _Places) -> tuple[Gold, ...]:
    """The golds of a task, each with its board, by their names."""
    if places.golds is None:
        return ()
    folder = places.boundary.root / places.golds / sheet / named
    try:
        names = sorted(
            each.name
            for each in folder.iterdir()
            if each.suffix == ".xlsx" and "$" not in each.name
        )
    except OSError:
        return ()
    if len(names) > _MOST_GOLDS:
        raise _FieldError(f"{folder.name} holds more than {_MOST_GOLDS} golds")
    found = []
    for name in names:
        path = folder / name
        if not places.is_file(path):
            continue
        board = path.with_name(path.stem + _BOARD)
        if not places.is_file(board):
            raise _FieldError(f"{name} has no board: {board.name} is not there")
        found.append(Gold(path, options={"board": _board(board)}))
        places.boards.append(board)
    return tuple(found)


def _board(path: Path) -> Mapping[str, object]:
    document = read_yaml(path, SuiteError)
    given = document.get(CHECK_BOARD) if isinstance(document, dict) else None
    try:
        Board.of(given)
    except UsageError as error:
        raise _FieldError(f"{path.name}, field {CHECK_BOARD!r}: {error.message}") from error
    return dict(given or {})
