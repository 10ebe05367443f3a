"""Net income as a formula in a new column."""

import openpyxl

workbook = openpyxl.load_workbook("/mnt/data/NetIncome.xlsx")
sheet = workbook["Sheet1"]
sheet["C1"] = "Net Income"
# Last step
for row in range(2, sheet.max_row + 1):
    sheet[f"C{row}"] = f"=A{row}-B{row}"
    sheet[f"C{row}"].number_format = '_($* #,##0.00_);_($* (#,##0.00);_($* "-"??_);_(@_)'
# Save
workbook.save("/mnt/data/NetIncome_output.xlsx")
