# property: a sparse output of 10 GB is not read
# verdict: OLE
with open("/mnt/data/output/1_1_output.xlsx", "wb") as file:
    file.truncate(10 * 2**30)
