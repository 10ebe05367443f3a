"""Calls of named LAMBDAs and spilled ranges are expanded for the engines."""

from __future__ import annotations

import functools
import io
import zipfile

import openpyxl
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.formula import ArrayFormula

from judge.core.submission import Origin
from judge.recalc.expansion import expanded
from judge.recalc.policy import Recalculator
from judge.recalc.trust import read_table
from judge.workbook.cell import CellRange, ErrorValue
from judge.workbook.dependency import FormulaIndex
from judge.workbook.reader import open_workbook, sheet_formulas
from tests.unit.recalc.fakes import ScriptedEngine, ref

NO_TRUST = read_table({"measured_with": {}, "functions": {}})
NAMES = {
    "week": '_xlfn.LAMBDA(LEFT(TEXT(2,"ddd")))',
    "twice": "_xlfn.LAMBDA(_xlpm.x,_xlpm.x*2)",
    "grown": "_xlfn.LAMBDA(_xlpm.x,_xlpm.y,_xlfn.LET(_xlpm.z,twice(_xlpm.x),_xlpm.z+_xlpm.y))",
    "endless": "_xlfn.LAMBDA(_xlpm.x,endless(_xlpm.x)+1)",
    "rate": "S!$A$1",
}


def book(**formulas: str | ArrayFormula) -> bytes:
    made = openpyxl.Workbook()
    sheet = made.worksheets[0]
    sheet.title = "S"
    for name, text in NAMES.items():
        made.defined_names[name] = DefinedName(name, attr_text=text)
    for address, formula in formulas.items():
        sheet[address] = formula
    stream = io.BytesIO()
    made.save(stream)
    return stream.getvalue()


def written_out(**formulas: str | ArrayFormula) -> dict[str, str | None]:
    """Maps addresses to formulas of the expanded workbook."""
    data = book(**formulas)
    source = open_workbook(data)
    index = FormulaIndex(source.sheet_names, functools.partial(sheet_formulas, source))
    index.sheet("S")
    parts = {tab.name: tab.part for tab in source.tabs}
    package, _ = expanded(data, parts, index)
    cells = open_workbook(package).cells(CellRange("S", 1, 1, 9, 9))
    return {
        address: cells[ref(int(address[1:]), ord(address[0]) - 64)[1:]].formula
        for address in formulas
    }


def test_calls_of_lambdas_are_expanded() -> None:
    assert written_out(
        A1="=week()&rate",
        A2="=SUM(twice(A1+1),1)",
        A3="=grown(A1,2)",
        A4="=twice()",
        A5='="twice(1)"',
        A6="=UNKNOWN(1)",
    ) == {
        "A1": '=(LEFT(TEXT(2,"ddd")))&rate',
        "A2": "=SUM(_xlfn.LET(_xlpm.x,A1+1,_xlpm.x*2),1)",
        "A3": "=_xlfn.LET(_xlpm.x,A1,_xlpm.y,2,_xlpm.z,_xlfn.LET(_xlpm.x,_xlpm.x,_xlpm.x*2),"
        "_xlpm.z+_xlpm.y)",
        "A4": "=twice()",
        "A5": '="twice(1)"',
        "A6": "=UNKNOWN(1)",
    }


def test_a_lambda_that_calls_itself_ends() -> None:
    formula = written_out(A1="=endless(1)")["A1"]
    assert formula is not None
    assert formula.count("endless(") == 1


def test_a_spilled_range_is_the_one_that_the_file_names() -> None:
    formulas = written_out(
        A1=ArrayFormula("A1:B3", "=_xlfn.SEQUENCE(3,2)"),
        D1="=SUM(_xlfn.ANCHORARRAY(A1))",
        D2="=SUM(_xlfn.ANCHORARRAY(S!$A$1),1)",
        D3="=SUM(_xlfn.ANCHORARRAY(D1))",
    )
    assert formulas["D1"] == "=SUM(A1:B3)"
    assert formulas["D2"] == "=SUM(S!A1:B3,1)"
    assert formulas["D3"] == "=SUM(_xlfn.ANCHORARRAY(D1))"


def test_a_workbook_without_either_is_unchanged() -> None:
    data = book(A1="=SUM(1,2)")
    source = open_workbook(data)
    index = FormulaIndex(source.sheet_names, functools.partial(sheet_formulas, source))
    assert expanded(data, {"S": source.tabs[0].part}, index)[0] is data
    assert expanded(b"no package", {}, index)[0] == b"no package"
    assert zipfile.is_zipfile(io.BytesIO(data))


def test_an_unknown_name_gives_no_value_if_excel_knows_the_function() -> None:
    for formula in ("=_xlfn.SCAN(0,B1:B3,_xlfn.LAMBDA(_xlpm.a,_xlpm.b,_xlpm.a))", "=twice(3)"):
        unknown = {ref(1): ErrorValue("#NAME?")}
        engines = [ScriptedEngine(name, unknown) for name in ("libreoffice", "formualizer")]
        workbook = open_workbook(book(A1=formula, A2="=UNKNOWN(1)"))
        result = Recalculator(engines, trust=NO_TRUST).fill(
            workbook, [CellRange("S", 1, 1, 1, 1)], origin=Origin.SOLUTION
        )
        assert result.values == {}
        assert "libreoffice says #NAME?" in result.not_calculated[ref(1)]
