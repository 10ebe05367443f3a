# property: a text file is not a workbook
# verdict: IW
open("/mnt/data/output/1_1_output.xlsx", "w").write("A1\n42\n")
