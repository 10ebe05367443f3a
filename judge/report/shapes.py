"""Shapes of a run's workbooks: their sizes and the kinds of their tables.

The published suites do not say which tasks are in the eight subsets of the paper's Table 3, so this
module derives them from the workbooks. docs/reports.md describes the rules, and
``benchmarks/subsets.py`` compares the resulting shares with the paper's.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from itertools import pairwise
from pathlib import Path

import judge.report
import judge.workbook
from judge.compare.contract import GoldFaultError
from judge.compare.registry import checker_of
from judge.core.task import FileKind, Task, TestCase
from judge.errors import UsageError, WorkbookError
from judge.files.documents import MAX_DOCUMENT_BYTES, read_kept
from judge.files.paths import cache_folder
from judge.files.writing import digest_of_modules, write_whole
from judge.report.load import LoadedRun, LoadedSubmission
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, WHOLE_SHEET, Window
from judge.workbook.reader import Workbook, open_workbook

MIN_ROWS = 3
"""Fewest rows of a table: a header and two records."""
MIN_COLUMNS = 2
MIN_SHARE = 0.2
"""Fewest cells of a table, as a share of the cells of the largest table; a smaller region is a
note."""


@dataclass(frozen=True, slots=True)
class WorkbookShape:
    """Size and kind of a workbook.

    Attributes:
        rows: height of the rectangle around all values of the tallest sheet.
        columns: width of the rectangle around all values of the widest sheet.
        sheets: number of worksheets that hold a value.
        tables: number of tables on all sheets; 0 if no region is large enough.
        is_relational: whether the largest table is a relational one; None if there is no table.
    """

    rows: int
    columns: int
    sheets: int
    tables: int
    is_relational: bool | None


@dataclass(frozen=True, slots=True)
class _Region:
    """Connected cells, as Excel's "current region" finds them."""

    sheet: str
    window: Window
    cells: int

    @property
    def rows(self) -> int:
        return self.window.max_row - self.window.min_row + 1

    @property
    def columns(self) -> int:
        return self.window.max_column - self.window.min_column + 1


def measure(workbook: Workbook) -> WorkbookShape:
    """Measures the size and kind of a workbook.

    Raises:
        WorkbookError: a sheet is broken or over a limit.
    """
    rows = columns = sheets = 0
    regions: list[_Region] = []
    for name in workbook.sheet_names:
        cells = _filled_cells(workbook, name)
        if not cells:
            continue
        around = _around(cells)
        sheets += 1
        rows = max(rows, around.max_row - around.min_row + 1)
        columns = max(columns, around.max_column - around.min_column + 1)
        regions += [_Region(name, _around(region), len(region)) for region in _cut(cells)]
    tables = [
        region for region in regions if region.rows >= MIN_ROWS and region.columns >= MIN_COLUMNS
    ]
    largest = max(tables, key=lambda table: table.cells, default=None)
    if largest is None:
        return WorkbookShape(rows, columns, sheets, 0, None)
    return WorkbookShape(
        rows=rows,
        columns=columns,
        sheets=sheets,
        tables=sum(table.cells >= MIN_SHARE * largest.cells for table in tables),
        is_relational=_is_relational(workbook, largest),
    )


_Cell = tuple[int, int]


def _filled_cells(workbook: Workbook, sheet: str) -> list[_Cell]:
    """The cells that hold a value or a formula, as (row, column)."""
    read = workbook.sheet(sheet)
    keys = {key for key, value in read.values(WHOLE_SHEET).items() if value not in {None, ""}}
    keys.update(read.formula_keys(WHOLE_SHEET))
    return [(key >> COLUMN_BITS, key & COLUMN_MASK) for key in keys]


def _around(cells: Sequence[_Cell]) -> Window:
    rows, columns = {row for row, _ in cells}, {column for _, column in cells}
    return Window(min(rows), min(columns), max(rows), max(columns))


def _cut(cells: list[_Cell]) -> Iterator[list[_Cell]]:
    """Splits cells at blank rows, then at blank columns, and so on, until no part can be split."""
    waiting = [cells]
    while waiting:
        part = waiting.pop()
        pieces = _cut_along(part, lambda cell: cell[0])
        if len(pieces) == 1:
            pieces = _cut_along(part, lambda cell: cell[1])
        if len(pieces) == 1:
            yield part
        else:
            waiting.extend(pieces)


def _cut_along(cells: list[_Cell], line: Callable[[_Cell], int]) -> list[list[_Cell]]:
    lines = sorted({line(cell) for cell in cells})
    if lines[-1] - lines[0] + 1 == len(lines):
        return [cells]
    part_of = {lines[0]: 0}
    for before, here in pairwise(lines):
        part_of[here] = part_of[before] + (here - before > 1)
    parts: dict[int, list[_Cell]] = defaultdict(list)
    for cell in cells:
        parts[part_of[line(cell)]].append(cell)
    return list(parts.values())


