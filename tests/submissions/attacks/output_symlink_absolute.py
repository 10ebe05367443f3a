# property: a link at the output path is not followed
# verdict: SV
import os
os.symlink("/etc/passwd", "/mnt/data/output/1_1_output.xlsx")
