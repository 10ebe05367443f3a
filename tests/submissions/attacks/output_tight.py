# property: an output just within its limit is collected even if memory is short
# verdict: IW
# limits: memory_mib=256 output_mib=48
import os
with open("/mnt/data/output/1_1_output.xlsx", "wb") as file:
    for _ in range(47):
        file.write(os.urandom(2**20))
