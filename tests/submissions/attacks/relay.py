# property: time of processes that pass the work on and then end is counted
# verdict: TLE
# limits: cpu_s=0.5 wall_s=60
# cause: processor time limit
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if os.fork() == 0:
    while True:  # each process works a little, forks the next one and ends
        end = time.process_time() + 0.03
        while time.process_time() < end:
            pass
        if os.fork():
            os._exit(0)
time.sleep(1000)
