# property: the environment holds nothing of the host
# verdict: AC
import os
allowed = {"HOME", "LANG", "LOGNAME", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONDONTWRITEBYTECODE",
           "PYTHONHASHSEED", "PYTHONPATH", "TZ", "USER", "LC_CTYPE"}
for name in set(os.environ) - allowed:
    print("REACHED", name)
for process in os.listdir("/proc"):
    if process.isdigit() and int(process) != os.getpid():
        try:
            if open(f"/proc/{process}/environ", "rb").read():
                print("REACHED", process)
        except OSError:
            pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
