# property: the warden cannot be traced, read or written
# verdict: AC
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(64)
for name in os.listdir("/proc"):
    if not name.isdigit() or int(name) == os.getpid():
        continue
    process = int(name)
    for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
        if libc.ptrace(request, process, 0, 0) == 0:
            print("REACHED by ptrace", name)
    local, remote = Piece(ctypes.addressof(buffer), 64), Piece(0x400000, 64)
    if libc.process_vm_readv(process, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0:
        print("REACHED by process_vm_readv", name)
    for file in ("mem", "maps", "environ", "auxv", "stack", "syscall", "cwd", "root", "exe"):
        try:
            path = f"/proc/{name}/{file}"
            seen = os.readlink(path) if file in ("cwd", "root", "exe") else open(path, "rb").read(8)
            if seen:
                print("REACHED by", path)
        except OSError:
            pass
    try:
        handle = os.pidfd_open(process)
        if libc.syscall(438, handle, 0, 0) >= 0:
            print("REACHED by pidfd_getfd", name)
    except OSError:
        pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
