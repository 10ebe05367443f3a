# property: one file cannot fill more than the run may
# verdict: OLE
with open("/tmp/kept", "wb") as file:
    while True:
        file.write(b"x" * 2**20)
