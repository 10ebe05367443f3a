# property: time of children that no process waits for is counted
# verdict: TLE
# limits: cpu_s=0.5 wall_s=60
# cause: processor time limit
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(8):
    if os.fork() == 0:
        while True:
            pass
time.sleep(1000)
