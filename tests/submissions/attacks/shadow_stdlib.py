# property: modules next to the program shadow none of the warden's
# verdict: AC
# next: look_for_leftovers.py
import os
for name in ("json", "struct", "signal", "select", "resource", "stat"):
    open(f"/mnt/data/{name}.py", "w").write("raise SystemExit('REACHED')")

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
