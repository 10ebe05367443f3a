# property: changes to the interpreter of a case do not reach the next case
# verdict: AC
# next: look_for_poison.py
# other: look_for_poison.py
import ctypes, gc, os, sys
import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
# methods of built-in types, behind their read-only view
gc.get_referents(str.__dict__)[0]["upper"] = lambda text: "poisoned"
ctypes.pythonapi.PyType_Modified(ctypes.py_object(str))
sys.intern("poisoned")
# machine code of the interpreter, through the file that stands for this process's memory
for line in open("/proc/self/maps"):
    span, rights = line.split()[:2]
    if rights == "r-xp" and ("python" in line or "libc" in line):
        try:
            with open("/proc/self/mem", "r+b", buffering=0) as memory:
                memory.seek(int(span.split("-")[0], 16))
                memory.write(b"poisoned")
        except OSError:
            pass
# and the number that the next case is to write
ctypes.memmove(id(42) + 24, (43).to_bytes(4, "little"), 4)
os._exit(0)
