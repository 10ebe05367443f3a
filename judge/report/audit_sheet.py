"""The sheet of an audit, written as .xlsx or .csv for a person to mark."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from judge.compare.cells.render import difference_lines
from judge.core.verdict import Verdict
from judge.errors import UsageError
from judge.files.writing import naming_what_is_written, write_new
from judge.grading.case_records import CaseKey
from judge.report.audit import RIGHT, WRONG, AuditSample, SubmissionKey
from judge.report.load import LoadedRun
from judge.report.tables import to_csv
from judge.workbook.address import column_letters

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
"""Heading of each column and its width in characters."""
_LINKS = ("input", "gold", "output")
_MARKS = (CASE_MARK, INSTRUCTION_MARK)
_HEADINGS = [name for name, _ in COLUMNS]
_MAX_DIFFERENCES = 5
_MAX_TEXT_LENGTH = 32_000
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
Rows that you leave blank do not count. The number, the case and the verdict of a row have to stay
as they are; what else you change is not read back.
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
                CASE: key[2],
                "instruction": task.instruction if task is not None and first else "",
                "answer position": "" if task is None else task.details.get("answer_position", ""),
                VERDICT: verdict,
                CASE_MARK: "",
                "instruction verdict": _word(solved=solved[submission.key]) if first else "",
                INSTRUCTION_MARK: "",
                "cause": result.cause,
                "differences": "\n".join(difference_lines(result.comparison, _MAX_DIFFERENCES)),
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


def already_there(path: Path) -> UsageError:
    """What to raise if a sheet would be overwritten."""
    return UsageError(
        f"{path} already exists, and may hold marks",
        hint="Read it back with --read, move it away, or give another --out.",
    )


# -- writing --------------------------------------------------------------------------------------


def write_sheet(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Writes the sheet; the ending of the name decides between .xlsx and .csv.

    Raises:
        UsageError: another ending, or there is something of that name already.
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
            # With a mark of its encoding: spreadsheet programs take it for Latin-1 otherwise.
            data = to_csv(plain).encode("utf-8-sig", errors="replace")
        case other:
            raise UsageError(f"{path}: an audit is written as .xlsx or .csv, not as {other!r}")
    try:
        with naming_what_is_written(path):
            write_new(path, data)  # follows no link, spoils no marks
    except FileExistsError as error:
        raise already_there(path) from error


def _xlsx(rows: Sequence[Mapping[str, object]]) -> bytes:
    from openpyxl import Workbook  # noqa: PLC0415  only for those who write a sheet
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
        cell.value = text[:_MAX_TEXT_LENGTH]
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
