# property: no privilege can be regained
# verdict: AC
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, call in (("setuid", lambda: os.setuid(0)), ("setgid", lambda: os.setgid(0)),
                   ("setgroups", lambda: os.setgroups([0])), ("chroot", lambda: os.chroot("/tmp")),
                   ("mknod", lambda: os.mknod("/tmp/null", 0o20666, os.makedev(1, 3)))):
    try:
        call()
        print("REACHED", name)
    except OSError:
        pass
for flags in (0x10000000, 0x20000, 0x20000000, 0x40000000, 0x08000000, 0x10000000 | 0x20000):
    if os.fork() == 0:
        if libc.unshare(flags) == 0:
            print("REACHED unshare", hex(flags), flush=True)
        os._exit(0)
    os.wait()
if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 or libc.umount2(b"/usr", 2) == 0:
    print("REACHED mount")
for path in ("/bin/su", "/usr/bin/sudo", "/bin/mount", "/usr/bin/newuidmap"):
    if os.path.exists(path) and os.stat(path).st_mode & 0o6000 and os.system(f"{path} -V") == 0:
        print("set-user-id program started, without effect", path)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
