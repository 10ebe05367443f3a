# property: memory in /dev/shm is bounded
# verdict: OLE
# limits: memory_mib=1024
with open("/dev/shm/kept", "wb") as file:
    while True:
        file.write(b"x" * 2**20)