def _is_relational(workbook: Workbook, table: _Region) -> bool:
    """Whether every column has text as its name in the first row, and no cell is merged."""
    sheet, window = workbook.sheet(table.sheet), table.window
    if any(_overlap(window, merged) for merged in sheet.tail.merges):
        return False
    header = Window(window.min_row, window.min_column, window.min_row, window.max_column)
    values = sheet.values(header)
    names = [
        values.get(window.min_row << COLUMN_BITS | column)
        for column in range(window.min_column, window.max_column + 1)
    ]
    return all(isinstance(name, str) and name.strip() for name in names)


def _overlap(one: Window, other: Window) -> bool:
    return not (
        one.max_row < other.min_row
        or other.max_row < one.min_row
        or one.max_column < other.min_column
        or other.max_column < one.min_column
    )


# -- cache by content -----------------------------------------------------------------------------


@functools.cache
def shapes_digest() -> str:
    """A hash that changes with these rules and with the code that reads workbooks."""
    rules = resources.files(judge.report).joinpath("shapes.py").read_bytes()
    read = digest_of_modules(judge.workbook)
    return hashlib.sha256(rules + read.encode()).hexdigest()[:16]


class ShapeCache:
    """Shapes of workbooks, cached by content: a workbook is read once, whatever its name.

    Args:
        folder: the folder that keeps shapes between commands; None to keep them in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = None if folder is None else folder / "shapes" / shapes_digest()
        self._known: dict[str, WorkbookShape | None] = {}

    def of(self, data: bytes) -> WorkbookShape | None:
        """The shape of a workbook; None if it cannot be read."""
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._known:
            self._known[digest] = self._read(digest) or self._measure(digest, data)
        return self._known[digest]

    def _measure(self, digest: str, data: bytes) -> WorkbookShape | None:
        try:
            shape = measure(open_workbook(data))
        except WorkbookError:
            return None
        self._write(digest, shape)
        return shape

    def _path(self, digest: str) -> Path:
        assert self._folder is not None
        return self._folder / digest[:2] / f"{digest}.json"

    def _read(self, digest: str) -> WorkbookShape | None:
        if self._folder is None:
            return None
        try:
            shape = WorkbookShape(**(read_kept(self._path(digest)) or {}))
        except TypeError:
            return None  # missing or broken: the workbook is measured again
        counts = (shape.rows, shape.columns, shape.sheets, shape.tables)
        is_whole = all(type(count) is int and 0 <= count < MAX_DOCUMENT_BYTES for count in counts)
        return shape if is_whole and shape.is_relational in {None, True, False} else None

    def _write(self, digest: str, shape: WorkbookShape) -> None:
        if self._folder is None:
            return
        path = self._path(digest)
        # If the disk is full, the entry is lost, not the report.
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, json.dumps(asdict(shape)).encode())


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The workbooks of one test case.

    Attributes:
        input_bytes: size of the input; None if it is not available.
        shape: size and kind of the input; None if it cannot be read.
        answer_cells: number of cells in the answer range; None if the gold cannot be read.
    """

    input_bytes: int | None
    shape: WorkbookShape | None
    answer_cells: int | None


UNKNOWN_FILES = CaseFiles(None, None, None)

CaseFilesByCase = Mapping[tuple[str, int], CaseFiles]
"""(task id, case number) -> its workbooks."""


def inspect_files(
    run: LoadedRun,
    cache: ShapeCache | None = None,
    *,
    on_file: Callable[[], None] = lambda: None,
) -> dict[tuple[str, int], CaseFiles]:
    """Reads the input workbooks of all cases that a run reports on.

    Args:
        run: the run; if its suite is not available, the result is empty.
        cache: where shapes are looked up first; None for this machine's cache.
        on_file: called before each file; an exception that it raises stops the reading.
    """
    cache = cache or ShapeCache(cache_folder())
    files: dict[tuple[str, int], CaseFiles] = {}
    for submission in run.submissions:
        if submission.task is None:
            continue
        for case in submission.task.cases:
            key = (submission.task_id, case.number)
            if key not in files:
                on_file()
                files[key] = _inspect(submission, submission.task, case, cache)
    return files


def _inspect(
    submission: LoadedSubmission, task: Task, case: TestCase, cache: ShapeCache
) -> CaseFiles:
    # Only workbooks have a shape.
    first = case.inputs[0] if case.inputs else None
    is_workbook = first is not None and first.kind is FileKind.WORKBOOK
    data = _read(case.input_path) if is_workbook else None
    recorded = None
    if (result := submission.automatic.get(case.number)) is not None:
        recorded = result.comparison.get("cells")
    return CaseFiles(
        input_bytes=None if data is None else len(data),
        shape=None if data is None else cache.of(data),
        answer_cells=_answer_cells(task, case) if recorded is None else recorded,
    )


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _answer_cells(task: Task, case: TestCase) -> int | None:
    """Size of the answer in the checker's units, if the comparison did not count them."""
    try:
        return checker_of(task.checker).examine(task, case, None).units
    except (GoldFaultError, UsageError):
        return None
