# property: time of children that nobody waits for is counted
# verdict: TLE
# limits: cpu_s=1 wall_s=60
# within_s: 45
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(8):
    if os.fork() == 0:
        while True:
            pass
time.sleep(1000)
