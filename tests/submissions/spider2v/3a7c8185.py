"""Rows in the order of their dates, and quantities as a line."""

import openpyxl
from openpyxl.chart import LineChart, Reference

workbook = openpyxl.load_workbook("/mnt/data/BoomerangSales.xlsx")
sheet = workbook["Sheet1"]
rows = [[cell.value for cell in row] for row in sheet.iter_rows(min_row=2, max_row=36)]
rows.sort(key=lambda row: row[0])
for number, row in enumerate(rows, start=2):
    row[3] = f'=IF(E{number}<10,"Retail","Wholesale")'
    for column, value in enumerate(row, start=1):
        sheet.cell(number, column).value = value
# Last step
chart = LineChart()
chart.title = "Quantity"
chart.legend = None
chart.add_data(Reference(sheet, min_col=5, min_row=1, max_row=36), titles_from_data=True)
chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=36))
sheet.add_chart(chart, "H2")
# Save
workbook.save("/mnt/data/BoomerangSales_output.xlsx")
