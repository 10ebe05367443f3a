# property: no namespace of the warden or of the host can be entered
# verdict: AC
import ctypes, os
libc = ctypes.CDLL(None)
for name in os.listdir("/proc"):
    if not name.isdigit() or int(name) == os.getpid():
        continue
    for kind in ("mnt", "pid", "net", "user", "ipc", "uts", "cgroup", "time"):
        try:
            fd = os.open(f"/proc/{name}/ns/{kind}", os.O_RDONLY)
        except OSError:
            continue
        print("REACHED", name, kind)
        if libc.setns(fd, 0) == 0:
            print("REACHED and entered", name, kind)
    for path in ("root", "cwd", "exe", "mem", "environ", "maps", "auxv", "stack", "syscall"):
        try:
            if path in ("root", "cwd"):
                found = os.listdir(f"/proc/{name}/{path}/")
            else:
                found = open(f"/proc/{name}/{path}", "rb").read(1)
            if found:
                print("REACHED", name, path)
        except OSError:
            pass
pidfd = libc.syscall(434, 1, 0)  # pidfd_open
if pidfd >= 0:
    if libc.syscall(438, pidfd, 0, 0) >= 0:  # pidfd_getfd
        print("REACHED a descriptor of the warden")
    if libc.setns(pidfd, 0x20000) == 0:
        print("REACHED the warden's mounts")

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
