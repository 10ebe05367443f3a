# property: only the case's own folders can be written
# verdict: AC
import os, stat
OWN = ("/tmp", "/mnt", "/home", "/data", "/dev/shm")
DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}
own_devices = {os.stat(folder).st_dev for folder in OWN if os.path.isdir(folder)}
for folder, folders, names in os.walk("/"):
    if folder.startswith(("/proc", "/sys", *OWN)):
        folders.clear()
        continue
    try:
        made = f"{folder}/made-by-a-solution"
        os.close(os.open(made, os.O_CREAT | os.O_WRONLY))
        # a root of the case's own may be written to; it is gone with the case
        if os.stat(made).st_dev not in own_devices:
            print("REACHED folder", folder)
        os.unlink(made)
    except OSError:
        pass
    for name in names:
        path = f"{folder}/{name}"
        if os.path.islink(path) or (folder.startswith("/dev") and name in DEVICES):
            continue
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            print("REACHED", path)
        except OSError:
            pass
        if os.lstat(path).st_mode & (stat.S_ISUID | stat.S_ISGID):
            print("REACHED a program with an identity of its own:", path)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
