# property: an output over the limit is not sent
# verdict: OLE
with open("/mnt/data/output/1_1_output.xlsx", "wb") as file:
    file.write(b"PK" + b"x" * (17 * 2**20))
