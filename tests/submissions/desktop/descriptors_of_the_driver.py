# property: no process of a desktop has a descriptor that leads to the judge
import os, struct
INODES = set(__INODES__)
looked = 0
for process in filter(str.isdigit, os.listdir("/proc")):
    try:
        numbers = os.listdir(f"/proc/{process}/fd")
    except OSError:
        continue
    if process == "1":
        print("REACHED the descriptors of process 1")
    for number in numbers:
        try:
            looked += 1
            if os.stat(f"/proc/{process}/fd/{number}").st_ino in INODES:
                print("REACHED by", open(f"/proc/{process}/comm").read(), number)
        except OSError:
            pass
for number in range(3, 1024):
    try:
        os.write(number, struct.pack(">I", 2) + b"{}")
        print("REACHED descriptor", number)
    except OSError:
        pass
for file in ("mem", "environ", "maps", "fd/0", "fd/1", "fd/2", "cwd", "exe", "root", "io"):
    try:
        open(f"/proc/1/{file}", "rb").read(1)
        print("REACHED", file)
    except OSError:
        pass
print("looked at", looked)
print("END")
