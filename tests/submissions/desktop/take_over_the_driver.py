# property: an action cannot reach the driver of its desktop, neither by signals nor through /proc
import ctypes, os, signal, site, sys
libc = ctypes.CDLL(None, use_errno=True)
class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGSEGV):
    for send in (os.kill, lambda pid, number: signal.pidfd_send_signal(os.pidfd_open(pid), number)):
        try:
            send(1, number)
            print("REACHED by signal", number)
        except OSError:
            pass
for request in (16, 0x4206):  # PTRACE_ATTACH, PTRACE_SEIZE
    if libc.ptrace(request, 1, 0, 0) == 0:
        print("REACHED by ptrace")
buffer = ctypes.create_string_buffer(64)
local, remote = Piece(ctypes.addressof(buffer), 64), Piece(0x400000, 64)
for call in (libc.process_vm_readv, libc.process_vm_writev):
    if call(1, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) > 0:
        print("REACHED by", call.__name__)
for name in ("mem", "environ", "maps", *(f"fd/{number}" for number in range(64))):
    for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
        try:
            os.open(f"/proc/1/{name}", mode | os.O_NONBLOCK)
            print("REACHED", name)
        except OSError:
            pass
for number in range(64):
    try:
        if libc.syscall(438, os.pidfd_open(1), number, 0) >= 0:  # pidfd_getfd
            print("REACHED descriptor", number)
    except OSError:
        pass
planted = "open('/home/user/planted-ran', 'a').write(str(__import__('os').getpid()) + ' ')\n"
version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
for folder in (f"/home/user/.local/lib/{version}/site-packages", "/home/user", "/tmp", site.USER_SITE):
    os.makedirs(folder, exist_ok=True)
    for name in ("usercustomize.py", "sitecustomize.py", "pyautogui.py", "json.py", "a.pth"):
        line = "import os; " + planted if name.endswith(".pth") else planted
        open(f"{folder}/{name}", "w").write(line)
for name in ("/etc/ld.so.preload", "/etc/ld.so.conf.d/a.conf", "/usr/lib/python3/dist-packages/a.pth"):
    try:
        open(name, "w").write("/home/user/a.so\n")
        print("REACHED", name)
    except OSError:
        pass
os.environ.update(LD_PRELOAD="/home/user/a.so", PYTHONPATH="/home/user", PYTHONSTARTUP="/tmp/json.py")
os.setsid() if os.getpgid(0) != os.getpid() else None
if os.fork() == 0:  # something of it that waits for the next one
    signal.pause()
    os._exit(0)
print("END", flush=True)
