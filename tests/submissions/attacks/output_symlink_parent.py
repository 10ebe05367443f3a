# property: a link instead of the output's folder is not followed
# verdict: SV
import os
os.rmdir("/mnt/data/output")
os.symlink("/mnt/data/input", "/mnt/data/output")
os.rename("/mnt/data/input/1_1_input.xlsx", "/mnt/data/input/1_1_output.xlsx")
