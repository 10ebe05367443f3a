# property: orphans of orphans are counted and ended
# verdict: AC
# survivors: 20
import os, time
made, tell = os.pipe()
def spawn(depth):
    if os.fork() == 0:
        os.setsid()
        if depth:
            spawn(depth - 1)
        os.write(tell, b"x")
        time.sleep(1000)
for _ in range(4):
    spawn(4)
seen = 0
while seen < 20:
    seen += len(os.read(made, 20))

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
