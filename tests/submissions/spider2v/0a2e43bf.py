"""Monthly totals in a new row, and a line chart of them."""

import pandas
from openpyxl import load_workbook
from openpyxl.chart import LineChart, Reference

table = pandas.read_excel("/mnt/data/SalesRep.xlsx", sheet_name="Sheet1")
workbook = load_workbook("/mnt/data/SalesRep.xlsx")
sheet = workbook["Sheet1"]
sheet.append(["Total", *map(int, table.iloc[:, 1:].sum())])
# Last step
chart = LineChart()
chart.title = "Total"
chart.legend = None
chart.add_data(Reference(sheet, min_col=1, max_col=7, min_row=12), from_rows=True, titles_from_data=True)
chart.set_categories(Reference(sheet, min_col=2, max_col=7, min_row=1))
sheet.add_chart(chart, "B15")
# Save
workbook.save("/mnt/data/SalesRep_output.xlsx")
