"""The function battery: one-formula workbooks with the result that Microsoft documents."""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openpyxl
import yaml
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.formula import ArrayFormula
from openpyxl.worksheet.table import Table

from judge.formulas.functions import PREFIXED, WORKSHEET_PREFIXED
from judge.formulas.traits import traits
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue

BATTERY = Path(__file__).with_name("battery.yaml")
SHEET = "Probe"
PLACE = CellRef(SHEET, 1, 26)
PLACE_RANGE = CellRange(SHEET, 1, 26, 1, 26)

_EMPTY_TEXT = re.compile(rb'(<c r="[A-Z]+[0-9]+" t="inlineStr") ?/>')
_CALL = re.compile(r'"(?:[^"]|"")*"|(?<![\w.])([A-Z][A-Z0-9.]*)\(')


@dataclass(frozen=True, slots=True)
class Probe:
    """One formula with its documented result.

    Attributes:
        page: the page of the function reference.
        formula: the formula as written in a file.
        expected: the documented result.
        data: address, which may name another sheet (``Other!A1``) -> constant, error or formula
            (with ``ref``, the range that it spills to).
        array: whether the formula is entered as an array formula.
        hidden: rows of the probe's sheet that are hidden.
        table: the range of a table called Sales on that sheet; empty without one.
        names: defined name -> the formula that it stands for.
    """

    page: str
    formula: str
    expected: CellValue
    data: Mapping[str, Any]
    array: bool
    hidden: Sequence[int] = ()
    table: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def functions(self) -> frozenset[str]:
        """The functions that the formula calls."""
        return traits(self.formula).functions

    def workbook(self) -> bytes:
        """Makes the workbook with the formula in Z1, without a value."""
        book = openpyxl.Workbook()
        sheet = book.worksheets[0]
        sheet.title = SHEET
        for address, value in self.data.items():
            name, _, place = address.rpartition("!")
            if name and name not in book.sheetnames:
                book.create_sheet(name)
            cell = (book[name] if name else sheet)[place]
            if isinstance(value, dict) and "ref" in value:
                cell.value = ArrayFormula(value["ref"], value["formula"])
            elif isinstance(value, dict):
                kind = "f" if "formula" in value else "e"
                cell.value, cell.data_type = value.get("formula", value.get("error")), kind
            else:
                cell.value = value
                if isinstance(value, str):
                    cell.data_type = "s"
        for row in self.hidden:
            sheet.row_dimensions[row].hidden = True
        for name, formula in self.names.items():
            book.defined_names[name] = DefinedName(name, attr_text=formula)
        if self.table:
            sheet.add_table(Table(displayName="Sales", ref=self.table))
        sheet["Z1"] = ArrayFormula("Z1", self.formula) if self.array else self.formula
        stream = io.BytesIO()
        book.save(stream)
        return _with_empty_texts(stream.getvalue())

    def accepts(self, value: CellValue) -> bool:
        """Returns whether a value is the documented result, to the documented decimals."""
        expected = self.expected
        if isinstance(expected, (bool, str, ErrorValue)):
            return type(value) is type(expected) and value == expected
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        assert isinstance(expected, (int, float))
        text = str(expected)
        decimals = len(text.partition(".")[2]) if "e" not in text and "." in text else 0
        return abs(value - expected) <= min(0.51 * 10.0**-decimals, 0.0051)


def probes(path: Path = BATTERY) -> Iterator[Probe]:
    """Reads every probe of the battery, or of another file in the same format."""
    for group in yaml.safe_load(path.read_text(encoding="utf-8")):
        for formula, expected in group["probes"].items():
            yield Probe(
                page=group["page"],
                formula=_CALL.sub(_prefix, formula),
                expected=_value(expected),
                data={k: _constant(v) for k, v in group.get("data", {}).items()},
                array=bool(group.get("array")),
                hidden=group.get("hidden", ()),
                table=group.get("table", ""),
                names=group.get("names", {}),
            )


def _with_empty_texts(package: bytes) -> bytes:
    """Makes the cells that openpyxl wrote for an empty text hold one; they would be blank."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(package)) as before, zipfile.ZipFile(stream, "w") as after:
        for name in before.namelist():
            after.writestr(name, _EMPTY_TEXT.sub(rb"\1><is><t></t></is></c>", before.read(name)))
    return stream.getvalue()


def _prefix(call: re.Match[str]) -> str:
    name = call[1]
    if name is None or name not in PREFIXED:
        return call[0]
    return f"_xlfn._xlws.{name}(" if name in WORKSHEET_PREFIXED else f"_xlfn.{name}("


def _value(expected: Any) -> CellValue:
    if isinstance(expected, dict):
        return ErrorValue(expected["error"])
    assert isinstance(expected, (bool, int, float, str))
    return expected


def _constant(value: Any) -> Any:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime.combine(value, dt.time())
    return value
