# property: endless standard output takes bounded memory
# verdict: TLE
# limits: cpu_s=1 wall_s=2
import os
while True:
    os.write(1, b"x" * 65536)
