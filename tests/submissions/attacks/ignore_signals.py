# property: a program that ignores every signal it can still ends at its limit
# verdict: TLE
# limits: wall_s=1
import signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
time.sleep(1000)
