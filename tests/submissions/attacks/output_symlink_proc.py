# property: a link to a descriptor is not followed
# verdict: SV
import os
os.symlink("/proc/self/fd/0", "/mnt/data/output/1_1_output.xlsx")
