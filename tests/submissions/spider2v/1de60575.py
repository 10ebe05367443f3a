"""Revenue of each promotion, as a pivot table with the promotions as columns."""

import openpyxl
from openpyxl.pivot.cache import CacheDefinition, CacheField, CacheSource, SharedItems, WorksheetSource
from openpyxl.pivot.fields import Index, Missing, Number, Text
from openpyxl.pivot.record import Record, RecordList
from openpyxl.pivot.table import DataField, FieldItem, Location, PivotField, RowColField, TableDefinition

workbook = openpyxl.load_workbook("/mnt/data/EntireSummerSales.xlsx")
sheet = workbook["Sheet1"]
header, *rows = sheet.iter_rows(values_only=True)
promotion = header.index("Promotion")
revenue = next(place for place, name in enumerate(header) if name.startswith("Revenue"))
promotions = sorted({row[promotion] for row in rows})


def cached(place, value):
    if place == promotion:
        return Index(v=promotions.index(value))
    if value is None:
        return Missing()
    return Number(v=value) if isinstance(value, (int, float)) else Text(v=str(value))


items = {promotion: SharedItems(_fields=[Text(v=each) for each in promotions], count=len(promotions))}
cache = CacheDefinition(
    id="rId1",
    refreshOnLoad=True,
    recordCount=len(rows),
    cacheSource=CacheSource(
        type="worksheet", worksheetSource=WorksheetSource(ref=sheet.dimensions, sheet="Sheet1")
    ),
    cacheFields=[
        CacheField(name=name, sharedItems=items.get(place, SharedItems()))
        for place, name in enumerate(header)
    ],
)
cache.records = RecordList(
    r=[Record(_fields=[cached(place, value) for place, value in enumerate(row)]) for row in rows]
)
shown = [FieldItem(x=place) for place in range(len(promotions))] + [FieldItem(t="default")]
fields = [PivotField() for _ in header]
fields[promotion] = PivotField(axis="axisCol", items=shown)
fields[revenue] = PivotField(dataField=True)
table = TableDefinition(
    name="PivotTable1",
    cacheId=1,
    dataCaption="Values",
    location=Location(ref="A1:D3", firstHeaderRow=1, firstDataRow=2, firstDataCol=1),
    pivotFields=fields,
    colFields=[RowColField(x=promotion)],
    # Last step
    dataFields=[DataField(name="Sum of Revenue", fld=revenue, subtotal="sum")],
    # Save
)
table.cache = cache
workbook.create_sheet("Sheet2", 0).add_pivot(table)
workbook.save("/mnt/data/EntireSummerSales_output.xlsx")
