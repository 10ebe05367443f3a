"""The sheet of an audit: written as .xlsx or .csv for a person to mark, and read back.

Other programs and people edit the sheet before it is read. Whatever it contains, reading it gives
either marks or an error that names the row.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from judge.compare.cells.render import difference_lines
from judge.console import visible
from judge.core.verdict import Verdict
from judge.errors import UsageError, WorkbookError
from judge.files.documents import MIB, read_regular
from judge.files.writing import naming_what_is_written, write_new
from judge.grading.case_records import CaseKey
from judge.report.audit import RIGHT, WRONG, AuditMarks, AuditSample, SubmissionKey
from judge.report.load import LoadedRun
from judge.report.tables import to_csv
from judge.workbook.address import column_letters
from judge.workbook.budget import ReadLimits
from judge.workbook.cell import CellRange
from judge.workbook.reader import open_workbook

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet


SHEET = "verdicts"
CASE, VERDICT = "case", "case verdict"
CASE_MARK = "case verdict: right or wrong?"
INSTRUCTION_MARK = "instruction verdict: right or wrong?"
COLUMNS = (
    ("no", 6),
    ("task", 12),
    ("sample", 8),
    (CASE, 6),
    ("instruction", 60),
    ("answer position", 18),
    (VERDICT, 9),
    (CASE_MARK, 14),
    ("instruction verdict", 12),
    (INSTRUCTION_MARK, 14),
    ("cause", 40),
    ("differences", 60),
    ("input", 10),
    ("gold", 10),
    ("output", 10),
    ("remark", 30),
    ("audit", 14),
)
"""Column heading -> width of the column in characters."""
_LINKS = ("input", "gold", "output")
MARKS = (CASE_MARK, INSTRUCTION_MARK)
_HEADINGS = [name for name, _ in COLUMNS]
_MAX_DIFFERENCES = 5
_MAX_TEXT_CHARS = 32_000
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_HOW_TO = f"""\
How to mark
Each row is one test case. Open input, gold and output, and look at the answer position.
{CASE_MARK}
   Write {RIGHT} if the verdict is right: it is AC and the output does what the instruction asks on
   this workbook, or it is another code and the output does not. Otherwise, write {WRONG}.
{INSTRUCTION_MARK}
   Only on the first row of each instruction, and about the solution as a whole: would it do what
   the instruction asks on any such workbook? Write {RIGHT} if "solved" or "not solved" is right.
   If you leave it blank, it follows from the marks of the cases.
