# property: a relative link at the output path is not followed
# verdict: SV
import os
os.symlink("../input/1_1_input.xlsx", "/mnt/data/output/1_1_output.xlsx")
