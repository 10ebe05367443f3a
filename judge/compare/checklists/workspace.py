"""The contents of an answer's folder: files, reply, and workbooks with computed values."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from judge.compare.cells.computing import Compute
from judge.compare.files.pages import read_pages
from judge.compare.published_error import Side
from judge.compare.rules.book import Book, Grid, Grids
from judge.compare.rules.patterns import MAX_STEPS, Steps
from judge.compare.sealed import FileCache, SealedFiles, UnreadableFileError, sealed
from judge.core.submission import Answer, AnswerFile, Origin
from judge.errors import WorkbookError
from judge.files.documents import MalformedError
from judge.files.packed_folder import is_packed_folder, unpacked
from judge.workbook.address import Rectangle, Window, cell_key, parse_area, parse_cell
from judge.workbook.cell import Cell, CellRange, CellValue
from judge.workbook.reader import Workbook, open_workbook

Made = TypeVar("Made")

REPLY = "reply.json"
"""The file that holds the typed reply if the answer is a folder."""

WORKBOOK_SUFFIXES = (".xlsx", ".xlsm", ".xltx", ".xltm")
MAX_STEPS_OF_A_CHECKLIST = 3 * MAX_STEPS
"""Largest number of matching steps that all patterns of a list may take together on one answer."""
_MAX_REPLY_CHARS = 5_000_000
_MAX_DEPTH = 200  # of the JSON of a reply; deeper documents would exhaust the stack


class MissingError(Exception):
    """The answer lacks a file, a sheet or a cell that an item needs; the message names it."""


@dataclass(frozen=True, slots=True)
class ReadCell:
    """A cell of the answer.

    Attributes:
        stored: the cell as stored in the file; None if the file stores nothing there.
        value: the value, computed if the file has no reliable one.
        unknown: why the value could not be computed; empty if the value is known.
    """

    stored: Cell | None
    value: CellValue
    unknown: str = ""


class OpenBook:
    """A workbook of the answer, with its formulas computed when a sheet is first read.

    Args:
        name: path of the file below the answer's folder.
        workbook: the workbook.
        compute: computes formulas.
        origin: where the answer comes from.
    """

    def __init__(self, name: str, workbook: Workbook, compute: Compute, origin: Origin) -> None:
        self.name = name
        self.book = Book(workbook, Side.ANSWER)
        reader = sealed(compute)
        self.book.printer = None if reader is None else reader.print_sheet
        self._grids = Grids(self.book, compute, origin)

    @property
    def workbook(self) -> Workbook:
        """The workbook."""
        return self.book.workbook

    def sheet_named(self, name: str) -> str:
        """Returns the worksheet with a name in any case; the active sheet if the name is empty.

        Raises:
            MissingError: there is no such sheet.
        """
        if not name:
            front = self.workbook.active_sheet or next(iter(self.workbook.sheet_names), None)
            if front is None:
                raise MissingError(f"{self.name} has no worksheet")
            return front
        if name in self.workbook.sheet_names:
            return name
        folded = name.strip().casefold()
        for sheet in self.workbook.sheet_names:
            if sheet.strip().casefold() == folded:
                return sheet
        raise MissingError(f"{self.name} has no sheet {name!r}")

    def grid(self, sheet: str) -> Grid:
        """Returns the values of a sheet by cell key.

        Raises:
            WorkbookError: the sheet is broken or over a limit.
            RecalcError: an engine cannot be started.
        """
        return self._grids.sheet(sheet)

    def cells(self, sheet: str, window: Rectangle) -> Mapping[tuple[int, int], Cell]:
        """Returns the stored cells of a window.

        Raises:
            WorkbookError: the sheet is broken or over a limit.
        """
        return self.workbook.cells(CellRange.of(sheet, window))

    def cell(self, sheet: str, row: int, column: int) -> ReadCell:
        """Returns a cell with its value.

        Raises:
            WorkbookError: the sheet is broken or over a limit.
            RecalcError: an engine cannot be started.
        """
        window = Window(row, column, row, column)
        grid, key = self.grid(sheet), cell_key(row, column)
        stored = self.cells(sheet, window).get((row, column))
        return ReadCell(stored, grid.values.get(key), grid.not_calculated.get(key, ""))


class Workspace:
    """The files of an answer, the input files, and the golds.

    Args:
        answer: the answer; it may be hostile.
        before: path below the folder -> bytes of the file before the work.
        golds: name of a gold -> its bytes.
        compute: computes formulas.

    Attributes:
        files: path below the answer's folder -> bytes.
        before, golds, compute: as given.
        origin: where the answer comes from.
        steps: counts the matching steps of all patterns against their limit.

    Raises:
        MalformedError: the answer is an archive that cannot be read.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        before: Mapping[str, bytes] | None = None,
        golds: Mapping[str, bytes] | None = None,
        compute: Compute,
    ) -> None:
        self.files = files_of(answer)
        self.before: Mapping[str, bytes] = before or {}
        self.golds: Mapping[str, bytes] = golds or {}
        self.compute = compute
        self.origin = answer.origin
        self.steps = Steps(MAX_STEPS_OF_A_CHECKLIST)
        self._typed = answer.text
        self._open: dict[str, OpenBook | WorkbookError] = {}
        self._made: dict[str, object] = {}

    def once(self, name: str, make: Callable[[], Made]) -> Made:
        """Returns an object that items of a suite share, and makes it on the first call.

        Args:
            name: name of the object, unique among all suites.
            make: makes the object.
        """
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]  # type: ignore[return-value]

    @property
    def main(self) -> str:
        """Path of the file for items without a ``file``: the first workbook, else the first file.

        Empty if the answer has no file.
        """
        names = [name for name in self.files if name != REPLY]
        books = (name for name in names if name.lower().endswith(WORKBOOK_SUFFIXES))
        return next(books, next(iter(names), ""))

    def path_of(self, name: str) -> str:
        """Returns the normalized path of the file that an item names.

        If the answer is a single file, the main path, or a plain name with the same suffix, also
        refers to it.
        """
        path = posixpath.normpath(name) if name else self.main
        names = [name for name in self.files if name != REPLY]
        if path not in self.files and len(names) == 1 and self._is_alone(path, names[0]):
            return names[0]
        return path

    def _is_alone(self, path: str, only: str) -> bool:
        return path == self.main or (
            posixpath.basename(path) == path and posixpath.splitext(only)[1] in {"", _ending(path)}
        )

    def read(self, name: str) -> bytes:
        """Returns the bytes of a file of the answer.

        Raises:
            MissingError: the answer has no such file.
        """
        path = self.path_of(name)
        if path not in self.files:
            raise MissingError(f"the answer has no file {path!r}" if path else "there is no file")
        return self.files[path]

    def book(self, name: str = "") -> OpenBook:
        """Returns a workbook of the answer, which is opened only once.

        Raises:
            MissingError: the answer has no such file.
            WorkbookError: the workbook cannot be read.
        """
        path = self.path_of(name)
        if path not in self._open:
            try:
                workbook = open_workbook(self.read(path))
                self._open[path] = OpenBook(path, workbook, self.compute, self.origin)
            except WorkbookError as error:
                self._open[path] = error
        opened = self._open[path]
        if isinstance(opened, WorkbookError):
            raise opened
        return opened

    @cached_property
    def sealed(self) -> SealedFiles | None:
        """The reader of PDF files and databases in the sandbox; None if there is no sandbox."""
        reader = sealed(self.compute)
        return None if reader is None else FileCache(reader)

    def pdf_text(self, data: bytes) -> str:
        """Returns the text of a PDF file; empty if the file cannot be read.

        Raises:
            RecalcError: the sandbox has no interpreter, or cannot be started.
        """
        if self.sealed is None:
            return ""
        try:
            return "\n".join(map(str, read_pages(self.sealed, data)["texts"]))
        except UnreadableFileError:
            return ""

    # -- the reply -----------------------------------------------------------------------------

    @cached_property
    def reply_text(self) -> str | None:
        """The typed reply; None if there is no reply."""
        if self._typed is not None:
            return self._typed[:_MAX_REPLY_CHARS]
        data = self.files.get(REPLY)
        return None if data is None else data[:_MAX_REPLY_CHARS].decode("utf-8", "replace")

    @cached_property
    def reply(self) -> Any:
        """The reply as JSON; None if it is not JSON, or nested too deep."""
        if self.reply_text is None:
            return None
        try:
            document = json.loads(self.reply_text)
        except (ValueError, RecursionError):
            return None
        return document if _is_flat(document) else None


