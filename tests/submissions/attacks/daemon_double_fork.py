# property: a daemon that left its session does not outlive the run
# verdict: AC
# next: look_for_leftovers.py
# survivors: 1
import os, time
runs, held = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(held)
        os.read(runs, 1)  # until the main process is gone
        end = time.monotonic() + 1
        while True:
            try:
                open("/tmp/REACHED", "w").close()
                if time.monotonic() > end:  # now nobody looks any more
                    open("/mnt/data/output/1_1_output.xlsx", "w").write("daemon")
            except OSError:
                pass
            time.sleep(0.01)
    os._exit(0)
os.wait()

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
