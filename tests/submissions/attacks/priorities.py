# property: limits and priorities cannot be raised
# verdict: AC
import os, resource
for name in dir(resource):
    if name.startswith("RLIMIT_"):
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        if hard == resource.RLIM_INFINITY:
            continue
        try:
            resource.setrlimit(kind, (hard, hard + 1))
            print("REACHED", name)
        except (OSError, ValueError):
            pass
try:
    os.nice(-5)
    print("REACHED a better priority")
except OSError:
    pass
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    print("REACHED real time")
except OSError:
    pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