Judge by the instruction, not by the gold: a gold can be wrong as well.
Rows that you leave blank do not count. The number, the case and the verdict of a row have to stay
as they are. Any other change is ignored.
Then: judge audit RUN --read THIS_FILE
"""


@dataclass(frozen=True, slots=True)
class CasePaths:
    """The workbooks of a case, for a person to open; None for a workbook that does not exist."""

    input: Path | None
    gold: Path | None
    output: Path | None


def audit_rows(
    run: LoadedRun, sample: AuditSample, paths: Mapping[CaseKey, CasePaths]
) -> list[dict[str, object]]:
    """The rows of the sheet, in the order of the sample, with both marks left blank."""
    rows: list[dict[str, object]] = []
    solved = dict.fromkeys(sample.submissions, True)
    for (task_id, sample_number, _), verdict in sample.verdicts.items():
        solved[task_id, sample_number] &= verdict == Verdict.AC
    seen: set[SubmissionKey] = set()
    for number, (key, verdict) in enumerate(sample.verdicts.items(), start=1):
        submission = run.submission(key[0], key[1])
        result = submission.automatic[key[2]]
        first = submission.key not in seen
        seen.add(submission.key)
        task = submission.task
        files = paths.get(key, CasePaths(None, None, None))
        rows.append(
            {
                "no": number,
                "task": key[0],
                "sample": key[1],
                CASE: key[2],
                "instruction": task.instruction if task is not None and first else "",
                "answer position": "" if task is None else task.details.get("answer_position", ""),
                VERDICT: verdict,
                CASE_MARK: "",
                "instruction verdict": _word(solved=solved[submission.key]) if first else "",
                INSTRUCTION_MARK: "",
                "cause": result.cause,
                "differences": "\n".join(difference_lines(result.comparison, _MAX_DIFFERENCES)),
                "input": files.input,
                "gold": files.gold,
                "output": files.output,
                "remark": "",
                "audit": sample.id,
            }
        )
    return rows


def _word(*, solved: bool) -> str:
    return "solved" if solved else "not solved"


def already_there(path: Path) -> UsageError:
    """The error for a sheet that would be overwritten."""
    return UsageError(
        f"{path} already exists, and may hold marks",
        hint="Read it back with --read, move it away, or give another --out.",
    )


# -- writing --------------------------------------------------------------------------------------


def write_sheet(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Writes the sheet as .xlsx or .csv, depending on the extension.

    Raises:
        UsageError: the extension is neither of the two, or the path already exists.
    """
    match path.suffix.lower():
        case ".xlsx":
            data = _xlsx(rows)
        case ".csv":
            plain = [
                {
                    name: str(value) if isinstance(value, Path) else value
                    for name, value in row.items()
                }
                for row in rows
            ]
            # With a byte order mark: without it, spreadsheet programs read the file as Latin-1.
            data = to_csv(plain).encode("utf-8-sig", errors="replace")
        case other:
            raise UsageError(f"{path}: an audit is written as .xlsx or .csv, not as {other!r}")
    try:
        with naming_what_is_written(path):
            write_new(path, data)  # does not follow a link, does not overwrite marks
    except FileExistsError as error:
        raise already_there(path) from error


def _xlsx(rows: Sequence[Mapping[str, object]]) -> bytes:
    from openpyxl import Workbook  # noqa: PLC0415  slow; only needed to write
    from openpyxl.worksheet.datavalidation import DataValidation  # noqa: PLC0415

    workbook = Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.title = SHEET
    sheet.append(_HEADINGS)
    for number, row in enumerate(rows, start=2):
        for column, name in enumerate(_HEADINGS, start=1):
            _put(sheet, number, column, name, row[name])
    choices = DataValidation(type="list", formula1=f'"{RIGHT},{WRONG}"', allow_blank=True)
    choices.error = f"write {RIGHT} or {WRONG}, or leave it blank"
    choices.showErrorMessage = True
    sheet.add_data_validation(choices)
    for name in MARKS:
        letters = column_letters(_HEADINGS.index(name) + 1)
        choices.add(f"{letters}2:{letters}{len(rows) + 1}")
    _dress(sheet)
    manual = workbook.create_sheet("how to")
    for line in _HOW_TO.splitlines():
        manual.append([line])
    manual.column_dimensions["A"].width = 110
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


def _put(sheet: Worksheet, row: int, column: int, name: str, value: object) -> None:
    if value is None or value == "":
        return
    cell = sheet.cell(row, column)
    if isinstance(value, Path):
        cell.value = name
        cell.hyperlink = value.absolute().as_uri()
    elif isinstance(value, int):
        cell.value = value
    else:
        # Text from solutions and workbooks stays text, even if it begins like a formula.
        text = _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", str(value))
        cell.value = text[:_MAX_TEXT_CHARS]
        cell.data_type = "s"


def _dress(sheet: Worksheet) -> None:
    from openpyxl.styles import Alignment, Font, PatternFill  # noqa: PLC0415

    link = Font(color="0563C1", underline="single")
    to_fill_in = PatternFill("solid", fgColor="FFF2CC")
    whole = _HEADINGS.index("instruction verdict") + 1
    sheet.freeze_panes = "E2"
    for column, (name, width) in enumerate(COLUMNS, start=1):
        sheet.column_dimensions[column_letters(column)].width = width
        heading = sheet.cell(1, column)
        heading.font = Font(bold=True)
        heading.alignment = Alignment(wrap_text=True, vertical="top")
        for row in range(2, sheet.max_row + 1):
            cell = sheet.cell(row, column)
            cell.alignment = Alignment(wrap_text=name not in _LINKS, vertical="top")
            if name in _LINKS:
                cell.font = link
            elif name == CASE_MARK or (name == INSTRUCTION_MARK and sheet.cell(row, whole).value):
                cell.fill = to_fill_in


