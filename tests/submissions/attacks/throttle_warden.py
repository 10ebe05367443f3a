# property: a program cannot set the warden's limits, priority or processors
# verdict: AC
import ctypes, os, resource
libc = ctypes.CDLL(None)
kinds = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
for pid in others:
    for kind in kinds:
        try:
            resource.prlimit(pid, kind, (1, 1))
            print("REACHED limit", kind, "of", pid)
        except (OSError, ValueError):
            pass
    for what, change in (
        ("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)),
        ("scheduler", lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))),
        ("processors", lambda: os.sched_setaffinity(pid, {0})),
    ):
        try:
            change()
            print("REACHED", what, "of", pid)
        except OSError:
            pass
    if libc.syscall(251, 1, pid, 3 << 13) == 0:  # ioprio_set
        print("REACHED disk priority of", pid)
try:
    os.setpriority(os.PRIO_USER, 0, 19)
    print("REACHED the priority of everything of this user")
except OSError:
    pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
