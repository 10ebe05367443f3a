# property: a file with another name is not taken
# verdict: SV
import os
os.link("/mnt/data/input/1_1_input.xlsx", "/mnt/data/output/1_1_output.xlsx")
