# property: a folder at the output path is not an output
# verdict: NO
import os
os.mkdir("/mnt/data/output/1_1_output.xlsx")
