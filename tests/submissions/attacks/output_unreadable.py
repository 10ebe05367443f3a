# property: an output without permissions is still collected
# verdict: AC
import atexit, os
atexit.register(lambda: os.chmod("/mnt/data/output/1_1_output.xlsx", 0))

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
