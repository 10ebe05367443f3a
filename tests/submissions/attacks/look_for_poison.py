# property: looks for the effects of the attacks that poison the interpreter
# verdict: AC
import os
if "a".upper() != "A" or 6 * 7 != int("42"):
    print("REACHED the interpreter")
for line in open("/proc/self/maps"):
    span, rights = line.split()[:2]
    if rights == "r-xp" and ("python" in line or "libc" in line):
        try:
            with open("/proc/self/mem", "rb", buffering=0) as memory:
                memory.seek(int(span.split("-")[0], 16))
                if memory.read(8) == b"poisoned":
                    print("REACHED machine code", line.strip())
        except OSError:
            pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