_NEEDED = ("no", "audit", *MARKS)
_MAX_BYTES = 64 * MIB
_LIMITS = ReadLimits(file_bytes=_MAX_BYTES, part_bytes=256 * MIB, total_bytes=512 * MIB)
_MAX_SHOWN_CHARS = 80
_NUMBER = re.compile(r"([0-9]{1,9})(?:\.0{1,20})?")


@dataclass(frozen=True, slots=True)
class _Row:
    """A row with a number: its position in the sheet, and its cell values by heading."""

    number: int
    texts: Mapping[str, str]


class MarkedSheet:
    """A sheet of an audit that a person has marked.

    Args:
        path: the sheet, .xlsx or .csv.

    Raises:
        UsageError: the file cannot be read, or is not the sheet of a single audit.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = list(_rows(path))
        ids = sorted({row.texts["audit"] for row in self._rows if row.texts.get("audit")})
        if len(ids) != 1:
            audits = f"several audits: {', '.join(map(_shown, ids[:3]))}" if ids else "no audit"
            raise UsageError(
                f"{path}: holds rows of {audits}",
                hint="Read back the sheet that `judge audit RUN` wrote, with its column `audit`.",
            )
        self.audit_id = ids[0]

    def marks(self, sample: AuditSample) -> AuditMarks:
        """The marks in the sheet.

        Args:
            sample: the sample that the sheet was made for.

        Raises:
            UsageError: a mark is neither right nor wrong, a row is not in the sample or shows
                another verdict, or two marks contradict each other. The message names the row.
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
    """Finds a row's case by number, since spreadsheet programs turn the id ``13-1`` into a date."""
    number = _whole_number(texts["no"])
    if number is None or not 1 <= number <= len(keys):
        raise UsageError(
            f"{where}: the sample has no case number {_shown(texts['no'])}",
            hint="Rows may be sorted or removed; the column `no` must stay as it was.",
        )
    return keys[number - 1]


def _check_row(texts: Mapping[str, str], key: CaseKey, verdict: str, where: str) -> None:
    """Checks that the person saw the verdict that the mark is about."""
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
    """Quotes text from the sheet for a message: shortened, and without control characters."""
    cut = text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "…"
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
        elif any(texts.get(name) for name in MARKS):
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
        raise UsageError(f"{path}: has several columns {twice[0]!r}, of which only one may be left")


def _csv_table(path: Path) -> Iterator[tuple[int, dict[int, str]]]:
    """Rows by number, from 1, each with its cell values by column."""
    text = _read(path).decode("utf-8-sig", errors="replace")
    # Where the comma is the decimal separator, spreadsheet programs write semicolons.
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
        # Not as a table: one cell in the last row and column would make it 17 billion cells.
        cells_by_row: dict[int, dict[int, str]] = {}
        whole = CellRange(SHEET, 1, 1, used.max_row, used.max_column)
        for (row, column), cell in workbook.cells(whole).items():
            if cell.value is not None:
                cells_by_row.setdefault(row, {})[column] = str(cell.value).strip()
            elif cell.formula is not None:
                cells_by_row.setdefault(row, {})[column] = "(a formula without a value)"
    except WorkbookError as error:
        raise UsageError(
            f"{path}: cannot be read: {error.message}",
            hint="Give the file that `judge audit` wrote, with your marks.",
        ) from error
    yield from sorted(cells_by_row.items())


def _read(path: Path) -> bytes:
    data = read_regular(path, UsageError, max_bytes=_MAX_BYTES)
    if data is None:
        raise UsageError(f"{path}: cannot be read: no such file")
    return data
