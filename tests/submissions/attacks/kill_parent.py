# property: the warden cannot be killed
# verdict: AC
import os, signal
for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    for process in (os.getppid(), 1):
        try:
            os.kill(process, number)
        except OSError:
            pass
    try:
        group = os.getpgid(os.getppid())
        if group:  # 0 where it cannot be named from here; that would be this process's own
            os.killpg(group, number)
    except OSError:
        pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
