# property: a patched openpyxl and a patched open change nothing outside
# verdict: WA
import builtins, openpyxl, os
book = openpyxl.Workbook()
book.active["A1"] = 41
book.save("/mnt/data/output/1_1_output.xlsx")
class Equal(int):
    def __eq__(self, other):
        return True
    __hash__ = int.__hash__
openpyxl.cell.cell.Cell.value = property(lambda self: Equal(42))
builtins.int = Equal
