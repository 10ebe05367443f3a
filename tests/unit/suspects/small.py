"""Small tasks for tests of signs, and an engine that computes what their formulas need."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from judge.annotate.rules import edited
from judge.core.submission import Origin
from judge.core.task import CheckerSpec, Task, TestCase
from judge.recalc.contract import PLAIN, Dialect, EngineResult
from judge.recalc.policy import Recalculator
from judge.recalc.rewrite import with_values
from judge.suspects.audit import TaskFindings, examine_task
from judge.suspects.contract import Sign
from judge.suspects.material import Output, Tools
from judge.suspects.model import Suspect
from judge.workbook.address import parse_cell, parse_window
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.reader import Workbook, open_workbook
from tests.unit.annotate.books import table, with_part

Row = tuple[object, ...]


class SmallEngine:
    """Computes sums, products, lookups and TODAY over one sheet, as Excel would."""

    name = "libreoffice"
    version = "1"

    def __init__(self, today: dt.datetime) -> None:
        self._today = today

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        book = open_workbook(workbook)
        values: dict[CellRef, CellValue] = {}
        for area in ranges:
            for cell in book.formula_cells(area):
                ref = CellRef(area.sheet, cell.row, cell.column)
                values[ref] = self._value(book, ref)
        return EngineResult(values, {}, 0.0)

    def _value(self, book: Workbook, ref: CellRef) -> CellValue:
        place = CellRange(ref.sheet, ref.row, ref.column, ref.row, ref.column)
        cell = book.cells(place).get((ref.row, ref.column))
        if cell is None or cell.formula is None:
            return None if cell is None else cell.value
        formula = cell.formula.removeprefix("=").replace("$", "")
        if "#REF!" in formula:
            return ErrorValue("#REF!")
        if match := re.fullmatch(r"\(?TODAY\(\)(?:\+(\d+)\))?", formula):
            return self._today + dt.timedelta(days=int(match[1] or 0))
        if match := re.fullmatch(r"\(([A-Z]+\d+)\)&\"\"", formula):
            held = self._at(book, ref.sheet, match[1])
            return "" if held is None else str(held)
        if match := re.fullmatch(r"([A-Z]+\d+)(?:([*+])(\d+))?", formula):
            held = self._at(book, ref.sheet, match[1])
            if match[2] is None:
                return 0 if held is None else held
            assert isinstance(held, int | float)
            return held * int(match[3]) if match[2] == "*" else held + int(match[3])
        if match := re.fullmatch(r"SUM\((.+)\)", formula):
            cells = self._in(book, ref.sheet, match[1])
            return sum(each for row in cells for each in row if isinstance(each, int | float))
        if match := re.fullmatch(r"VLOOKUP\((\w+),(.+),2,0\)", formula):
            key = self._at(book, ref.sheet, match[1])
            for first, second, *_ in self._in(book, ref.sheet, match[2]):
                if first == key:
                    return second
            return ErrorValue("#N/A")
        raise AssertionError(f"the test's engine does not compute {formula}")

    def _at(self, book: Workbook, sheet: str, name: str) -> CellValue:
        place = parse_cell(name)
        assert place is not None
        return self._value(book, CellRef(sheet, *place))

    def _in(self, book: Workbook, sheet: str, name: str) -> list[list[CellValue]]:
        area = parse_window(name)
        assert area is not None
        return [
            [
                self._value(book, CellRef(sheet, row, column))
                for column in range(area.min_column, area.max_column + 1)
            ]
            for row in range(area.min_row, area.max_row + 1)
        ]

    def close(self) -> None:
        pass


TODAY = dt.datetime(2024, 5, 6)  # noqa: DTZ001 - cells have no time zone


def engines() -> Recalculator:
    return Recalculator([SmallEngine(TODAY)])


def book(*rows: Row) -> bytes:
    """A workbook of one sheet as openpyxl writes it: formulas without values."""
    return table(*rows)


def excel_book(*rows: Row, values: Mapping[str, CellValue]) -> bytes:
    """Makes a workbook as Excel saves it: its formulas have these values."""
    data = with_part(
        table(*rows),
        "docProps/app.xml",
        lambda _: (
            b'<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/'
            b'extended-properties"><Application>Microsoft Excel</Application>'
            b"<AppVersion>16.0300</AppVersion></Properties>"
        ),
    )
    # openpyxl asks for a full calculation when the file is opened; Excel does not.
    data = with_part(data, "xl/workbook.xml", lambda xml: xml.replace(b'fullCalcOnLoad="1"', b""))
    refs = {}
    for name, value in values.items():
        place = parse_cell(name)
        assert place is not None
        refs[CellRef("Sheet", *place)] = value
    return with_values(data, refs)


def task_of(
    folder: Path, position: str, *cases: tuple[bytes, bytes], instruction: str = "Fill it in."
) -> Task:
    """A task with some cases, each an input and a gold."""
    made = []
    for number, (given, gold) in enumerate(cases, start=1):
        paths = [folder / f"{number}_7_{role}.xlsx" for role in ("input", "answer")]
        for path, data in zip(paths, (given, gold), strict=True):
            path.write_bytes(data)
        made.append(TestCase.of_workbooks(number, *paths))
    checker = CheckerSpec(options={"answer_position": position})
    return Task("7", instruction, "Cell-Level Manipulation", tuple(made), checker)


def examined(
    sign: Sign,
    task: Task,
    *,
    outputs: Mapping[int, Sequence[Path]] | None = None,
    strength: float | None = None,
) -> list[Suspect]:
    """Returns what one sign finds in a task."""
    findings = findings_of([sign], task, outputs=outputs, strength=strength)
    assert not findings.problems
    return list(findings.suspects)


def findings_of(
    signs: Sequence[Sign],
    task: Task,
    *,
    outputs: Mapping[int, Sequence[Path]] | None = None,
    strength: float | None = None,
) -> TaskFindings:
    found = {
        (task.id, case): [
            Output(path.parent.name, path, Origin.FINISHED, strength=strength) for path in paths
        ]
        for case, paths in (outputs or {}).items()
    }
    return examine_task(task, Tools(engines(), edited, found), signs)
