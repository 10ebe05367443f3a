# property: a program that only waits ends at the wall-clock limit
# verdict: TLE
# limits: wall_s=1
import time
time.sleep(1000)
