# property: settings of the kernel cannot be written
# verdict: AC
import glob, os
paths = glob.glob("/proc/sys/kernel/*") + glob.glob("/proc/sys/vm/*") + glob.glob("/proc/sys/fs/*")
paths += ["/proc/sysrq-trigger", "/proc/1/oom_score_adj", "/proc/1/mem"]
paths += [f"/proc/{os.getppid()}/oom_score_adj", "/proc/self/setgroups", "/proc/self/uid_map"]
for path in paths:
    try:
        content = open(path, "rb").read(4096) or b"0"
    except OSError:
        content = b"0 0 1" if path.endswith("map") else b"0"
    try:
        fd = os.open(path, os.O_WRONLY)
        os.write(fd, content)  # what it says already, so that a success does no harm
        print("REACHED", path)
    except OSError:
        pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
