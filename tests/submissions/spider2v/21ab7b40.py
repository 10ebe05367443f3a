"""Period rates, the highest in green."""

import openpyxl
from openpyxl.formatting.rule import FormulaRule
from openpyxl.styles import Font

workbook = openpyxl.load_workbook("/mnt/data/PeriodRate.xlsx")
sheet = workbook["Sheet1"]
sheet["C1"] = "Period Rate (%)"
for row in range(2, sheet.max_row + 1):
    sheet[f"C{row}"] = sheet[f"A{row}"].value / sheet[f"B{row}"].value
    sheet[f"C{row}"].number_format = "#,##0.00"
# Last step
highest = FormulaRule(formula=["$C2=MAX($C$2:$C$25)"], font=Font(color="FF00FF00"))
sheet.conditional_formatting.add("C2:C25", highest)
# Save
workbook.save("/mnt/data/PeriodRate_output.xlsx")
