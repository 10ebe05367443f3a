# property: a truncated workbook is not a workbook
# verdict: IW
import openpyxl, os
path = "/mnt/data/output/1_1_output.xlsx"
openpyxl.Workbook().save(path)
os.truncate(path, os.path.getsize(path) // 2)
