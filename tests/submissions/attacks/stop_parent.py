# property: the warden cannot be stopped
# verdict: TLE
# limits: cpu_s=0.5 wall_s=4
import os, signal
while True:
    for process in (os.getppid(), 1):
        for number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN):
            try:
                os.kill(process, number)
            except OSError:
                pass
