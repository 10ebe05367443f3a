# property: the next case sees nothing that a case leaves
# verdict: AC
# next: look_for_leftovers.py
# other: look_for_leftovers.py
import ctypes, os, socket, sys, threading, time
secret = "SECRET-" + "of-one-case" * 3
for folder in ("/tmp", "/mnt", "/mnt/data", "/mnt/data/input", "/home/solution", "/home",
               "/dev/shm", "/data", "/dev/mqueue", "/run", "/var/tmp"):
    for name in ("left", ".left", "1_1_output.xlsx.bak"):
        try:
            open(f"{folder}/{name}", "w").write(secret)
        except OSError:
            pass
libc = ctypes.CDLL(None)
libc.syscall(248, b"user", b"left", secret.encode(), len(secret), -4)  # a key in the keyring
libc.shmget(4711, 4096, 0o1666)
libc.mq_open(b"/left", os.O_CREAT | os.O_RDWR, 0o666, None)
end = socket.socket(socket.AF_UNIX)
end.bind("\0left")
end.listen()
os.set_inheritable(end.fileno(), True)
if os.fork() == 0:
    os.setsid()
    time.sleep(1000)
kept = [secret + str(number) for number in range(100_000)]  # all over the memory
sys.modules["left"] = kept
import openpyxl
openpyxl.left = secret

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
