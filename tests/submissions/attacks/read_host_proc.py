# property: nothing of the host is available through /proc
# verdict: AC
import os
for process in os.listdir("/proc"):
    if not process.isdigit() or int(process) == os.getpid():
        continue
    for way in ("root", "cwd", "task", "map_files"):
        try:
            for name in os.listdir(f"/proc/{process}/{way}"):
                if way != "task":
                    print("REACHED", process, way, name)
        except OSError:
            pass
for path in ("/proc/kcore", "/proc/kmsg", "/proc/sched_debug", "/proc/timer_list", "/dev/mem",
             "/dev/kmsg", "/dev/vda", "/dev/sda", "/proc/sysrq-trigger", "/sys/firmware/acpi"):
    try:
        if os.path.isdir(path):
            seen = os.listdir(path)
        else:
            seen = os.read(os.open(path, os.O_RDONLY | os.O_NONBLOCK), 8)
        if seen:
            print("REACHED", path)
    except OSError:
        pass
if any(int(name) > 10_000 for name in os.listdir("/proc") if name.isdigit()):
    print("REACHED processes of the host")

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
