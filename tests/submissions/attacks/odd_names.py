# property: a process cannot hide its time behind a name that looks like numbers
# verdict: TLE
# limits: cpu_s=0.5 wall_s=60
# cause: processor time limit
# survivors: 4
import ctypes, os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
libc = ctypes.CDLL(None)
all_there, gate = os.pipe()
names = (b") S 1 1 1 0 0", b"x\n) Z 0 0", b"\xff\xfe) R", b"(((")
for name in names:
    if os.fork() == 0:
        os.close(gate)
        os.read(all_there, 1)  # or the first could use up the time before there is a fourth
        libc.prctl(15, name, 0, 0, 0)
        while True:
            pass
os.close(gate)
while True:
    signal.pause()
