# property: a single file cannot exceed the disk limit of the run
# verdict: OLE
with open("/tmp/kept", "wb") as file:
    while True:
        file.write(b"x" * 2**20)
