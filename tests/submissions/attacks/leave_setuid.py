# property: a set-user-ID program cannot be created
# verdict: AC
# next: look_for_leftovers.py
# other: look_for_leftovers.py
import ctypes, os, shutil, struct, subprocess, sys
libc = ctypes.CDLL(None)
capabilities = struct.pack("<5I", 0x02000001, 0xFFFFFFFF, 0xFFFFFFFF, 0, 0)
for folder in ("/tmp", "/home/solution", "/dev/shm", "/mnt/data"):
    path = f"{folder}/python"
    try:
        shutil.copy2(os.path.realpath(sys.executable), path)
        os.chmod(path, 0o6777)
        if libc.setxattr(path.encode(), b"security.capability", capabilities, 20, 0) == 0:
            print("REACHED capabilities of a file")
        said = subprocess.run([path, "-c", "import os; print(os.geteuid())"], capture_output=True)
        if said.stdout.strip() not in (b"", str(os.getuid()).encode()):
            print("REACHED another identity", said.stdout)
    except OSError:
        pass
for folder in ("/tmp", "/home/solution", "/dev/shm", "/mnt/data"):
    for number in (0, 1, 65534, os.getuid() + 1):
        try:
            os.chown(f"{folder}/python", number, -1)
            if number != os.getuid():
                print("REACHED a file of user", number)
        except OSError:
            pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
