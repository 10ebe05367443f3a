"""Structured references as rectangles."""

from __future__ import annotations

import io

import openpyxl
import pytest
from openpyxl.worksheet.table import Table, TableColumn

from judge.core.submission import Origin
from judge.recalc.policy import Recalculator
from judge.recalc.tables import Tables
from judge.recalc.trust import read_table
from judge.workbook.reader import Workbook, open_workbook
from tests.unit.recalc.fakes import ALL, SHEET, ScriptedEngine, ref
from tests.unit.recalc.test_own import Reading

HEADINGS = ("Item", "Net [EUR]", "Tax")
ROWS: list[tuple[str, int, int]] = [("a", 1, 2), ("b", 3, 4), ("c", 5, 6)]


def workbook(*, totals: bool = False, formulas: dict[str, str] | None = None) -> Workbook:
    """A table in C2:E5 of the sheet, with a totals row below if requested."""
    book = openpyxl.Workbook()
    sheet = book.worksheets[0]
    sheet.title = SHEET
    for column, heading in enumerate(HEADINGS, 3):
        sheet.cell(2, column, heading)
    for number, (item, net, tax) in enumerate(ROWS, 3):
        sheet.cell(number, 3, item)
        sheet.cell(number, 4, net)
        sheet.cell(number, 5, tax)
    for address, formula in (formulas or {}).items():
        sheet[address] = formula
    table = Table(displayName="Sales", ref="C2:E6" if totals else "C2:E5")
    table.tableColumns = [TableColumn(id=at, name=name) for at, name in enumerate(HEADINGS, 1)]
    table.totalsRowCount = 1 if totals else None
    sheet.add_table(table)
    book.create_sheet("Other")
    stream = io.BytesIO()
    book.save(stream)
    return open_workbook(stream.getvalue())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("=SUM(Sales[Tax])", "=SUM($E$3:$E$5)"),
        ("=SUM(sales[TAX])+1", "=SUM($E$3:$E$5)+1"),
        ("=Sales[[#This Row],[Tax]]*2", "=$E$4*2"),
        ("=Sales[[#This Row],[Item]:[Tax]]", "=$C$4:$E$4"),
        ("=ROWS(Sales[])", "=ROWS($C$3:$E$5)"),
        ("=ROWS(sales)+COUNT(Sales[Tax])", "=ROWS($C$3:$E$5)+COUNT($E$3:$E$5)"),
        ('=INDEX(Sales,1,2)&"Sales"', '=INDEX($C$3:$E$5,1,2)&"Sales"'),
        ("=ROWS(Sales[#All])", "=ROWS($C$2:$E$5)"),
        ("=Sales[[#Headers],[Item]]", "=$C$2"),
        ("=SUM(Sales[[#Headers],[#Data],[Tax]])", "=SUM($E$2:$E$5)"),
        ("=SUM(Sales[[Item]:[Tax]])", "=SUM($C$3:$E$5)"),
        ('="Sales[Tax]"&Sales[[#Data],[Item]]', '="Sales[Tax]"&$C$3:$C$5'),
        ('=SUM(INDIRECT("sales[Tax]"))', '=SUM(INDIRECT("$E$3:$E$5"))'),
        ('=INDIRECT("Sales[Gross]")&Sales[[#Headers],[Tax]]', '=INDIRECT("Sales[Gross]")&$E$2'),
    ],
)
def test_references_through_a_table_name_rectangles(written: str, meant: str) -> None:
    assert Tables(workbook()).written_out(written, SHEET, 4) == meant


@pytest.mark.parametrize(
    "formula",
    [
        "=SUM(Sales[Gross])",
        "=SUM(Costs[Tax])",
        "=SUM(Sales[#Totals])",
        "=SUM(Sales[[Item],[Tax]])",
        "=[1]Book!Sales[Tax]",
        "=SUM(Sales[Tax],Costs[Tax])",
        "=Other!Sales",
        "=Sales(1)",
    ],
)
def test_references_that_are_not_understood_are_unchanged(formula: str) -> None:
    assert Tables(workbook()).written_out(formula, SHEET, 4) == formula


def test_rows_of_totals_other_rows_and_other_sheets() -> None:
    tables = Tables(workbook(totals=True))
    assert tables.written_out("=Sales[[#Totals],[Tax]]", SHEET, 9) == "=$E$6"
    assert tables.written_out("=SUM(Sales[Tax])", "Other", 9) == f"=SUM('{SHEET}'!$E$3:$E$5)"
    assert tables.written_out("=Sales[[#This Row],[Tax]]", SHEET, 6) == "=#VALUE!"


def test_quick_engines_and_the_judge_see_rectangles() -> None:
    formulas = {"A1": '=COUNTIF(Sales[Tax],">2")', "A2": "=PRODUCT(Sales[Tax])"}
    quick = Reading("ironcalc", {ref(2): 48})
    engines = [ScriptedEngine("libreoffice", {ref(2): 48}), quick]
    recalculator = Recalculator(engines, trust=read_table({"measured_with": {}, "functions": {}}))
    result = recalculator.fill(workbook(formulas=formulas), [ALL], origin=Origin.SOLUTION)
    assert result.values == {ref(1): 2, ref(2): 48}
    assert open_workbook(quick.opened).cells(ALL)[2, 1].formula == "=PRODUCT($E$3:$E$5)"
