# property: a program cannot write its own limits
# verdict: AC
import os
for root in ("/sys/fs/cgroup", "/run"):
    for folder, _, names in os.walk(root):
        for name in names:
            if name.startswith(("memory.", "pids.", "cpu.", "cgroup.procs", "tasks", "notify")):
                try:
                    os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
                    print("REACHED", folder, name)
                except OSError:
                    pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
