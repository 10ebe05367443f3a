# property: a program cannot change the warden's clock
# verdict: TLE
# limits: cpu_s=0.5 wall_s=60
# cause: processor time limit
import time
time.time = time.monotonic = time.perf_counter = time.process_time = lambda: 0.0
try:
    time.clock_settime(time.CLOCK_REALTIME, 0)
    print("REACHED the clock")
except OSError:
    pass
while True:
    pass
