# property: memory in /dev/shm is bounded
# verdict: OLE
with open("/dev/shm/kept", "wb") as file:
    while True:
        file.write(b"x" * 2**20)
