"""Sales and cost of goods as clustered columns on a new sheet."""

import openpyxl
from openpyxl.chart import BarChart, Reference

workbook = openpyxl.load_workbook("/mnt/data/WeeklySales.xlsx")
sheet = workbook["Sheet1"]
new = workbook.create_sheet("Sheet2", 0)
chart = BarChart()
chart.type = "col"
chart.grouping = "clustered"
chart.add_data(Reference(sheet, min_col=2, max_col=3, min_row=1, max_row=11), titles_from_data=True)
chart.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=11))
new.add_chart(chart, "B2")
# Last step
chart.title = "Sales & COGS"
# Save
workbook.save("/mnt/data/WeeklySales_output.xlsx")
