# property: a program that only waits ends by the clock
# verdict: TLE
# limits: wall_s=1
import time
time.sleep(1000)
