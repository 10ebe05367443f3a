# property: time of grandchildren that another process adopts is counted
# verdict: TLE
# limits: cpu_s=0.5 wall_s=60
# cause: processor time limit
import ctypes, os, time
libc = ctypes.CDLL(None)
libc.prctl(36, 1, 0, 0, 0)  # this process adopts orphans in the warden's place, and never looks
while True:
    if os.fork() == 0:
        if os.fork() == 0:
            end = time.process_time() + 0.3
            while time.process_time() < end:
                pass
            os._exit(0)
        os._exit(0)
    time.sleep(0.35)
