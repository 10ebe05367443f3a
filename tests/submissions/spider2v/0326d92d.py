"""Totals as bars and growth as a line, under the months of each."""

import openpyxl
from openpyxl.chart import BarChart, LineChart, Reference, Series

workbook = openpyxl.load_workbook("/mnt/data/SalesRep.xlsx")
sheet = workbook["Sheet1"]
sheet["A12"] = "Total"
sheet["A13"] = "Growth"
for column in "BCDEFG":
    sheet[f"{column}12"] = sum(sheet[f"{column}{row}"].value for row in range(2, 12))
for before, column in zip("BCDEF", "CDEFG"):
    earlier, later = sheet[f"{before}12"].value, sheet[f"{column}12"].value
    sheet[f"{column}13"] = (later - earlier) / earlier


def add(chart, row, first, place):
    values = Reference(sheet, min_col=first, max_col=7, min_row=row)
    chart.series.append(Series(values, title_from_data=False))
    chart.set_categories(Reference(sheet, min_col=first, max_col=7, min_row=1))
    chart.title = sheet.cell(row, 1).value
    chart.legend = None
    sheet.add_chart(chart, place)


add(BarChart(), 12, 2, "I2")
# Last step
add(LineChart(), 13, 3, "I20")
# Save
workbook.save("/mnt/data/SalesRep_output.xlsx")
