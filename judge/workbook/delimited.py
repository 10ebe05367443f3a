"""Tables in plain text (CSV and its kin), previewed as the sheet of a workbook is. Bounded."""

from __future__ import annotations

import codecs
import csv
import io
from pathlib import Path

from judge.errors import WorkbookError
from judge.files.documents import MAX_FILE_BYTES, MIB, opened_regular
from judge.workbook.preview import SheetPreview

MAX_TABLE_BYTES = 8 * MIB
"""How much of a table is read."""

_SEPARATORS = ",;\t|"
_SAMPLE_CHARS = 16 * 1024
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_table(path: Path, rows: int) -> SheetPreview:
    """The first rows of a table in plain text; its cells are strings, blank ones None.

    The text is UTF-8, or UTF-16 where the first bytes say so; what is neither is read as
    Windows-1252. Cells are separated by what the first line has most of: comma, semicolon, tab or
    bar. Blank lines are left out, as pandas does.

    Args:
        path: the file.
        rows: how many rows, the header included.

    Returns:
        The rows; ``total_rows`` is unknown (None) where the file is longer than
        :data:`MAX_TABLE_BYTES`.

    Raises:
        WorkbookError: it is missing, is not a regular file, or cannot be read as a table.
    """
    with opened_regular(path, WorkbookError, MAX_FILE_BYTES) as file:
        if file is None:
            raise WorkbookError(f"{path}: the table is missing")
        data = file.read(MAX_TABLE_BYTES + 1)
    text = _text_of(data[:MAX_TABLE_BYTES])
    whole = len(data) <= MAX_TABLE_BYTES
    if not whole:
        text = text[: text.rfind("\n") + 1]
    kept: list[list[str]] = []
    total = width = 0
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator_of(text))
    try:
        for row in reader:
            if not row:
                continue
            total += 1
            if total <= rows:
                kept.append(row)
                width = max(width, len(row))
    except csv.Error as error:
        raise WorkbookError(f"{path}, line {reader.line_num}: {error}") from error
    return SheetPreview(
        name=path.name,
        rows=tuple((*(cell or None for cell in row), *[None] * (width - len(row))) for row in kept),
        total_rows=total if whole else None,
        total_columns=width,
        more_rows=total > len(kept) or not whole,
    )


def separator_of(text: str) -> str:
    """What separates the cells of a table, by its first line that is not blank."""
    lines = text[:_SAMPLE_CHARS].splitlines()
    first = next((line for line in lines if line.strip()), "")
    return max(_SEPARATORS, key=lambda mark: (first.count(mark), -_SEPARATORS.index(mark)))


def _text_of(data: bytes) -> str:
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    # The last character may be cut in half where the file is longer than what is read.
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        return decoder.decode(data)
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")
