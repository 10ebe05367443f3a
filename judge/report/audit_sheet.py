"""The sheet of an audit: written as .xlsx or .csv for a person, and read back."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from judge.compare.address import column_letters
from judge.compare.cell import CellRange
from judge.compare.reader import open_workbook
from judge.compare.render import difference_lines
from judge.documents import MIB, read_regular
from judge.errors import UsageError, WorkbookError
from judge.records import CaseKey
from judge.report.audit import RIGHT, WRONG, AuditMarks, AuditSample, SubmissionKey
from judge.report.load import LoadedRun
from judge.report.tables import to_csv
from judge.verdict import Verdict

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

CASE_MARK = "case verdict: right or wrong?"
INSTRUCTION_MARK = "instruction verdict: right or wrong?"
COLUMNS = (
    ("no", 6),
    ("task", 12),
    ("sample", 8),
    ("case", 6),
    ("instruction", 60),
    ("answer position", 18),
    ("case verdict", 9),
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
"""Heading of each column and its width in characters."""
_LINKS = ("input", "gold", "output")
_MARKS = (CASE_MARK, INSTRUCTION_MARK)
_SHEET = "verdicts"
_HEADINGS = [name for name, _ in COLUMNS]
_MOST_DIFFERENCES = 5
_LONGEST_TEXT = 32_000
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_HOW_TO = f"""\
How to mark
Each row is one test case. Open input, gold and output, and look at the answer position.
{CASE_MARK}
   Write {RIGHT} where the verdict is right: AC, and the output does what the instruction asks on
   this workbook; or another code, and it does not. Otherwise write {WRONG}.
{INSTRUCTION_MARK}
   On the first row of each instruction, and of the solution as a whole: would it do what the
   instruction asks on any such workbook? Write {RIGHT} where that fits solved or not solved.
   Left blank, it follows from the marks of the cases.
Judge by the instruction, not by the gold: a gold can be wrong as well.
Rows that you leave blank do not count. Other columns are not read back.
Then: judge audit RUN --read THIS_FILE
"""


@dataclass(frozen=True, slots=True)
class CasePaths:
    """Where a person finds the workbooks of a case; None where there is none."""

    input: Path | None
    gold: Path | None
    output: Path | None


def audit_rows(
    run: LoadedRun, sample: AuditSample, paths: Mapping[CaseKey, CasePaths]
) -> list[dict[str, object]]:
    """The rows of the sheet, in the order of the sample, with both marks left blank."""
    rows: list[dict[str, object]] = []
    solved = dict.fromkeys(sample.submissions, True)
    for (task_id, place, _), verdict in sample.verdicts.items():
        solved[task_id, place] &= verdict == Verdict.AC
    seen: set[SubmissionKey] = set()
    for number, (key, verdict) in enumerate(sample.verdicts.items(), start=1):
        submission = run.submission(key[0], key[1])
        result = submission.automatic[key[2]]
        first = submission.key not in seen
        seen.add(submission.key)
        task = submission.task
        found = paths.get(key, CasePaths(None, None, None))
        rows.append(
            {
                "no": number,
                "task": key[0],
                "sample": key[1],
                "case": key[2],
                "instruction": task.instruction if task is not None and first else "",
                "answer position": "" if task is None else task.answer_position,
                "case verdict": verdict,
                CASE_MARK: "",
                "instruction verdict": _word(solved=solved[submission.key]) if first else "",
                INSTRUCTION_MARK: "",
                "cause": result.cause,
                "differences": "\n".join(difference_lines(result.comparison, _MOST_DIFFERENCES)),
                "input": found.input,
                "gold": found.gold,
                "output": found.output,
                "remark": "",
                "audit": sample.id,
            }
        )
    return rows


def _word(*, solved: bool) -> str:
    return "solved" if solved else "not solved"


# -- writing --------------------------------------------------------------------------------------


def write_sheet(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Writes the sheet; the ending of the name decides between .xlsx and .csv.

    Raises:
        UsageError: another ending.
    """
    match path.suffix.lower():
        case ".xlsx":
            path.write_bytes(_xlsx(rows))
        case ".csv":
            plain = [
                {
                    name: str(value) if isinstance(value, Path) else value
                    for name, value in row.items()
                }
                for row in rows
            ]
            # With a mark of its encoding: spreadsheet programs take it for Latin-1 otherwise.
            path.write_text(to_csv(plain), encoding="utf-8-sig", errors="replace")
        case other:
            raise UsageError(f"{path}: an audit is written as .xlsx or .csv, not as {other!r}")


