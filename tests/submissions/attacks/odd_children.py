# property: children whose end the kernel does not announce are counted and ended
# verdict: AC
# survivors: 3
import ctypes, os, time
libc = ctypes.PyDLL(None)
CLONE_PARENT, SIGCHLD = 0x8000, 17
for flags in (0, CLONE_PARENT | SIGCHLD, 10):  # no signal; a sister of this process; another signal
    if libc.syscall(56, flags, 0, 0, 0, 0) == 0:
        os.setsid() if flags != CLONE_PARENT | SIGCHLD else None
        libc.signal(15, 1)
        while True:
            libc.sleep(1000)
time.sleep(0.2)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
