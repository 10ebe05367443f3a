"""Totals of rows and columns, the best and the worst employee filled."""

import openpyxl
from openpyxl.styles import PatternFill

workbook = openpyxl.load_workbook("/mnt/data/SalesRep.xlsx")
sheet = workbook["Sheet1"]
sheet["A12"] = sheet["H1"] = "Total"
for column in "BCDEFG":
    sheet[f"{column}12"] = f"=SUM({column}2:{column}11)"
totals = {}
for row in range(2, 12):
    totals[row] = sum(sheet[f"{column}{row}"].value for column in "BCDEFG")
    sheet[f"H{row}"] = f"=SUM(B{row}:G{row})"
best, worst = max(totals, key=totals.get), min(totals, key=totals.get)
# "Blue" and "Red" of the palette in LibreOffice Calc.
sheet[f"A{best}"].fill = PatternFill("solid", fgColor="FF2A6099")
# Last step
sheet[f"A{worst}"].fill = PatternFill("solid", fgColor="FFFF0000")
# Save
workbook.save("/mnt/data/SalesRep_output.xlsx")
