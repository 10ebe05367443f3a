# property: no workbook except the case's own input can be found
# verdict: AC
import os
for folder, _, names in os.walk("/"):
    if folder.startswith(("/proc", "/sys", "/usr/lib/python", "/opt/judge")):
        continue
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith((".xlsx", ".jsonl")) and path != "/mnt/data/input/1_1_input.xlsx":
            print("REACHED", path)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
