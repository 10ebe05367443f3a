"""How often each invoice number occurs, as a pivot table made of openpyxl's own classes."""

import openpyxl
from openpyxl.pivot.cache import CacheDefinition, CacheField, CacheSource, SharedItems, WorksheetSource
from openpyxl.pivot.fields import Index, Number, Text
from openpyxl.pivot.record import Record, RecordList
from openpyxl.pivot.table import DataField, FieldItem, Location, PivotField, RowColField, TableDefinition

workbook = openpyxl.load_workbook("/mnt/data/Invoices.xlsx")
sheet = workbook["Sheet1"]
header, *rows = sheet.iter_rows(max_row=19, max_col=7, values_only=True)
field = header.index("Invoice No.")
numbers = sorted({row[field] for row in rows})


def cached(place, value):
    if place == field:
        return Index(v=numbers.index(value))
    return Number(v=value) if isinstance(value, (int, float)) else Text(v=str(value))


items = {field: SharedItems(_fields=[Number(v=each) for each in numbers], count=len(numbers))}
source = WorksheetSource(ref=f"A1:G{len(rows) + 1}", sheet="Sheet1")
cache = CacheDefinition(
    id="rId1",
    refreshOnLoad=True,
    recordCount=len(rows),
    cacheSource=CacheSource(type="worksheet", worksheetSource=source),
    cacheFields=[
        CacheField(name=name, sharedItems=items.get(place, SharedItems()))
        for place, name in enumerate(header)
    ],
)
cache.records = RecordList(
    r=[Record(_fields=[cached(place, value) for place, value in enumerate(row)]) for row in rows]
)
shown = [FieldItem(x=place) for place in range(len(numbers))] + [FieldItem(t="default")]
table = TableDefinition(
    name="PivotTable1",
    cacheId=1,
    dataCaption="Values",
    location=Location(
        ref=f"A1:B{len(numbers) + 2}", firstHeaderRow=1, firstDataRow=1, firstDataCol=1
    ),
    pivotFields=[
        PivotField(axis="axisRow", dataField=True, items=shown) if place == field else PivotField()
        for place in range(len(header))
    ],
    rowFields=[RowColField(x=field)],
    dataFields=[DataField(name="Count of Invoice No.", fld=field, subtotal="count")],
)
table.cache = cache
new = workbook.create_sheet("Sheet2", 0)
# Last step
new.add_pivot(table)
# Save
workbook.save("/mnt/data/Invoices_output.xlsx")
