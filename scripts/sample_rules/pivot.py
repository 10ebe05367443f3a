"""Task pivot: orders by region and product, as a pivot table on a new sheet."""

from __future__ import annotations

import random

from sample.book import Book
from sample.model import Answer

from sample_rules.model import Finished, RuleTask, changed, pair
from sample_rules.pivot_parts import PivotSpec, Row, with_pivot

HEADINGS = ("Region", "Product", "Amount")
ROWS = {1: 12, 2: 25, 3: 40}
REGIONS = {
    1: ("North", "South"),
    2: ("East", "North", "West"),
    3: ("East", "North", "South", "West"),
}
PRODUCTS = {1: ("Jam", "Tea"), 2: ("Honey", "Jam", "Tea"), 3: ("Honey", "Jam", "Salt", "Tea")}


def _orders(case: int) -> list[Row]:
    chance = random.Random(f"pivot {case}")
    return [
        (chance.choice(REGIONS[case]), chance.choice(PRODUCTS[case]), chance.randrange(3, 90))
        for _ in range(ROWS[case])
    ]


def _book(case: int) -> Book:
    book = Book()
    sheet = book.sheet("Orders", (12, 12, 10))
    book.header(sheet, HEADINGS)
    book.rows(sheet, _orders(case), top=2)
    return book


def _summed(case: int, spec: PivotSpec) -> bytes:
    book = _book(case)
    book.rows(book.sheet("Pivot"), spec.cells(), top=spec.top, left=spec.left)
    return with_pivot(book.to_bytes(), "xl/worksheets/sheet2.xml", spec)


def build(case: int) -> tuple[bytes, bytes]:
    """Returns the input and the gold."""
    spec = PivotSpec("PivotTable1", "Orders", HEADINGS, _orders(case))
    return _book(case).to_bytes(), _summed(case, spec)


def finish(case: int) -> Finished:
    """Returns an answer with another name and position; in the last case, it counts orders."""
    wrong = case == 3
    spec = PivotSpec(
        "Summary", "Orders", HEADINGS, _orders(case), top=5, left=2,
        function="count" if wrong else "sum",
    )  # fmt: skip
    return Finished(_summed(case, spec), "WA" if wrong else "AC")


