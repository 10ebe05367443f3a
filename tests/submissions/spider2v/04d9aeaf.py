"""Annual changes of three kinds of assets on a sheet of their own."""

import openpyxl

workbook = openpyxl.load_workbook("/mnt/data/SmallBalanceSheet.xlsx")
sheet = workbook["Sheet1"]
rows = [row for row in range(2, sheet.max_row + 1) if sheet[f"A{row}"].value is not None]
new = workbook.create_sheet("Sheet2", 0)
new.append(["Year", "CA changes", "FA changes", "OA changes"])
for row in rows[1:]:
    new.append([sheet[f"A{row}"].value])
for column in "BC":
    for row in rows[1:]:
        new[f"{column}{row - 1}"] = f"=(Sheet1!{column}{row}-Sheet1!{column}{row - 1})/Sheet1!{column}{row - 1}"
        new[f"{column}{row - 1}"].number_format = "0.00%"
# Last step
for row in rows[1:]:
    new[f"D{row - 1}"] = f"=(Sheet1!D{row}-Sheet1!D{row - 1})/Sheet1!D{row - 1}"
    new[f"D{row - 1}"].number_format = "0.00%"
# Save
workbook.save("/mnt/data/SmallBalanceSheet_output.xlsx")
