"""Parses the text answers of models that cannot write programs, and makes a program of them.

The program contains the answers to every case, under the hash of the case's input workbook, and
writes them into a copy of the workbook. So these answers are treated like any other solution: the
program runs in the sandbox, and its output is compared as usual.
"""

from __future__ import annotations

import pprint
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from judge.replies.reasoning import strip_reasoning
from judge.workbook.address import column_letters, column_number

CellValue = str | int | float | bool | date | datetime

_LINE = re.compile(
    r"""[\s>*\-|`]*+
    (?:(?:'(?P<quoted>(?:[^']|'')++)'|(?P<plain>[^\s'!:|]++))!)?
    \$?(?P<column>[A-Za-z]{1,3})\$?(?P<row>[1-9]\d{0,6})
    [`*]*+\s*+(?::|=|\||->|→)(?P<value>.*)""",
    re.VERBOSE,
)
_RANGE = re.compile(
    r"(?:(?:'(?P<quoted>[^']+)'?|(?P<plain>[^\s'!,:]+))!'?)?\s*"
    r"\$?(?P<column>[A-Za-z]{1,3})\$?(?P<row>\d+)(?:\s*[:\uff1a]\s*\$?(?P<last>[A-Za-z]{1,3})\$?(?P<end>\d+))?"
)
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?|-?\.\d+")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_RULE = re.compile(r"[\s|:+-]*+\Z")
_LEAD = re.compile(r"^(?:the\s+)?(?:final\s+)?answer(?:\s+is)?\s*[:=]\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """The value of one cell.

    Attributes:
        sheet: the sheet's name; None for the sheet of the answer position.
        address: the cell, such as ``B2``.
        value: the value to write into the cell.
    """

    sheet: str | None
    address: str
    value: CellValue


def read_answers(reply: str, position: str) -> tuple[Answer, ...]:
    """Reads the cell values in a reply.

    Lines such as ``B2: 17.5`` give values. If there are no such lines, the reply is read as a table
    that fills the answer position row by row.

    Args:
        reply: the message's text.
        position: the answer position as written in the suite.

    Returns:
        The values, only the last one for each cell; empty if the reply contains no values.
    """
    lines = [line for line in strip_reasoning(reply).splitlines() if not _FENCE.match(line)]
    answers: dict[tuple[str | None, str], Answer] = {}
    for line in lines:
        match = _LINE.match(line[:5000])
        value = match["value"].rstrip().removesuffix("|").strip() if match else ""
        if match and value:
            sheet = (match["quoted"] or "").replace("''", "'") or match["plain"]
            address = f"{match['column'].upper()}{match['row']}"
            answers[sheet, address] = Answer(sheet, address, read_value(value))
    if answers:
        return tuple(answers.values())
    return _read_table(lines, position)


def _read_table(lines: Sequence[str], position: str) -> tuple[Answer, ...]:
    target = _RANGE.search(position)
    rows = [_LEAD.sub("", line.strip()) for line in lines if line.strip()]
    rows = [row for row in rows if row and not ("-" in row and _RULE.match(row))]
    if target is None or not rows:
        return ()
    sheet = target["quoted"] or target["plain"]
    first_column, first_row = column_number(target["column"]), int(target["row"])
    last_column = column_number(target["last"]) if target["last"] else first_column
    last_row = int(target["end"]) if target["end"] else first_row
    cells = [_split_row(row, last_column - first_column + 1) for row in rows]
    # Prose around a table has too few or too many columns. With a single column, only the last
    # lines count, since prose comes before the values.
    width = last_column - first_column + 1
    fitting = [row for row in cells if len(row) == width] if width > 1 else cells
    height = last_row - first_row + 1
    chosen = fitting[-height:]
    return tuple(
        Answer(sheet, f"{column_letters(first_column + x)}{first_row + y}", read_value(text))
        for y, row in enumerate(chosen)
        for x, text in enumerate(row)
        if text
    )


def _split_row(row: str, width: int) -> list[str]:
    if width == 1:
        return [row.strip("| \t")]
    for separator in ("|", "\t", ",", ";"):
        parts = [part.strip() for part in row.strip("| \t").split(separator)]
        if len(parts) > 1:
            return parts
    return [row.strip()]


def read_value(text: str) -> CellValue:
    """Converts the text of a value to a number, a date, TRUE or FALSE, or text.

    Anything in double quotes is text, and so are numbers with leading zeros.
    """
    text = text.strip().strip("`").strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1]
    if text.upper() in {"TRUE", "FALSE"}:
        return text.upper() == "TRUE"
    plain = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text
    if _NUMBER.fullmatch(plain):
        number = float(plain)
        return int(number) if number.is_integer() and abs(number) < 1e15 else number
    if plain.endswith("%") and _NUMBER.fullmatch(plain[:-1]):
        return float(plain[:-1]) / 100
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}(?:[ T]\d{2}:\d{2}(?::\d{2})?)?", text):
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return text
    return text


_PROGRAM = '''\
"""Writes answers that a chat model gave as text, one set for each input workbook."""

import datetime
import hashlib

import openpyxl

INPUT_PATH = {input_path!r}
OUTPUT_PATH = {output_path!r}
DEFAULT_SHEET = {sheet!r}

# SHA-256 of an input workbook -> (sheet, cell, value)
ANSWERS = {answers}

with open(INPUT_PATH, "rb") as file:
    digest = hashlib.sha256(file.read()).hexdigest()
if digest not in ANSWERS:
    raise SystemExit("no answer was requested for this workbook: " + digest)
workbook = openpyxl.load_workbook(INPUT_PATH)
names = {{name.strip().lower(): name for name in workbook.sheetnames}}
for sheet, address, value in ANSWERS[digest]:
    name = names.get((sheet or DEFAULT_SHEET or "").strip().lower())
    worksheet = workbook[name] if name else workbook.worksheets[0]
    cell = worksheet[address]
    if type(cell).__name__ == "MergedCell":
        continue
    cell.value = value
    if isinstance(value, str) and value.startswith("="):
        cell.data_type = "s"
workbook.save(OUTPUT_PATH)
'''


def answer_program(
    answers: Mapping[str, Sequence[Answer]], *, input_path: str, output_path: str, sheet: str | None
) -> str:
    """Returns the program that writes the answers.

    Args:
        answers: the answers to each case, by the SHA-256 of its input workbook.
        input_path: the path of the program's input.
        output_path: the path of the program's output.
        sheet: the sheet of the answer position; None if the suite names no sheet.
    """
    cells = {
        digest: [(answer.sheet, answer.address, answer.value) for answer in values]
        for digest, values in answers.items()
    }
    return _PROGRAM.format(
        input_path=input_path,
        output_path=output_path,
        sheet=sheet,
        answers=pprint.pformat(cells, width=100, sort_dicts=False),
    )
