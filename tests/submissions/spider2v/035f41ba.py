"""Gross profit, and on a new sheet the year with it."""

import openpyxl

workbook = openpyxl.load_workbook("/mnt/data/IncomeStatement2.xlsx")
sheet = workbook["Sheet1"]
for row in range(2, sheet.max_row + 1):
    sales, returned, discounts, materials, labor, overhead = (
        sheet[f"{column}{row}"].value or 0 for column in "BCDFGH"
    )
    sheet[f"J{row}"] = sales - returned - discounts - materials - labor - overhead
new = workbook.create_sheet("Sheet2", 0)
new["A1"] = "Year_Profit"
# Last step
for row in range(2, sheet.max_row + 1):
    new[f"A{row}"] = f"{sheet[f'A{row}'].value}_{sheet[f'J{row}'].value}"
# Save
workbook.save("/mnt/data/IncomeStatement2_output.xlsx")
