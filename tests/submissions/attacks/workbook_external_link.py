# property: a link to another workbook is not followed
# verdict: NC
import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = "='[file:///etc/passwd]Sheet1'!A1"
book.save("/mnt/data/output/1_1_output.xlsx")
