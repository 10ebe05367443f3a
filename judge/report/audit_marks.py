"""Reads the sheet of an audit back, with the marks of a person.

The sheet was in other programs and other hands meanwhile: whatever it holds, it gives marks or an
error that names the row.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.console import visible
from judge.errors import UsageError, WorkbookError
from judge.files.documents import MIB, read_regular
from judge.grading.case_records import CaseKey
from judge.report.audit import RIGHT, WRONG, AuditMarks, AuditSample, SubmissionKey
from judge.report.audit_sheet import CASE, CASE_MARK, INSTRUCTION_MARK, SHEET, VERDICT
from judge.workbook.budget import ReadLimits
from judge.workbook.cell import CellRange
from judge.workbook.reader import open_workbook

_MARKS = (CASE_MARK, INSTRUCTION_MARK)
_NEEDED = ("no", "audit", *_MARKS)
_MAX_BYTES = 64 * MIB
_LIMITS = ReadLimits(file_bytes=_MAX_BYTES, part_bytes=256 * MIB, total_bytes=512 * MIB)
_MAX_SHOWN_LENGTH = 80
_NUMBER = re.compile(r"([0-9]{1,9})(?:\.0{1,20})?")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row that has a number: its place in the sheet, and its cell values by heading."""

    number: int
    texts: Mapping[str, str]


