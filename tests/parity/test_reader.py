"""Our reader compared with openpyxl on the workbooks of the published suites, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from benchmarks.pairs import SUITE, VERIFIED, golds
from judge.compare.cells.answer_range import prepare
from judge.compare.cells.options import range_spec
from judge.errors import WorkbookError
from judge.workbook.address import WHOLE_SHEET
from judge.workbook.cell import Cell, CellRange
from judge.workbook.reader import Workbook, open_workbook
from judge.workbook.sheets.shared_formulas import find_masters
from judge.workbook.sheets.sheet_scan import scan_sheet
from tests.parity.readings import (
    MAX_COLUMN,
    MAX_ROW,
    everything,
    file_of,
    reading_of,
    recorded,
)
from tests.reference_workbook import ReferenceWorkbook
from tests.unit.compare.cells.packages import Book, cell, sheet_data, simple

pytestmark = pytest.mark.data


@dataclass
class Tally:
    workbooks: int = 0
    cells: int = 0
    linked: int = 0
    unread: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.workbooks += other.workbooks
        self.cells += other.cells
        self.linked += other.linked
        self.unread += other.unread
        self.wrong += other.wrong


def hold_against_openpyxl(paths: Iterable[Path], *, formulas: bool) -> Tally:
    """Compares every cell of every worksheet: value, type, number format, and the formula."""
    tally = Tally()
    for path in paths:
        data = path.read_bytes()
        ours = open_workbook(data)
        try:
            theirs = ReferenceWorkbook(data, formulas=formulas)
        except WorkbookError as error:
            tally.unread.append(f"{path.name}: {error.message}")
            continue
        tally.workbooks += 1
        assert ours.sheet_names == theirs.sheet_names, path
        for sheet in ours.sheet_names:
            area = everything(sheet)
            found, expected = ours.cells(area), theirs.cells(area)
            for row, column in found.keys() | expected.keys():
                first, second = found.get((row, column)), expected.get((row, column))
                tally.cells += 1
                if _same(first, second, formulas):
                    continue
                # openpyxl puts the target of a link into a blank cell; Excel does not show it.
                if (first is None or first.value is None) and theirs.is_linked(area, row, column):
                    tally.linked += 1
                    continue
                tally.wrong.append(f"{path.name} {sheet} {row},{column}: {first} {second}")
    return tally


def _same(first: Cell | None, second: Cell | None, formulas: bool) -> bool:
    one, other = _facts(first, formulas), _facts(second, formulas)
    return one == other and type(one[0]) is type(other[0])


def _facts(cell: Cell | None, formulas: bool) -> tuple[object, ...]:
    if cell is None:
        return None, None, None, None
    number_format = cell.number_format if cell.value is not None else None
    formula = cell.formula.casefold() if formulas and cell.formula is not None else None
    return cell.value, number_format, formula, cell.array_range if formulas else None


def workbooks(data: Path) -> Iterator[Path]:
    for suite in (SUITE, VERIFIED):
        yield from sorted((data / suite / "spreadsheet").glob("*/*.xlsx"))


def test_a_sample_of_whole_workbooks_with_their_formulas(judge_data: Path) -> None:
    tally = hold_against_openpyxl(list(workbooks(judge_data))[5::80], formulas=True)
    assert not tally.wrong
    assert tally.workbooks > 22
    assert tally.cells > 5_000


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_cell_of_a_sixth_of_the_workbooks(judge_data: Path) -> None:
    """Compares with the record; only what is missing there, or differs, is read with openpyxl.

    ``python -m tests.parity.readings DATA`` compares all of them. Of the other workbooks, the
    answer ranges are read below, and the golds by test_golds.py.
    """
    known, seen = recorded(), set[str]()
    tally = Tally()
    for path in list(workbooks(judge_data))[::6]:
        data = path.read_bytes()
        file = file_of(data)
        if file in seen:
            continue
        seen.add(file)
        reading, cells = reading_of(open_workbook(data))
        if known.get(file) == reading:
            tally.workbooks += 1
            tally.cells += cells
        else:
            tally.add(hold_against_openpyxl([path], formulas=False))
    assert not tally.wrong
    assert not tally.unread
    assert tally.workbooks > 300
    assert tally.cells > 200_000


def test_a_reading_distinguishes_values_types_and_number_formats() -> None:
    books = [
        simple({"A1": 1}),
        simple({"A1": "1"}),
        simple({"A1": True}),
        simple({"A2": 1}),
        simple({"A1": 2}),
        simple({"A1": 1, "B1": 1}),
        Book({"Sheet1": sheet_data(cell("A1", 1, style=1))}).to_bytes(),
    ]
    assert len({reading_of(open_workbook(book))[0] for book in books}) == len(books)


def test_the_cells_of_every_answer_range_are_those_of_the_whole_sheet(judge_data: Path) -> None:
    """Reading a range gives the same as reading the whole sheet, wherever the range is."""
    wrong = []
    for path, position, answer_sheet in list(golds(judge_data / SUITE))[::3]:
        ranged, whole = open_workbook(path), open_workbook(path)
        for each in _ranges(ranged, position, answer_sheet):
            cells = whole.cells(CellRange(each.sheet, 1, 1, MAX_ROW, MAX_COLUMN))
            within = {
                place: cell
                for place, cell in cells.items()
                if each.min_row <= place[0] <= each.max_row
                and each.min_column <= place[1] <= each.max_column
            }
            if dict(ranged.cells(each)) != within:
                wrong.append((path.name, each))
    assert not wrong


def test_masters_of_shared_formulas_are_found_without_the_parser(judge_data: Path) -> None:
    wrong, found, left = [], 0, 0
    for path in list(workbooks(judge_data))[3::15]:
        workbook = open_workbook(path)
        for tab in workbook.tabs:
            if not tab.is_worksheet:
                continue
            masters = find_masters(workbook.package, tab.part)
            if masters is None:
                left += 1
                continue
            read = scan_sheet(
                workbook.package,
                tab.part,
                [WHOLE_SHEET],
                workbook.number_formats,
                date_1904=False,
                blanks=False,
            )
            expected = {
                key: (raw.text, raw.shared, raw.reference)
                for key, raw in read.formulas.items()
                if raw.kind == "shared" and raw.text
            }
            found += len(expected)
            if expected != {
                key: (raw.text, raw.shared, raw.reference) for key, raw in masters.items()
            }:
                wrong.append((path.name, tab.name))
    assert not wrong
    assert found > 50
    assert left < 10


def _ranges(workbook: Workbook, position: str, answer_sheet: str | None) -> tuple[CellRange, ...]:
    plan = prepare(
        range_spec(position, answer_sheet),
        gold=workbook,
        output=None,
    )
    return plan.gold_ranges
