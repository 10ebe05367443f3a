# property: modules next to the program do not shadow the warden's modules
# verdict: AC
# next: look_for_leftovers.py
import os
for name in ("json", "struct", "signal", "select", "resource", "stat"):
    open(f"/mnt/data/{name}.py", "w").write("raise SystemExit('REACHED')")

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
