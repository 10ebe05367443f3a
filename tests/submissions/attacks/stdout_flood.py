# property: a large output is drained without a deadlock
# verdict: AC
import sys
for _ in range(100):
    sys.stdout.write("x" * 2**20)
    sys.stderr.write("y" * 2**18)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
