# property: processes that nobody reaps do no harm
# verdict: AC
import ctypes, os
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
made = 0
try:
    while made < 500:
        if os.fork() == 0:
            os._exit(0)
        made += 1
except OSError:
    pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
