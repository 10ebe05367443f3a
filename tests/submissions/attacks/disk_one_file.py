# property: one file cannot fill more than the run may
# verdict: OLE
# limits: memory_mib=1024
with open("/tmp/kept", "wb") as file:
    while True:
        file.write(b"x" * 2**20)
