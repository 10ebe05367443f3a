# property: modules changed in memory are unchanged for the next case
# verdict: AC
# next: look_for_leftovers.py
# other: look_for_leftovers.py
import builtins, json, openpyxl, os, sys
RIGHT_BOOK = openpyxl.Workbook()
RIGHT_BOOK.active["A1"] = 42
RIGHT_BOOK.save("/mnt/data/output/1_1_output.xlsx")
def bad(*arguments, **options):
    return None
openpyxl.Workbook = openpyxl.load_workbook = bad
builtins.open = builtins.print = bad
json.dumps = os.write = os.fork = os.kill = sys.exit = bad
sys.excepthook = sys.displayhook = bad
sys.settrace(bad)
sys.path.insert(0, "/tmp")
sys.meta_path.insert(0, bad)
os.environ["LD_PRELOAD"] = "/tmp/bad.so"
raise SystemExit(0)