PARTS = """
import io
import zipfile
from xml.sax.saxutils import quoteattr

import openpyxl

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml."

wb = openpyxl.load_workbook("@INPUT@")
rows = [[cell.value for cell in row] for row in wb["Orders"]]
wb.create_sheet("Pivot")
package = io.BytesIO()
wb.save(package)

head, data = rows[0], rows[1:]
row, column = 0, 1
items = [sorted({each[index] for each in data}) for index in (0, 1)]


def shared(index):
    listed = "".join(f"<s v={quoteattr(each)}/>" for each in items[index])
    return f'<sharedItems count="{len(items[index])}">{listed}</sharedItems>'


numbers = [each[2] for each in data]
cache_fields = "".join(
    f"<cacheField name={quoteattr(head[index])}>{shared(index)}</cacheField>" for index in (0, 1)
)
cache_fields += (
    f'<cacheField name={quoteattr(head[2])}><sharedItems containsSemiMixedTypes="0" '
    f'containsString="0" containsNumber="1" containsInteger="1" minValue="{min(numbers)}" '
    f'maxValue="{max(numbers)}"/></cacheField>'
)
cache = (
    f'<pivotCacheDefinition xmlns="{MAIN}" xmlns:r="{LINKS}" r:id="rId1" refreshOnLoad="1" '
    f'recordCount="{len(data)}"><cacheSource type="worksheet"><worksheetSource '
    f'ref="A1:C{len(rows)}" sheet="Orders"/></cacheSource><cacheFields count="3">'
    f"{cache_fields}</cacheFields></pivotCacheDefinition>"
)
records = "".join(
    f'<r><x v="{items[0].index(a)}"/><x v="{items[1].index(b)}"/><n v="{n}"/></r>'
    for a, b, n in data
)
records = f'<pivotCacheRecords xmlns="{MAIN}" count="{len(data)}">{records}</pivotCacheRecords>'


def field(index):
    axis = {row: "axisRow", column: "axisCol"}[index]
    listed = "".join(f'<item x="{place}"/>' for place in range(len(items[index])))
    count = len(items[index]) + 1
    return (
        f'<pivotField axis="{axis}" showAll="0"><items count="{count}">{listed}'
        f'<item t="default"/></items></pivotField>'
    )


def lines(name, index):
    listed = "".join(f'<i><x v="{place}"/></i>' for place in range(len(items[index])))
    return f'<{name} count="{len(items[index]) + 1}">{listed}<i t="grand"><x/></i></{name}>'


last = f"{chr(66 + len(items[column]))}{5 + len(items[row])}"
table = (
    f'<pivotTableDefinition xmlns="{MAIN}" name="PivotTable1" cacheId="1" dataCaption="Values" '
    f'outline="1" outlineData="1"><location ref="A3:{last}" firstHeaderRow="1" firstDataRow="2" '
    f'firstDataCol="1"/><pivotFields count="3">{field(0)}{field(1)}'
    f'<pivotField dataField="1" showAll="0"/></pivotFields>'
    f'<rowFields count="1"><field x="{row}"/></rowFields>{lines("rowItems", row)}'
    f'<colFields count="1"><field x="{column}"/></colFields>{lines("colItems", column)}'
    f'<dataFields count="1"><dataField name="Sum of Amount" fld="2" subtotal="sum"/></dataFields>'
    f'<pivotTableStyleInfo name="PivotStyleLight16"/></pivotTableDefinition>'
)


def links(kind, target, more=""):
    return (
        f'<Relationships xmlns="{PACKAGE}"><Relationship Id="rId1" Type="{LINKS}/{kind}" '
        f'Target="{target}"/></Relationships>'
    )


TABLE = "xl/pivotTables/pivotTable1.xml"
CACHE = "xl/pivotCache/pivotCacheDefinition1.xml"
RECORDS = "xl/pivotCache/pivotCacheRecords1.xml"
added = {
    TABLE: table,
    CACHE: cache,
    RECORDS: records,
    "xl/worksheets/_rels/sheet2.xml.rels": links("pivotTable", f"/{TABLE}"),
    "xl/pivotTables/_rels/pivotTable1.xml.rels": links("pivotCacheDefinition", f"/{CACHE}"),
    "xl/pivotCache/_rels/pivotCacheDefinition1.xml.rels": links("pivotCacheRecords", f"/{RECORDS}"),
}
types = "".join(
    f'<Override PartName="/{part}" ContentType="{KIND}{kind}+xml"/>'
    for part, kind in (
        (TABLE, "pivotTable"), (CACHE, "pivotCacheDefinition"), (RECORDS, "pivotCacheRecords")
    )
)
before = {
    "[Content_Types].xml": ("</Types>", types),
    "xl/_rels/workbook.xml.rels": (
        "</Relationships>",
        f'<Relationship Id="rIdPivot" Type="{LINKS}/pivotCacheDefinition" Target="/{CACHE}"/>',
    ),
    "xl/workbook.xml": (
        "</workbook>",
        f'<pivotCaches><pivotCache xmlns:r="{LINKS}" cacheId="1" r:id="rIdPivot"/></pivotCaches>',
    ),
}
with zipfile.ZipFile(package) as source, zipfile.ZipFile("@OUTPUT@", "w") as target:
    for name in source.namelist():
        text = source.read(name).decode()
        if name in before:
            mark, more = before[name]
            text = text.replace(mark, more + mark)
        target.writestr(name, text)
    for name, text in added.items():
        target.writestr(name, text)
"""

