# property: processes are bounded, and all of them end with the run
# verdict: TLE
# limits: cpu_s=1 wall_s=4 processes=32
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
