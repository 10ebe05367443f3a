# property: no terminal can be written to
# verdict: AC
import fcntl, os, termios
for path in ("/dev/tty", "/dev/console", "/dev/tty0", "/dev/pts/0", "/proc/1/fd/0"):
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        continue
    print("REACHED", path)
    try:
        fcntl.ioctl(fd, termios.TIOCSTI, b"x")
        print("REACHED its input")
    except OSError:
        pass
# ones of its own, as many as it gets
kept = []
try:
    while len(kept) < 2000:
        kept.append(os.openpty())
except OSError:
    pass
for pair in kept:
    for end in pair:
        os.close(end)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
