# property: a million empty styled cells are handled
# verdict: AC
# limits: cpu_s=30 wall_s=300
import zipfile, openpyxl
path = "/mnt/data/output/1_1_output.xlsx"
book = openpyxl.Workbook()
book.active["A1"] = 42
book.active["A1"].font = openpyxl.styles.Font(bold=True)
book.save("/tmp/plain.xlsx")
cells = "".join(f'<c r="{letter}{{0}}" s="1"/>' for letter in "BCDEFGHIJK")
rows = '<row r="1"><c r="A1"><v>42</v></c></row>'
rows += "".join(f'<row r="{number}">' + cells.format(number) + "</row>" for number in range(2, 100_002))
with zipfile.ZipFile("/tmp/plain.xlsx") as source:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            content = source.read(name).decode()
            if name.endswith("sheet1.xml"):
                start, end = content.index("<sheetData>") + 11, content.index("</sheetData>")
                content = content[:start] + rows + content[end:]
            target.writestr(name, content)
