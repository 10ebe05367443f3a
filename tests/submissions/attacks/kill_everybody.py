# property: a signal to every process reaches only the program's own processes
# verdict: AC
import os, signal, time
if os.fork() == 0:
    time.sleep(1000)
try:
    os.kill(-1, signal.SIGKILL)
except OSError:
    pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
