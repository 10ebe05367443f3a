"""Total sales of each month on a new sheet."""

import pandas

table = pandas.read_excel("/mnt/data/SalesRep.xlsx", sheet_name="Sheet1")
totals = table.iloc[:, 1:].sum()
result = pandas.DataFrame({"Month": totals.index})
# Last step
result["Total"] = totals.to_numpy()
# Save
with pandas.ExcelWriter("/mnt/data/SalesRep_output.xlsx", engine="openpyxl") as writer:
    result.to_excel(writer, sheet_name="Sheet2", index=False)
    table.to_excel(writer, sheet_name="Sheet1", index=False)
