# property: memory in files is bounded
# verdict: OLE
number = 0
while True:
    number += 1
    with open(f"/tmp/{number}", "wb") as file:
        file.write(b"x" * 2**20)
