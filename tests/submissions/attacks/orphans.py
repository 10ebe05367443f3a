# property: orphans of orphans are counted and ended
# verdict: AC
# survivors: 20
import os, time
def spawn(depth):
    if os.fork() == 0:
        os.setsid()
        if depth:
            spawn(depth - 1)
        time.sleep(1000)
for _ in range(4):
    spawn(4)
time.sleep(2)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
