# property: System V memory, which outlives processes, is refused
# verdict: AC
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for key in range(1, 100):
    if libc.shmget(key, 2**20, 0o1666) >= 0:
        print("REACHED System V memory")
    if libc.semget(key, 1, 0o1666) >= 0 or libc.msgget(key, 0o1666) >= 0:
        print("REACHED System V semaphores or queues")

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
