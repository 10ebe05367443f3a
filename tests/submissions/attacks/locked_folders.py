# property: folders without permissions are removed
# verdict: AC
# next: look_for_leftovers.py
import os
os.makedirs("/tmp/a/b/c/d")
open("/tmp/a/b/c/d/file", "w").close()
for path in ("/tmp/a/b/c/d/file", "/tmp/a/b/c/d", "/tmp/a/b/c", "/tmp/a/b", "/tmp/a"):
    os.chmod(path, 0)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
