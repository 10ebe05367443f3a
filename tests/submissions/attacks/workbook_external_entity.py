# property: XML entities of files are not read
# verdict: IW
import openpyxl, zipfile
path = "/mnt/data/output/1_1_output.xlsx"
openpyxl.Workbook().save("/tmp/plain.xlsx")
text = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
text += '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
text += '<row r="1"><c r="A1" t="inlineStr"><is><t>&a;</t></is></c></row></sheetData></worksheet>'
with zipfile.ZipFile("/tmp/plain.xlsx") as source, zipfile.ZipFile(path, "w") as target:
    for name in source.namelist():
        target.writestr(name, text if name.endswith("sheet1.xml") else source.read(name))
