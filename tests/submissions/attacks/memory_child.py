# property: a kill for memory in a child is noticed even if the parent exits with 0
# verdict: MLE
import os
child = os.fork()
if child == 0:
    kept = []
    while True:
        kept.append(b"x" * 2**20)
os.waitpid(child, 0)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