class MarkedSheet:
    """The sheet of an audit as it came back.

    Args:
        path: the sheet, .xlsx or .csv.

    Raises:
        UsageError: it cannot be read, or is not the sheet of one audit.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = list(_rows(path))
        ids = sorted({row.texts["audit"] for row in self._rows if row.texts.get("audit")})
        if len(ids) != 1:
            found = f"several audits: {', '.join(map(_shown, ids[:3]))}" if ids else "no audit"
            raise UsageError(
                f"{path}: holds rows of {found}",
                hint="Read back the sheet that `judge audit RUN` wrote, with its column `audit`.",
            )
        self.audit_id = ids[0]

    def marks(self, sample: AuditSample) -> AuditMarks:
        """The marks.

        Args:
            sample: what the sheet was made for.

        Raises:
            UsageError: a mark that is neither right nor wrong, a row that the sample does not have
                or that shows another verdict, or two marks that contradict each other; names the
                row.
        """
        cases: dict[CaseKey, bool] = {}
        instructions: dict[SubmissionKey, bool] = {}
        keys = list(sample.verdicts)
        for row in self._rows:
            where = f"{self._path}, row {row.number}"
            key = _key(row.texts, keys, where)
            _check_row(row.texts, key, sample.verdicts[key], where)
            mark = _mark(row.texts, CASE_MARK, where)
            if mark is not None:
                if cases.get(key, mark) is not mark:
                    raise UsageError(
                        f"{where}: case {key[2]} of task {_shown(key[0])} is marked both ways"
                    )
                cases[key] = mark
            whole = _mark(row.texts, INSTRUCTION_MARK, where)
            if whole is not None:
                if instructions.get(key[:2], whole) is not whole:
                    raise UsageError(
                        f"{where}: the instruction {_shown(key[0])} is marked both ways"
                    )
                instructions[key[:2]] = whole
        return AuditMarks(cases, instructions)


def _key(texts: Mapping[str, str], keys: Sequence[CaseKey], where: str) -> CaseKey:
    """The case of a row by its number: a spreadsheet program makes a date of the id ``13-1``."""
    number = _whole_number(texts["no"])
    if number is None or not 1 <= number <= len(keys):
        raise UsageError(
            f"{where}: the sample has no case number {_shown(texts['no'])}",
            hint="Rows may be sorted or removed; the column `no` must stay as it was.",
        )
    return keys[number - 1]


def _check_row(texts: Mapping[str, str], key: CaseKey, verdict: str, where: str) -> None:
    """Whether the person saw the verdict that the mark is counted for."""
    said_case, said_verdict = texts.get(CASE, ""), texts.get(VERDICT, "")
    if (said_case and _whole_number(said_case) != key[2]) or said_verdict not in {"", verdict}:
        raise UsageError(
            f"{where}: number {_shown(texts['no'])} is case {key[2]} of task {_shown(key[0])} with "
            f"the verdict {verdict}, but the row says case {_shown(said_case)} and "
            f"{_shown(said_verdict)}",
            hint="Was a column edited, or sorted without the others? Only marks may be changed.",
        )


def _whole_number(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    return None if match is None else int(match[1])


def _mark(texts: Mapping[str, str], name: str, where: str) -> bool | None:
    text = texts.get(name, "").lower()
    if not text:
        return None
    if text not in {RIGHT, WRONG}:
        raise UsageError(f"{where}: {name} {_shown(text)} is neither {RIGHT} nor {WRONG}")
    return text == RIGHT


def _shown(text: str) -> str:
    """Text of the sheet in quotes, for a message: short, and without control characters."""
    cut = text if len(text) <= _MAX_SHOWN_LENGTH else text[:_MAX_SHOWN_LENGTH] + "…"
    return f"'{visible(cut)}'"


# -- the file -------------------------------------------------------------------------------------


def _rows(path: Path) -> Iterator[_Row]:
    table = _csv_table(path) if path.suffix.lower() == ".csv" else _xlsx_table(path)
    number, headings = next(table, (0, {}))
    if number != 1:
        raise UsageError(f"{path}: is empty, or has an empty first row")
    _check_headings(path, list(headings.values()))
    for number, cells in table:
        texts = {
            heading: cells[column]
            for column, heading in headings.items()
            if heading and cells.get(column)
        }
        if texts.get("no"):
            yield _Row(number, texts)
        elif any(texts.get(name) for name in _MARKS):
            raise UsageError(
                f"{path}, row {number}: has a mark, but no number in the column `no`",
                hint="The column `no` says which case a row is; it must stay as it was.",
            )


def _check_headings(path: Path, headings: Sequence[str]) -> None:
    lacking = [name for name in _NEEDED if name not in headings]
    if lacking:
        raise UsageError(
            f"{path}: is not an audit sheet: it lacks the columns {', '.join(lacking)}"
        )
    twice = [name for name in (*_NEEDED, CASE, VERDICT) if headings.count(name) > 1]
    if twice:
        raise UsageError(f"{path}: has several columns {twice[0]!r}: which one counts?")


def _csv_table(path: Path) -> Iterator[tuple[int, dict[int, str]]]:
    """Rows by number, from 1, each with its cell values by column."""
    text = _read(path).decode("utf-8-sig", errors="replace")
    # Spreadsheet programs of half the world write semicolons.
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for number, row in enumerate(reader, start=1):
            yield (
                number,
                {column: cell.removeprefix("'").strip() for column, cell in enumerate(row)},
            )
    except csv.Error as error:
        raise UsageError(
            f"{path}, line {reader.line_num}: cannot be read as CSV: {error}"
        ) from error


def _xlsx_table(path: Path) -> Iterator[tuple[int, dict[int, str]]]:
    """Rows by number, from 1, each with its cell values by column; blank rows are left out."""
    data = _read(path)
    try:
        workbook = open_workbook(data, limits=_LIMITS)
        used = workbook.used_range(SHEET)
        if used is None:
            return
        # Not as a table: one cell in the last row and column would make a table of 17 billion.
        found: dict[int, dict[int, str]] = {}
        whole = CellRange(SHEET, 1, 1, used.max_row, used.max_column)
        for (row, column), cell in workbook.cells(whole).items():
            if cell.value is not None:
                found.setdefault(row, {})[column] = str(cell.value).strip()
            elif cell.formula is not None:
                found.setdefault(row, {})[column] = "(a formula without a value)"
    except WorkbookError as error:
        raise UsageError(f"{path}: cannot be read: {error.message}") from error
    yield from sorted(found.items())


def _read(path: Path) -> bytes:
    data = read_regular(path, UsageError, most_bytes=_MAX_BYTES)
    if data is None:
        raise UsageError(f"{path}: cannot be read: no such file")
    return data
