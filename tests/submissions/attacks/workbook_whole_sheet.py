# property: a sheet that claims to use every cell costs only what it holds
# verdict: AC
import openpyxl, zipfile
path = "/mnt/data/output/1_1_output.xlsx"
book = openpyxl.Workbook()
book.active["A1"] = 42
book.active["XFD1048576"] = 1
book.save(path)
