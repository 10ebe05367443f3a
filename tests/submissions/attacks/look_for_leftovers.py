# property: looks for what the attacks that leave something left
# verdict: AC
import ctypes, os, socket, sys
for folder in ("/tmp", "/home/solution", "/dev/shm", "/data", "/var/tmp"):
    if os.path.isdir(folder) and os.listdir(folder):
        print("REACHED", folder, os.listdir(folder))
for folder, expected in (("/mnt", {"data"}), ("/mnt/data/input", {"1_1_input.xlsx"}),
                         ("/mnt/data/output", set()), ("/home", {"solution"}),
                         ("/mnt/data", {"input", "output", "solution.py"})):
    if set(os.listdir(folder)) != expected:
        print("REACHED", folder, os.listdir(folder))
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(249, b"user", b"left", None, -4) > 0 or libc.shmget(4711, 0, 0) >= 0:
    print("REACHED a key or System V memory")
if libc.mq_open(b"/left", 0) >= 0:
    print("REACHED a message queue")
try:
    socket.socket(socket.AF_UNIX).connect("\0left")
    print("REACHED a socket")
except OSError:
    pass
import openpyxl
if "left" in sys.modules or hasattr(openpyxl, "left") or hasattr(sys, "left"):
    print("REACHED a module")
if len([name for name in os.listdir("/proc") if name.isdigit()]) > 3:
    print("REACHED processes", os.listdir("/proc"))
# what the memory of this process inherited from the warden
needle = b"TERCES"[::-1] + b"-" + b"of-one-case" * 2
for line in open("/proc/self/maps"):
    span, rights = line.split()[:2]
    if rights.startswith("rw") and "[v" not in line:
        first, last = (int(part, 16) for part in span.split("-"))
        if ctypes.string_at(first, last - first).count(needle) > 3:
            print("REACHED memory", line.strip())

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
