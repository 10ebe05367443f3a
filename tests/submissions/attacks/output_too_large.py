# property: an output over the limit is not sent
# verdict: OLE
# limits: output_mib=8
with open("/mnt/data/output/1_1_output.xlsx", "wb") as file:
    file.write(b"PK" + b"x" * (9 * 2**20))
