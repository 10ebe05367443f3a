# property: the times of the output do not matter
# verdict: AC
import atexit, os
path = "/mnt/data/output/1_1_output.xlsx"
atexit.register(lambda: os.utime(path, (2**33, -(2**31))))

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
