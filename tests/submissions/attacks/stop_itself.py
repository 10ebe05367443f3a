# property: a stopped program ends at its limit
# verdict: TLE
# limits: wall_s=1
import os, signal
if os.fork() == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGSTOP)
