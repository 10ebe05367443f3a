# property: a small archive that unpacks to more than a gigabyte is not unpacked
# verdict: IW
# cause: inflates to
# limits: cpu_s=60 wall_s=300
import zipfile
with zipfile.ZipFile("/mnt/data/output/1_1_output.xlsx", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
    archive.writestr("[Content_Types].xml", "<Types/>")
    with archive.open("xl/workbook.xml", "w", force_zip64=True) as part:
        for _ in range(1025):
            part.write(b" " * 2**20)
