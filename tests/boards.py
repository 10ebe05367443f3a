"""A workbook with everything that boards check, and variants of it with one change each."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from functools import cache
from typing import Any

import openpyxl
from openpyxl.chart import BarChart, Reference, ScatterChart, Series
from openpyxl.chart.label import DataLabelList
from openpyxl.chart.trendline import Trendline
from openpyxl.formatting.rule import Rule
from openpyxl.styles import Font, PatternFill
from openpyxl.styles.differential import DifferentialStyle

from tests.unit.compare.cells.packages import in_namespaces

_REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


@dataclass(frozen=True)
class Made:
    """The contents of the workbook; the defaults are those of the gold.

    Attributes:
        value: of the cell B9.
        far: of the cell in column B of the last row.
        rows: how many rows there are; of more than 200, the published code looks at a few.
        font, size, code, link: looks of the cell A2, number format of B2, hyperlink of A1.
        chart, title, legend, axis, last, trend, label: of the chart of the first sheet.
        symbol: marker of the scatter chart of the second sheet.
        function, row_field, page, source, pivot: of the pivot table of the second sheet.
        hidden: the row that the filter hides.
        kind, operator, limit, fill, bold: of the first rule.
        second: colour of the second rule.
        frozen: the cell below and right of the frozen panes of the first sheet.
        sheet: name of the second sheet.
        turned: whether the sheets are in the other order.
        columns: the order of the columns.
    """

    value: Any = 8
    far: Any = 7
    rows: int = 20
    font: str = "Arial"
    size: float = 11
    code: str = "0.00"
    link: str = "https://example.org/a"
    chart: str = "col"
    title: str = "Sales"
    legend: str | None = "r"
    axis: str | None = "Month"
    last: int = 6
    trend: Any = "linear"
    label: bool = True
    symbol: str = "circle"
    function: str = "sum"
    row_field: int = 0
    page: bool = False
    source: str = "A1:C6"
    pivot: str = "P1"
    hidden: int = 5
    operator: Any = "greaterThan"
    formula: bool = False
    limit: str = "15"
    fill: str = "FFFF0000"
    bold: bool = True
    second: str = "FF00FF00"
    frozen: str | None = "A2"
    sheet: str = "New"
    turned: bool = False
    columns: tuple[int, ...] = (0, 1, 2)


GOLD = Made()


@cache
def workbook(made: Made = GOLD) -> bytes:
    """Returns the workbook as a file."""
    book = openpyxl.Workbook()
    data = book.active
    assert data is not None
    data.title = "Data"
    new = book.create_sheet(made.sheet)
    _fill(data, made)
    _draw(data, new, made)
    data.auto_filter.ref = "A1:C6"
    data.row_dimensions[made.hidden].hidden = True
    _colour(data, made)
    data.freeze_panes = made.frozen
    new.append(["Row Labels", "Sum"])
    new.append(["m1", 10])
    if made.turned:
        book.move_sheet(new, -1)
    buffer = io.BytesIO()
    book.save(buffer)
    return _with_pivot(buffer.getvalue(), made)


def _fill(data: Any, made: Made) -> None:
    rows: list[list[Any]] = [["Month", "Sales", "Costs"]]
    rows += [[f"m{n}", 10 * n, n] for n in range(1, 6)]
    rows += [[f"m{n}", n, 1] for n in range(6, made.rows)]
    rows[8][1] = made.value
    rows[-1][1] = made.far
    for row in rows:
        data.append([row[each] for each in made.columns])
    data["A2"].font = Font(name=made.font, size=made.size)
    data.cell(2, made.columns.index(1) + 1).number_format = made.code
    data["A1"].hyperlink = made.link


def _draw(data: Any, new: Any, made: Made) -> None:
    bars = BarChart()
    bars.type = made.chart
    bars.title = made.title
    if made.legend is None:
        bars.legend = None
    else:
        bars.legend.position = made.legend
    bars.x_axis.title = made.axis
    bars.x_axis.delete = bars.y_axis.delete = False
    bars.add_data(Reference(data, min_col=2, min_row=2, max_row=made.last))
    bars.set_categories(Reference(data, min_col=1, min_row=2, max_row=6))
    if made.trend:
        bars.series[0].trendline = Trendline(trendlineType=made.trend)
    if made.label:
        bars.series[0].dLbls = DataLabelList(showVal=True)
    data.add_chart(bars, "F2")
    points = ScatterChart()
    series = Series(
        Reference(data, min_col=3, min_row=2, max_row=6),
        Reference(data, min_col=2, min_row=2, max_row=6),
    )
    series.marker.symbol = made.symbol
    points.series.append(series)
    new.add_chart(points, "F2")


def _colour(data: Any, made: Made) -> None:
    look = DifferentialStyle(
        font=Font(bold=made.bold), fill=PatternFill(bgColor=made.fill, fill_type="solid")
    )
    if made.formula:
        rule = Rule("expression", dxf=look, formula=[f"B2>{made.limit}"])
    else:
        rule = Rule("cellIs", dxf=look, operator=made.operator, formula=[made.limit])
    data.conditional_formatting.add("B2:B6", rule)
    green = DifferentialStyle(fill=PatternFill(bgColor=made.second, fill_type="solid"))
    other = Rule("expression", dxf=green, formula=["$C2>3"])
    data.conditional_formatting.add("C2:C6", other)


def _with_pivot(data: bytes, made: Made) -> bytes:
    """Returns the workbook with a pivot table on the second sheet, which openpyxl cannot create."""
    place = "sheet1.xml" if made.turned else "sheet2.xml"
    rels = f"xl/worksheets/_rels/{place}.rels"
    fields = [
        f"<pivotField{' axis=' + chr(34) + 'axisRow' + chr(34) if n == made.row_field else ''}/>"
        for n in range(3)
    ]
    page = '<pageFields count="1"><pageField fld="2"/></pageFields>' if made.page else ""
    parts = {
        "xl/pivotTables/p.xml": f'<pivotTableDefinition name="{made.pivot}" cacheId="7">'
        f'<location ref="A1:B9"/><pivotFields count="3">{"".join(fields)}</pivotFields>'
        f'<rowFields count="1"><field x="{made.row_field}"/></rowFields>{page}'
        f'<dataFields count="1"><dataField name="D" fld="1" subtotal="{made.function}"/>'
        "</dataFields></pivotTableDefinition>",
        "xl/pivotTables/c.xml": '<pivotCacheDefinition><cacheSource type="worksheet">'
        f'<worksheetSource sheet="Data" ref="{made.source}"/></cacheSource><cacheFields>'
        '<cacheField name="Month"/><cacheField name="Sales"/><cacheField name="Costs"/>'
        "</cacheFields></pivotCacheDefinition>",
    }
    parts = {name: in_namespaces(text) for name, text in parts.items()}
    added = {
        "xl/workbook.xml": (
            "</workbook>",
            f'<pivotCaches><pivotCache xmlns:r="{_REL}" cacheId="7" r:id="rPivot"/></pivotCaches>',
        ),
        "xl/_rels/workbook.xml.rels": (
            "</Relationships>",
            _related("rPivot", "pivotCacheDefinition", "pivotTables/c.xml"),
        ),
        rels: ("</Relationships>", _related("rPivot", "pivotTable", "../pivotTables/p.xml")),
    }
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            text = old.read(name)
            if name in added:
                end, what = added[name]
                text = text.replace(end.encode(), (what + end).encode())
            new.writestr(name, text)
        for name, part in parts.items():
            new.writestr(name, part)
    return buffer.getvalue()


def _related(key: str, kind: str, target: str) -> str:
    return f'<Relationship Id="{key}" Type="{_REL}/{kind}" Target="{target}"/>'