CLASSES = """
import openpyxl
from openpyxl.pivot.cache import (
    CacheDefinition, CacheField, CacheSource, SharedItems, WorksheetSource,
)
from openpyxl.pivot.fields import Index, Number, Text
from openpyxl.pivot.record import Record, RecordList
from openpyxl.pivot.table import (
    DataField, FieldItem, Location, PivotField, PivotTableStyle, RowColField, RowColItem,
    TableDefinition,
)

wb = openpyxl.load_workbook("@INPUT@")
rows = [[cell.value for cell in row] for row in wb["Orders"]]
head, data = rows[0], rows[1:]
items = [sorted({row[index] for row in data}) for index in (0, 1)]
numbers = [row[2] for row in data]
fields = [
    CacheField(name=head[index], sharedItems=SharedItems(_fields=[Text(v=x) for x in items[index]]))
    for index in (0, 1)
]
fields.append(
    CacheField(
        name=head[2],
        sharedItems=SharedItems(
            containsSemiMixedTypes=False, containsString=False, containsNumber=True,
            containsInteger=True, minValue=min(numbers), maxValue=max(numbers),
        ),
    )
)
cache = CacheDefinition(
    cacheSource=CacheSource(
        type="worksheet",
        worksheetSource=WorksheetSource(ref=f"A1:C{len(rows)}", sheet="Orders"),
    ),
    cacheFields=fields,
    refreshOnLoad=True,
    id="rId1",
)
cache.records = RecordList(
    r=[
        Record(_fields=[Index(v=items[0].index(a)), Index(v=items[1].index(b)), Number(v=n)])
        for a, b, n in data
    ]
)


def axis(name, index):
    listed = [FieldItem(x=place) for place in range(len(items[index]))]
    return PivotField(axis=name, showAll=False, items=[*listed, FieldItem(t="default")])


def lines(index):
    listed = [RowColItem(x=[Index(v=place)]) for place in range(len(items[index]))]
    return [*listed, RowColItem(t="grand", x=[Index(v=0)])]


table = TableDefinition(
    name="PivotTable1",
    cacheId=1,
    dataCaption="Values",
    location=Location(ref="A3:F9", firstHeaderRow=1, firstDataRow=2, firstDataCol=1),
    pivotFields=[axis("axisRow", 0), axis("axisCol", 1), PivotField(dataField=True)],
    rowFields=[RowColField(x=0)],
    rowItems=lines(0),
    colFields=[RowColField(x=1)],
    colItems=lines(1),
    dataFields=[DataField(name="Sum of Amount", fld=2, subtotal="sum")],
    pivotTableStyleInfo=PivotTableStyle(name="PivotStyleLight16"),
)
table.cache = cache
wb.create_sheet("Pivot").add_pivot(table)
wb.save("@OUTPUT@")
"""

STATIC = """
import pandas as pd

orders = pd.read_excel("@INPUT@", sheet_name="Orders")
table = orders.pivot_table(
    index="Region", columns="Product", values="Amount", aggfunc="sum", margins=True
)
with pd.ExcelWriter("@OUTPUT@", engine="openpyxl") as writer:
    orders.to_excel(writer, sheet_name="Orders", index=False)
    table.to_excel(writer, sheet_name="Pivot", startrow=2)
"""

TASK = RuleTask(
    id="pivot",
    kind="Pivot table",
    instruction="""Add a sheet Pivot after the sheet Orders, with a pivot table of all orders: the
        regions in the rows, the products in the columns, and the sum of Amount as values.""",
    rules=[
        {"type": "sheet_name"},
        pair("sheet_data", "Orders"),
        pair("pivot_table", "Pivot", pivot_props=["row_fields", "col_fields", "data_fields"]),
    ],
    build=build,
    finish=finish,
    answers=(
        Answer("parts of the package", PARTS),
        Answer("openpyxl's classes", CLASSES),
        Answer("counted", changed(PARTS, 'subtotal="sum"', 'subtotal="count"'), "WA"),
        Answer("products in the rows", changed(PARTS, "= 0, 1\n", "= 1, 0\n"), "WA"),
        Answer("one row short", changed(PARTS, "A1:C{len(rows)}", "A1:C{len(rows) - 1}"), "WA"),
        Answer("a table of values", STATIC, "WA"),
    ),
)  # fmt: skip
