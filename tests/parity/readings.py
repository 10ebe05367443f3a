"""What was found to be read as openpyxl reads it, on record, so that it need not be found again.

Reading every workbook of the published suites with openpyxl takes minutes of processor time. A
workbook that our reader was seen to read just so, cell by cell, is on record by two hashes: of the
file, and of what was read of it. Where both are the same again, so is the comparison. Anything
else, another version of openpyxl included, is compared anew.

    python -m tests.parity.readings DATA        # compares all of it and writes the record
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path

import openpyxl

from judge.workbook.cell import CellRange
from judge.workbook.reader import Workbook, open_workbook

RECORD = Path(__file__).with_name("readings.txt")
MAX_ROW, MAX_COLUMN = 1_048_576, 16_384
_DIGITS = 20


def everything(sheet: str) -> CellRange:
    """All of a worksheet."""
    return CellRange(sheet, 1, 1, MAX_ROW, MAX_COLUMN)


def reading_of(workbook: Workbook) -> tuple[str, int]:
    """Returns a hash of all values with their types and number formats, and the number of cells."""
    read = hashlib.sha256()
    count = 0
    for sheet in workbook.sheet_names:
        cells = workbook.cells(everything(sheet))
        count += len(cells)
        read.update(f"{sheet!r} {len(cells)}\n".encode())
        for place in sorted(cells):
            cell = cells[place]
            kind = type(cell.value).__name__
            read.update(f"{place} {kind} {cell.value!r} {cell.number_format!r}\n".encode())
    return read.hexdigest()[:_DIGITS], count


def file_of(data: bytes) -> str:
    """Returns the hash of a file."""
    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def recorded() -> dict[str, str]:
    """File -> the reading that matched openpyxl's; empty for another version of openpyxl."""
    version, *lines = RECORD.read_text().splitlines()
    if version != f"openpyxl {openpyxl.__version__}":
        return {}
    return dict(line.split() for line in lines)


def record(paths: Iterable[Path]) -> None:
    """Compares workbooks with openpyxl's reading and records those that agree."""
    from tests.parity.test_reader import hold_against_openpyxl  # noqa: PLC0415  it imports this

    lines: dict[str, str] = {}
    for path in paths:
        data = path.read_bytes()
        if file_of(data) in lines:
            continue
        tally = hold_against_openpyxl([path], formulas=False)
        if not (tally.wrong or tally.unread):
            lines[file_of(data)] = reading_of(open_workbook(data))[0]
    text = "".join(f"{file} {lines[file]}\n" for file in sorted(lines))
    RECORD.write_text(f"openpyxl {openpyxl.__version__}\n{text}")


if __name__ == "__main__":
    from tests.parity.test_reader import workbooks

    record(workbooks(Path(sys.argv[1])))
