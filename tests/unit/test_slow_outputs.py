"""Outputs that are made to be slow on the host: each gets a verdict within fixed time and memory.

Each is judged in a process of its own, with the real reader, policy and comparison; the bounds are
those of the process: processor time and address space.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from judge.compare.cells.options import range_spec
from judge.compare.profiles import get_profile
from judge.core.submission import Answer, Origin
from judge.core.task import Gold, Task, TestCase
from judge.core.verdict import Verdict
from judge.errors import RecalcError, WorkbookError
from judge.grading.case import CaseJudge, GradingRules
from judge.recalc.policy import Recalculator
from judge.suites.spreadsheetbench import InstructionType
from judge.workbook.address import column_letters
from judge.workbook.budget import MIN_FORMULA_CHARS, Budget, ReadLimits
from judge.workbook.cell import CellRange
from judge.workbook.reader import open_workbook
from tests.bounds import bound_process
from tests.unit.compare.cells.packages import STYLES, Book, cell, sheet_data, worksheet
from tests.unit.recalc.fakes import ScriptedEngine

pytestmark = pytest.mark.slow

CPU_S = 60
MEMORY_BYTES = 2 << 30
TOO_LONG = "spreadsheet programs accept at most 8,192"
TOO_MUCH = "formulas come to more than"


def book(*cells: str, styles: str = STYLES) -> bytes:
    return Book({"Sheet1": sheet_data(*cells)}, styles=styles).to_bytes()


def formulas(text: str, count: int = 1) -> bytes:
    """Formulas in a column, each with a different text."""
    return book(*(cell(f"A{row}", formula=f"{row}+{text}") for row in range(1, count + 1)))


def shared(text: str, columns: int) -> bytes:
    """One formula that is written out in every column of the first row."""
    last = column_letters(columns)
    cells = [f'<c r="A1"><f t="shared" si="0" ref="A1:{last}1">{text}</f></c>']
    cells += [
        f'<c r="{column_letters(column)}1"><f t="shared" si="0"/></c>'
        for column in range(2, columns + 1)
    ]
    return book(*cells)


def format_code(code: str) -> bytes:
    return book(cell("A1", 1, style=1), styles=STYLES.replace("yyyy\\-mm\\-dd", code))


def part(xml: str) -> bytes:
    return Book({"Sheet1": xml}).to_bytes()


SLOW: dict[str, tuple[Callable[[], bytes], Verdict, str]] = {
    "60,000 apostrophes": (lambda: formulas("'" * 60_000), Verdict.NC, TOO_LONG),
    "a megabyte of apostrophes": (lambda: formulas("'" * 1_000_000), Verdict.NC, TOO_LONG),
    "just below the bound, often": (lambda: formulas("'" * 8_000, 40), Verdict.NC, "no value"),
    "open braces": (lambda: formulas("{" * 8_000, 40), Verdict.NC, "no value"),
    "deep brackets": (
        lambda: formulas("(" * 4_000 + "1+" * 2_000, 20),
        Verdict.NC,
        "has no counterpart",
    ),
    "parameters": (
        lambda: formulas(",".join(f"_xlpm.a{n}" for n in range(700)), 40),
        Verdict.NC,
        "no value",
    ),
    "a formula for 16,000 columns": (
        lambda: shared("B2&amp;&quot;" + "x" * 8_000 + "&quot;", 16_000),
        Verdict.IW,
        TOO_MUCH,
    ),
    "60,000 references for 16,000 columns": (
        lambda: shared("B2," * 60_000, 16_000),
        Verdict.IW,
        TOO_MUCH,
    ),
    "currencies": (lambda: format_code("[$" * 100_000), Verdict.WA, "number format: "),
    "brackets in a format": (lambda: format_code("[" * 100_000), Verdict.WA, "number format: "),
    "brackets of 200 characters, often": (
        lambda: book(
            cell("A1", 1, style=1),
            styles=STYLES.replace(
                '<numFmt numFmtId="164" formatCode="yyyy\\-mm\\-dd"/>',
                "".join(
                    f'<numFmt numFmtId="{n}" formatCode="{n}{"[$" * 100}"/>'
                    for n in range(164, 20_000)
                ),
            ).replace(
                '<xf numFmtId="164"/>',
                "".join(f'<xf numFmtId="{n}"/>' for n in range(164, 20_000)),
            ),
        ),
        Verdict.WA,
        "number format: ",
    ),
    "a number of a megabyte": (lambda: book(cell("A1", "1" * 1_000_000 + "x")), Verdict.WA, ""),
    "spaces of a megabyte before a sheet": (
        lambda: part("<?xml version='1.0'?>" + " " * 1_000_000 + worksheet("").partition("?>")[2]),
        Verdict.WA,
        "",
    ),
    "cell formats that do not end": (
        lambda: book(cell("A1", 1, style=1), styles="<cellXfs>" * 100_000),
        Verdict.IW,
        "xl/styles.xml",
    ),
    "hyperlinks over everything, often": (
        lambda: part(
            worksheet(
                sheet_data(cell("A1", 1))
                + "<hyperlinks>"
                + '<hyperlink ref="A1:XFD1048576" location="x"/>' * 200_000
                + "</hyperlinks>"
            )
        ),
        Verdict.IW,
        "overlap",
    ),
    "each hyperlink against each merged range": (
        lambda: part(
            worksheet(
                sheet_data(cell("A1", 1))
                + "<mergeCells>"
                + "".join(f'<mergeCell ref="D{row}:E{row}"/>' for row in range(1, 30_000))
                + "</mergeCells><hyperlinks>"
                + "".join(f'<hyperlink ref="A{row}" location="x"/>' for row in range(1, 30_000))
                + "</hyperlinks>"
            )
        ),
        Verdict.IW,
        "overlap",
    ),
    "rows that do not end": (
        lambda: part(worksheet("<sheetData>" + "<row x" * 200_000)),
        Verdict.IW,
        "xl/worksheets/sheet1.xml",
    ),
}


def judged(output: bytes) -> tuple[str, str]:
    """Returns verdict and cause, computed in this process."""
    case = TestCase(1, (), (Gold(data=book(cell("A1", 1))),))
    task = Task(
        id="slow",
        instruction="",
        kind=InstructionType.CELL_LEVEL.value,
        checker=range_spec("A1:XFD400"),
        cases=(case,),
    )
    judge = CaseJudge(
        Recalculator([ScriptedEngine("libreoffice", RecalcError("no value"))]),
        GradingRules(get_profile("standard"), style=("number_format",)),
    )
    judgement = judge.judge(task, case, Answer.of_workbook(output, Origin.SOLUTION))
    return judgement.verdict.value, judgement.cause


def judged_within_bounds(output: bytes, answer: Path) -> tuple[str, str]:
    child = os.fork()
    if child == 0:
        try:
            bound_process(cpu_s=CPU_S, memory_bytes=MEMORY_BYTES)
            answer.write_text(json.dumps(judged(output)))
        except BaseException:  # noqa: BLE001 - whatever it is, the parent must see it
            answer.write_text(json.dumps(["", traceback.format_exc()]))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "it ran over its processor time"
    verdict, cause = json.loads(answer.read_text())
    return verdict, cause


@pytest.mark.parametrize("kind", SLOW)
def test_an_output_that_is_made_to_be_slow_gets_its_verdict(kind: str, tmp_path: Path) -> None:
    make, verdict, cause = SLOW[kind]
    found = judged_within_bounds(make(), tmp_path / "answer.json")
    assert found[0] == verdict.value, found[1]
    assert cause in found[1]


def test_formulas_are_counted_once_for_each_cell() -> None:
    cells = [cell(f"A{row}", formula="B1+C1") for row in range(1, 51)]
    limits = ReadLimits(formula_chars=50 * MIN_FORMULA_CHARS)
    data = Book({"Sheet1": sheet_data(*cells)}).to_bytes()
    area = CellRange("Sheet1", 1, 1, 60, 1)
    workbook = open_workbook(data, limits=limits)
    for _ in range(3):
        assert {each.formula for each in workbook.formula_cells(area)} == {"=B1+C1"}
    more = Book({"Sheet1": sheet_data(*cells, cell("A51", formula="B1"))}).to_bytes()
    with pytest.raises(WorkbookError, match=TOO_MUCH):
        open_workbook(more, limits=limits).formula_cells(area)


def test_what_is_done_with_an_output_ends_with_its_processor_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The test's own clock, which advances a second each time it is read."""
    seconds = iter(range(10_000))
    monkeypatch.setattr("time.thread_time", lambda: float(next(seconds)))
    budget = Budget(ReadLimits(work_seconds=10))

    def work() -> None:
        for _ in range(20):
            budget.take_formula(5_000)  # the clock is read after every few thousand characters

    work()  # outside nobody counts
    with pytest.raises(WorkbookError, match="more than 10 s of processor time"), budget.working():
        work()
    work()
    with pytest.raises(WorkbookError, match="processor time"), budget.working():
        budget.take_seconds(0)
