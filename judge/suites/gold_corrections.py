"""Writes corrected golds: copies in which cells known to be wrong have their right values.

A correction of cells belongs to one file: it states the SHA-256 of the gold that it was made for,
and that of the input if the right values depend on it. The suite's file is not changed; the
corrected gold is a separate file in the cache folder, named after its hash. All code that reads
golds reads the corrected gold instead, and verdicts on the published gold are never reused for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from judge.core.task import TestCase
from judge.errors import SuiteError, WorkbookError
from judge.files.documents import read_regular
from judge.files.paths import cache_folder
from judge.files.writing import naming_what_is_written, write_whole
from judge.suites.corrections import (
    CellCorrection,
    UnfitCellsError,
    same_value,
    shown_value,
)
from judge.workbook.cell import CellRange, CellRef, CellValue
from judge.workbook.editing.cells import set_cells
from judge.workbook.editing.sheet_xml import SetCell, address
from judge.workbook.reader import Workbook, open_workbook

CORRECTED_FOLDER = "corrected-golds"
"""Folder in the cache folder that holds ``<SHA-256 of the content>/<name of the gold>``."""


@dataclass(frozen=True, slots=True)
class GoldCorrection:
    """The corrected cells of one gold, and the files that they belong to.

    Attributes:
        gold_sha256: SHA-256 of the gold that is corrected.
        input_sha256: SHA-256 of the case's first input; None if the correction does not depend on
            it.
        cells: the corrected cells; empty if only the files are to be checked.
    """

    gold_sha256: str
    input_sha256: str | None
    cells: tuple[CellCorrection, ...] = ()


def corrected_case(case: TestCase, correction: GoldCorrection) -> TestCase | None:
    """The case with its corrected gold; None if the gold already holds the right values.

    Raises:
        UnfitCellsError: a file is not the one that the correction was made for, or a cell cannot
            be set.
        SuiteError: a file cannot be read, or the cache folder cannot be written.
    """
    matching = _matching_gold(case, correction)
    if matching is None:
        return None
    if correction.input_sha256 is not None and case.inputs:
        _check_hash(case.input_path, correction.input_sha256, "input_sha256")
    position, path, data = matching
    if not correction.cells:
        return case
    try:
        workbook = open_workbook(data)
        for cell in correction.cells:
            _check_was(workbook, cell)
        edited = set_cells(data, [SetCell(cell.ref, cell.now) for cell in correction.cells])
    except WorkbookError as error:
        raise UnfitCellsError(f"{path}: {error.message}") from error
    golds = list(case.golds)
    golds[position] = replace(golds[position], path=_stored(path.name, edited))
    return replace(case, golds=tuple(golds))


def _matching_gold(case: TestCase, correction: GoldCorrection) -> tuple[int, Path, bytes] | None:
    """Index, file and content of the gold to correct; None if it already has the right values."""
    files = [(index, gold.path) for index, gold in enumerate(case.golds) if gold.path is not None]
    hashes = []
    for index, path in files:
        data = _read(path)
        if (digest := hashlib.sha256(data).hexdigest()) == correction.gold_sha256:
            return index, path, data
        if correction.cells and _holds(data, correction.cells):
            return None
        hashes.append((path, digest))
    if not hashes:
        raise UnfitCellsError("the case has no gold that is a file")
    path, digest = hashes[0]
    raise UnfitCellsError(_another(path, digest, correction.gold_sha256, "gold_sha256"))


def _another(path: Path, digest: str, expected: str, field: str) -> str:
    return (
        f"{path} is not the file that the correction was made for: its SHA-256 is {digest}, "
        f"the correction's {field} is {expected}"
    )


def _check_hash(path: Path, expected: str, field: str) -> None:
    digest = hashlib.sha256(_read(path)).hexdigest()
    if digest != expected:
        raise UnfitCellsError(_another(path, digest, expected, field))


def _read(path: Path) -> bytes:
    data = read_regular(path, SuiteError)
    if data is None:
        raise SuiteError(f"{path} cannot be read: no such file", hint="Load the suite again.")
    return data


def _holds(data: bytes, cells: Sequence[CellCorrection]) -> bool:
    try:
        workbook = open_workbook(data)
        return all(same_value(stored_value(workbook, cell.ref), cell.now) for cell in cells)
    except WorkbookError:
        return False


def _check_was(workbook: Workbook, cell: CellCorrection) -> None:
    stored = stored_value(workbook, cell.ref)
    if not same_value(stored, cell.was):
        raise WorkbookError(
            f"{address(cell.ref)} holds {shown_value(stored)}, but the correction says that it was "
            f"{shown_value(cell.was)}"
        )


def stored_value(workbook: Workbook, ref: CellRef) -> CellValue:
    """The value that a workbook holds in a cell; None if the cell is blank.

    Raises:
        WorkbookError: there is no such sheet, or it cannot be read.
    """
    if ref.sheet not in workbook.sheet_names:
        raise WorkbookError(f"there is no sheet {ref.sheet!r}")
    cells = workbook.cells(CellRange(ref.sheet, ref.row, ref.column, ref.row, ref.column))
    cell = cells.get((ref.row, ref.column))
    return None if cell is None else cell.value


def _stored(name: str, data: bytes) -> Path:
    """Writes a corrected gold, unless it already exists, and returns its path."""
    path = cache_folder() / CORRECTED_FOLDER / hashlib.sha256(data).hexdigest() / name
    if path.is_file() and path.read_bytes() == data:
        return path
    with naming_what_is_written(path, SuiteError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data, mode=0o644)
    return path
