# property: the number of files is bounded
# verdict: OLE
number = 0
while True:
    number += 1
    open(f"/tmp/{number}", "w").close()
