# property: a small archive that unpacks to gigabytes is not unpacked
# verdict: IW
# limits: cpu_s=60 wall_s=300
import zipfile
with zipfile.ZipFile("/mnt/data/output/1_1_output.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.writestr("[Content_Types].xml", "<Types/>")
    with archive.open("xl/workbook.xml", "w", force_zip64=True) as part:
        for _ in range(2048):
            part.write(b" " * 2**20)
