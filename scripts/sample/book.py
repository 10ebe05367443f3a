"""Writes workbooks that are the same bytes each time, with formulas that have cached values."""

from __future__ import annotations

import datetime as dt
import io
import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from openpyxl import Workbook
from openpyxl.styles import Font, PatternFill
from openpyxl.utils import get_column_letter
from openpyxl.workbook.properties import CalcProperties
from openpyxl.worksheet.worksheet import Worksheet

Value = bool | int | float | str | dt.datetime | dt.date | dt.time | None

CREATED = dt.datetime(2026, 1, 15, 9, 0, 0)  # noqa: DTZ001 - the file format has no zone
ZIP_TIME = (2026, 1, 15, 9, 0, 0)
ERRORS = frozenset({"#N/A", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!"})


@dataclass(frozen=True)
class Cached:
    """A formula together with the value that a spreadsheet program left in the file."""

    formula: str
    value: Value


class Book:
    """A workbook to be written.

    Spreadsheet programs store the values of formulas in the file. openpyxl cannot, so the values
    are added when the package is written.
    """

    def __init__(self) -> None:
        self.workbook = Workbook()
        default = self.workbook.active
        assert default is not None
        self.workbook.remove(default)
        self._cached: dict[str, dict[str, Value]] = {}

    def sheet(self, name: str, widths: Sequence[int] = ()) -> Worksheet:
        """Adds a sheet; ``widths`` are the widths of its first columns."""
        sheet: Worksheet = self.workbook.create_sheet(name)
        for column, width in enumerate(widths, start=1):
            sheet.column_dimensions[get_column_letter(column)].width = width
        return sheet

    def put(self, sheet: Worksheet, row: int, column: int, value: Value | Cached) -> None:
        """Writes one cell; None leaves the cell unchanged."""
        if value is None:
            return
        cell = sheet.cell(row, column)
        if isinstance(value, Cached):
            cell.value = value.formula
            self._cached.setdefault(sheet.title, {})[cell.coordinate] = value.value
            return
        cell.value = value
        if isinstance(value, str) and value not in ERRORS:
            # Text stays text, even if it looks like a number or a formula.
            cell.data_type = "s"
            if re.fullmatch(r"\s*[-+]?[\d.]+\s*", value):
                cell.number_format = "@"

    def rows(
        self,
        sheet: Worksheet,
        rows: Iterable[Sequence[Value | Cached]],
        *,
        top: int = 1,
        left: int = 1,
    ) -> None:
        """Writes rows of cells; the upper left cell is at row ``top`` and column ``left``."""
        for row, values in enumerate(rows, start=top):
            for column, value in enumerate(values, start=left):
                self.put(sheet, row, column, value)

    def header(
        self, sheet: Worksheet, names: Sequence[Value], *, row: int = 1, left: int = 1
    ) -> None:
        """Writes a row of bold headings."""
        for column, name in enumerate(names, start=left):
            self.put(sheet, row, column, name)
            sheet.cell(row, column).font = Font(bold=True)

    def fill(self, sheet: Worksheet, row: int, columns: Iterable[int], rgb: str) -> None:
        """Colours cells of a row; ``rgb`` is an ARGB colour in hexadecimal."""
        for column in columns:
            sheet.cell(row, column).fill = PatternFill("solid", fgColor=rgb)

    def to_bytes(self) -> bytes:
        """Returns the package; all times in it are fixed."""
        book = self.workbook
        book.properties.creator = "sheetjudge"
        book.properties.created = CREATED
        # The file does not request a calculation on load, so the cached values count.
        book.calculation = CalcProperties(calcId=191029, fullCalcOnLoad=False)
        raw = io.BytesIO()
        book.save(raw)
        parts = {
            f"xl/worksheets/sheet{number}.xml": self._cached.get(sheet.title, {})
            for number, sheet in enumerate(book.worksheets, start=1)
        }
        packed = io.BytesIO()
        with zipfile.ZipFile(raw) as source, zipfile.ZipFile(packed, "w") as target:
            for info in source.infolist():
                data = source.read(info)
                if info.filename == "docProps/core.xml":
                    data = _fix_times(data)
                elif info.filename == "docProps/app.xml":
                    data = data.replace(b"<AppVersion>3.1<", b"<AppVersion>16.0300<")
                elif parts.get(info.filename):
                    data = _put_cached(data, parts[info.filename])
                fixed = zipfile.ZipInfo(info.filename, ZIP_TIME)
                fixed.compress_type = zipfile.ZIP_DEFLATED
                fixed.external_attr = 0o644 << 16
                target.writestr(fixed, data, compresslevel=9)
        return packed.getvalue()


def _fix_times(core: bytes) -> bytes:
    stamp = CREATED.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
    return re.sub(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*", rb"\g<1>" + stamp, core)


def _put_cached(sheet: bytes, cached: dict[str, Value]) -> bytes:
    text = sheet.decode()
    for coordinate, value in cached.items():
        pattern = re.compile(rf'<c r="{coordinate}"([^>]*)><f>(.*?)</f><v\s*(?:/>|></v>)</c>')
        text, count = pattern.subn(_cell_with(coordinate, value), text)
        assert count == 1, f"{coordinate}: {count} formula cells"
    return text.encode()


def _cell_with(coordinate: str, value: Value) -> str:
    """Returns the replacement for a formula cell, which keeps its attributes and its formula."""
    kind = ""
    if isinstance(value, bool):
        kind, shown = ' t="b"', str(int(value))
    elif isinstance(value, str):
        kind, shown = (' t="e"' if value in ERRORS else ' t="str"'), escape(value)
    else:
        assert isinstance(value, int | float), value
        shown = repr(value)
    return rf'<c r="{coordinate}"\g<1>{kind}><f>\g<2></f><v>{shown}</v></c>'
