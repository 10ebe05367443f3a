# property: system calls that reach deep into the kernel are refused
# verdict: AC
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if os.uname().machine == "x86_64":
    calls = {"io_uring_setup": 425, "bpf": 321, "userfaultfd": 323, "perf_event_open": 298,
             "keyctl": 250, "add_key": 248, "kexec_load": 246, "init_module": 175, "ptrace": 101,
             "mount": 165, "setns": 308, "personality": 135, "fanotify_init": 300, "reboot": 169,
             "open_by_handle_at": 304, "memfd_create": 319, "modify_ldt": 154, "fsopen": 430,
             "kcmp": 312, "iopl": 172, "swapon": 167, "clock_settime": 227, "quotactl": 179}
    for name, number in calls.items():
        ctypes.set_errno(0)
        answer = libc.syscall(number, 0, 0, 0, 0, 0, 0)
        if answer >= 0 or ctypes.get_errno() not in (1, 38):  # EPERM, ENOSYS
            print("REACHED", name, answer, ctypes.get_errno())
    for number in (101, 165, 425):
        ctypes.set_errno(0)
        if libc.syscall(number | 0x40000000, 0, 0, 0, 0) >= 0:
            print("REACHED by the x32 numbers", number)

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
