# property: locks on the packages of the image end with the case
# verdict: AC
# next: locks.py
# other: locks.py
import fcntl, glob, os, time
import openpyxl
kept = []
for path in glob.glob(os.path.dirname(openpyxl.__file__) + "/**/*.py", recursive=True)[:200]:
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        print("REACHED a lock of another case:", path)
    kept.append(fd)
if os.fork() == 0:
    os.setsid()
    time.sleep(1000)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
