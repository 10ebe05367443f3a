# property: the packages of the image cannot be changed for the next case
# verdict: AC
# next: look_for_leftovers.py
# other: look_for_leftovers.py
import glob, json, openpyxl, os, site, sys
bad = "print('REACHED: poisoned')\nraise SystemExit(1)\n"
targets = [openpyxl.__file__, json.__file__, os.__file__, sys.executable]
targets += glob.glob(os.path.dirname(openpyxl.__file__) + "/__pycache__/*.pyc")[:20]
for folder in [*sys.path, site.getusersitepackages(), "/usr/lib", "/etc", "/opt/judge/site"]:
    targets += [f"{folder}/{name}" for name in
                ("sitecustomize.py", "usercustomize.py", "bad.pth", "openpyxl.py", "numpy.py")]
for target in targets:
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        open(target, "w").write(bad)
        if not target.startswith(("/mnt", "/home")):
            print("REACHED", target)
    except OSError:
        pass
for name in ("openpyxl", "numpy", "et_xmlfile", "sitecustomize"):
    open(f"/mnt/data/{name}.py", "w").write(bad)  # beside the program, where it imports from

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
