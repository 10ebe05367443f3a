"""Workbooks with features that the corpus does not have."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from typing import Any

import openpyxl
from openpyxl.chart import BarChart, Reference

from tests.unit.workbook.test_facts import CACHES, DRAWN, chart, package, pivot_parts, related

_SHEET = "xl/worksheets/sheet1.xml"
_LINKS = "xl/_rels/workbook.xml.rels"


def grid(rows: Sequence[Sequence[Any]]) -> bytes:
    """Makes a workbook from rows of values."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in rows:
        sheet.append(list(row))
    return _saved(book)


def _saved(book: openpyxl.Workbook) -> bytes:
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


@functools.cache
def with_chart_sheet(name: str) -> bytes:
    """Makes a workbook with a worksheet and a chart sheet."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"] = 1
    drawn = BarChart()
    drawn.add_data(Reference(sheet, min_col=1, min_row=1))
    book.create_chartsheet(name).add_chart(drawn)
    return _saved(book)


def strings(inline: str = "", shared: str = "") -> bytes:
    """Makes a workbook with text in A1, inline or as the first shared string."""
    held = f'<c r="A1" t="inlineStr">{inline}</c>' if inline else '<c r="A1" t="s"><v>0</v></c>'
    parts = {
        _SHEET: f'<worksheet><sheetData><row r="1">{held}</row></sheetData></worksheet>',
        _LINKS: related(
            ("rId1", "worksheet", "worksheets/sheet1.xml"),
            ("rId2", "sharedStrings", "sharedStrings.xml"),
        ),
    }
    if shared:
        parts["xl/sharedStrings.xml"] = f"<sst>{shared}</sst>"
    return package("", parts)


def _series(data: str, categories: str) -> str:
    category = f"<cat><strRef><f>{categories}</f></strRef></cat>" if categories else ""
    return f"<ser>{category}<val><numRef><f>{data}</f></numRef></val></ser>"


def charted(*plots: str, title: str = "", categories: str = "", cached: str = "") -> bytes:
    """Makes a chart from plots, each a kind and its data; bars separate the runs of a title."""
    cache = f'<numCache><pt idx="0"><v>{cached}</v></pt></numCache>' if cached else ""
    drawn = "".join(
        f"<{kind}>{_series(data, categories)}</{kind}>".replace(
            "</f></numRef>", f"</f>{cache}</numRef>"
        )
        for kind, data in (plot.split(" ", 1) for plot in plots)
    )
    runs = "".join(f"<r><t>{run}</t></r>" for run in title.split("|"))
    head = f"<title><tx><rich><p>{runs}</p></rich></tx></title>" if title else ""
    return package("", _with_title(head, drawn))


def linked_title(text: str) -> bytes:
    """Makes a chart whose title is the text of a cell."""
    held = f'<strCache><ptCount val="1"/><pt idx="0"><v>{text}</v></pt></strCache>'
    head = f"<title><tx><strRef><f>S!$A$1</f>{held}</strRef></tx></title>"
    return package("", _with_title(head, f"<barChart>{_series('S!$A$1', '')}</barChart>"))


def _with_title(head: str, drawn: str) -> dict[str, str]:
    space = f"<chartSpace><chart>{head}<plotArea>{drawn}</plotArea></chart></chartSpace>"
    return {**DRAWN, "xl/charts/c.xml": space, "xl/drawings/d.xml": _drawing((1, 2), (8, 20), None)}


def anchored(
    start: tuple[int, int],
    end: tuple[int, int] | None = None,
    extent: tuple[int, int] | None = None,
) -> bytes:
    """Makes a chart anchored at two corners, each a column and a row, or with a fixed size."""
    parts = chart(f"<barChart>{_series('S!$A$1', '')}</barChart>")
    return package("", {**parts, "xl/drawings/d.xml": _drawing(start, end, extent)})


def _drawing(
    start: tuple[int, int], end: tuple[int, int] | None, extent: tuple[int, int] | None
) -> str:
    place = f"<from><col>{start[0]}</col><row>{start[1]}</row></from>"
    if end is not None:
        place += f"<to><col>{end[0]}</col><row>{end[1]}</row></to>"
    elif extent is not None:
        place += f'<ext cx="{extent[0]}" cy="{extent[1]}"/>'
    kind = "oneCellAnchor" if end is None else "twoCellAnchor"
    held = '<graphicFrame><graphic><graphicData><chart r:id="rId1"/></graphicData></graphic>'
    return f'<wsDr xmlns:r="r"><{kind}>{place}{held}</graphicFrame></{kind}></wsDr>'


def pivots(count: int, source: str = 'ref="A1:B9" sheet="S"') -> bytes:
    """Makes pivot tables with the same source, which may be the table T on A1:B9."""
    parts = pivot_parts(source=source)
    links = [(f"p{each}", "pivotTable", f"../pivot/t{each or ''}.xml") for each in range(count)]
    for each in range(1, count):
        parts[f"xl/pivot/t{each}.xml"] = parts["xl/pivot/t.xml"]
    links.append(("t", "table", "../tables/t.xml"))
    parts["xl/worksheets/_rels/sheet1.xml.rels"] = related(*links)
    parts["xl/tables/t.xml"] = '<table name="T" displayName="T" ref="A1:B9"/>'
    return package('<tableParts><tablePart r:id="t"/></tableParts>', parts, CACHES)


def filtered(condition: str) -> bytes:
    """Makes a filter of the first column with a condition."""
    column = f'<filterColumn colId="0">{condition}</filterColumn>'
    return package(f'<autoFilter ref="A1:B9">{column}</autoFilter>')


def validated(place: str) -> bytes:
    """Makes a list of Pass, Fail and Held, in the extension part for newer programs."""
    rule = f'<x:formula1><m:f>"Pass,Fail,Held"</m:f></x:formula1><m:sqref>{place}</m:sqref>'
    return package(
        '<extLst><ext><x:dataValidations xmlns:x="http://schemas.microsoft.com/office/'
        'spreadsheetml/2009/9/main" xmlns:m="http://schemas.microsoft.com/office/excel/2006/main">'
        '<x:dataValidation type="list">'
        f"{rule}</x:dataValidation></x:dataValidations></ext></extLst>"
    )
