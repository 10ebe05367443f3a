# property: the workbook cannot be swapped for something else while it is collected
import os
PATH = "/home/user/book.xlsx"
heard, said = os.pipe()
if os.fork() == 0:
    os.setsid()
    for name, target in (("a", "/etc/passwd"), ("b", "/proc/1/environ"), ("c", "/etc/passwd")):
        os.symlink(target, f"/home/user/{name}")
    os.write(said, b".")
    while True:
        open("/home/user/d", "w").write("own")
        os.rename("/home/user/d", PATH)
        os.symlink("/etc/passwd", "/home/user/e")
        os.rename("/home/user/e", PATH)
        os.mkfifo("/home/user/f")
        os.rename("/home/user/f", PATH)
os.read(heard, 1)  # in a session of its own it is not ended with this program
print("END")
