# property: XML entities are not expanded
# verdict: IW
import openpyxl, zipfile
path = "/mnt/data/output/1_1_output.xlsx"
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/tmp/plain.xlsx")
bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "' + "a" * 1000 + '">'
for number in range(1, 12):
    before = "a" if number == 1 else f"a{number - 1}"
    bomb += f'<!ENTITY a{number} "' + f"&{before};" * 10 + '">'
bomb += ']><worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
bomb += '<sheetData><row r="1"><c r="A1" t="inlineStr"><is><t>&a11;</t></is></c></row></sheetData>'
bomb += "</worksheet>"
with zipfile.ZipFile("/tmp/plain.xlsx") as source, zipfile.ZipFile(path, "w") as target:
    for name in source.namelist():
        target.writestr(name, bomb if name.endswith("sheet1.xml") else source.read(name))
