# property: a folder tree too deep for any path is removed
# verdict: AC
# next: look_for_leftovers.py
import os
os.chdir("/tmp")
for _ in range(2000):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
os.chdir("/tmp")

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