def files_of(answer: Answer) -> dict[str, bytes]:
    """Returns the files of an answer by path; a single archive is unpacked as a folder.

    Raises:
        MalformedError: the archive cannot be read.
    """
    if len(answer.files) == 1 and is_packed_folder(answer.files[0].data):
        return unpacked(answer.files[0].data)
    return {posixpath.normpath(file.name): file.data for file in answer.files}


def answer_of_folder(files: Mapping[str, bytes], origin: Origin) -> Answer:
    """Returns an answer that is a folder of these files."""
    listed = tuple(AnswerFile(name, data) for name, data in sorted(files.items()))
    return Answer(origin, listed)


def window_of(reference: str) -> Window:
    """Returns the rectangle of cells at an address, such as ``B2`` or ``B2:D9``.

    Raises:
        MalformedError: the text is not such an address.
    """
    window = parse_area(reference)
    if window is None:
        raise MalformedError(f"{reference!r} is not a range of cells")
    return window


def address_of(reference: str) -> tuple[int, int]:
    """Returns the row and column of the cell at an address.

    Raises:
        MalformedError: the text is not the address of a cell.
    """
    address = parse_cell(reference)
    if address is None:
        raise MalformedError(f"{reference!r} is not a cell")
    return address


def _ending(path: str) -> str:
    return posixpath.splitext(path)[1]


def _is_flat(document: object) -> bool:
    waiting = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > _MAX_DEPTH:
            return False
        if isinstance(value, Mapping):
            waiting.extend((item, depth + 1) for item in value.values())
        elif isinstance(value, list):
            waiting.extend((item, depth + 1) for item in value)
    return True
