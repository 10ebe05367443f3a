# property: processes are bounded, and all of them end with the run
# verdict: TLE
# limits: cpu_s=0.5 wall_s=4
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
