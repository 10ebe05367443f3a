# property: a file that also has another name is not collected
# verdict: SV
import os
os.link("/mnt/data/input/1_1_input.xlsx", "/mnt/data/output/1_1_output.xlsx")
