# property: an archive whose names lead out of it is not read
# verdict: IW
import openpyxl, zipfile
path = "/mnt/data/output/1_1_output.xlsx"
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save(path)
with zipfile.ZipFile(path, "a") as archive:
    archive.writestr("../../../../tmp/REACHED", "climbed")
    archive.writestr("/tmp/REACHED", "absolute")