def _xlsx(rows: Sequence[Mapping[str, object]]) -> bytes:
    from openpyxl import Workbook  # noqa: PLC0415  only for those who write a sheet
    from openpyxl.worksheet.datavalidation import DataValidation  # noqa: PLC0415

    workbook = Workbook()
    sheet = workbook.active
    assert sheet is not None
    sheet.title = _SHEET
    sheet.append(_HEADINGS)
    for number, row in enumerate(rows, start=2):
        for column, name in enumerate(_HEADINGS, start=1):
            _put(sheet, number, column, name, row[name])
    choices = DataValidation(type="list", formula1=f'"{RIGHT},{WRONG}"', allow_blank=True)
    choices.error = f"write {RIGHT} or {WRONG}, or leave it blank"
    choices.showErrorMessage = True
    sheet.add_data_validation(choices)
    for name in _MARKS:
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
        # Texts of solutions and workbooks stay texts, whatever they begin with.
        text = _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", str(value))
        cell.value = text[:_LONGEST_TEXT]
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


# -- reading back ---------------------------------------------------------------------------------


def sheet_audit_id(path: Path) -> str:
    """Which audit a sheet belongs to.

    Raises:
        UsageError: it is no sheet of an audit, or of several.
    """
    ids = {row["audit"] for _, row in _rows(path) if row.get("audit")}
    if len(ids) != 1:
        found = "no audit" if not ids else f"several audits: {', '.join(sorted(ids))}"
        raise UsageError(
            f"{path}: holds rows of {found}",
            hint="Read back the sheet that `judge audit RUN` wrote, with its column `audit`.",
        )
    return ids.pop()


def read_marks(path: Path, sample: AuditSample) -> AuditMarks:
    """Reads the marks of a sheet.

    Args:
        path: the sheet, .xlsx or .csv.
        sample: what it was made for.

    Raises:
        UsageError: a mark that is neither right nor wrong, a row that the sample does not have, or
            two marks that contradict each other; names the row.
    """
    cases: dict[CaseKey, bool] = {}
    instructions: dict[SubmissionKey, bool] = {}
    keys = list(sample.verdicts)
    for number, row in _rows(path):
        where = f"{path}, row {number}"
        key = _key(row, keys, where)
        mark = _mark(row, CASE_MARK, where)
        if mark is not None:
            if cases.get(key, mark) is not mark:
                raise UsageError(f"{where}: case {key[2]} of task {key[0]} is marked both ways")
            cases[key] = mark
        whole = _mark(row, INSTRUCTION_MARK, where)
        if whole is not None:
            if instructions.get(key[:2], whole) is not whole:
                raise UsageError(f"{where}: the instruction {key[0]} is marked both ways")
            instructions[key[:2]] = whole
    return AuditMarks(cases, instructions)


def _key(row: Mapping[str, str], keys: Sequence[CaseKey], where: str) -> CaseKey:
    """The case of a row by its number: a spreadsheet program makes a date of the id ``13-1``."""
    text = row["no"].strip()
    number = int(float(text)) if re.fullmatch(r"\d+(\.0+)?", text) else 0
    if not 1 <= number <= len(keys):
        raise UsageError(
            f"{where}: the sample has no case number {text!r}",
            hint="Rows may be sorted or taken out; the column `no` has to stay as it was.",
        )
    return keys[number - 1]


def _mark(row: Mapping[str, str], name: str, where: str) -> bool | None:
    text = row.get(name, "").strip().lower()
    if not text:
        return None
    if text not in {RIGHT, WRONG}:
        raise UsageError(f"{where}: {name} {text!r} is neither {RIGHT} nor {WRONG}")
    return text == RIGHT


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows with a number, as texts by heading, with their numbers in the sheet."""
    table = _csv_table(path) if path.suffix.lower() == ".csv" else _xlsx_table(path)
    if not table:
        raise UsageError(f"{path}: is empty")
    headings = [text.strip() for text in table[0]]
    lacking = [name for name in ("no", "audit", *_MARKS) if name not in headings]
    if lacking:
        raise UsageError(
            f"{path}: is no sheet of an audit: it lacks the columns {', '.join(lacking)}"
        )
    for number, cells in enumerate(table[1:], start=2):
        row = dict(zip(headings, cells, strict=False))
        if row.get("no", "").strip():
            yield number, row


def _csv_table(path: Path) -> list[list[str]]:
    data = read_regular(path, UsageError, most_bytes=256 * MIB) or b""
    text = data.decode("utf-8-sig", "replace")
    # Spreadsheet programs of half the world write semicolons.
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    table = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    return [[cell.removeprefix("'") for cell in row] for row in table]


def _xlsx_table(path: Path) -> list[list[str]]:
    try:
        workbook = open_workbook(path)
        used = workbook.used_range(_SHEET)
    except WorkbookError as error:
        raise UsageError(f"{path}: cannot be read: {error.message}") from error
    if used is None:
        return []
    whole = CellRange(_SHEET, 1, 1, used.max_row, used.max_column)
    table = [[""] * used.max_column for _ in range(used.max_row)]
    for (row, column), cell in workbook.cells(whole).items():
        if cell.value is not None:
            table[row - 1][column - 1] = str(cell.value)
    return table
