# property: a FIFO at the output path does not hang the judge
# verdict: SV
import os
os.mkfifo("/mnt/data/output/1_1_output.xlsx")
