# property: files without a name count too
# verdict: OLE
import os, time
kept = []
while True:
    fd = os.open("/tmp/kept", os.O_CREAT | os.O_RDWR, 0o600)
    os.unlink("/tmp/kept")
    try:
        for _ in range(8):
            os.write(fd, b"x" * 2**20)
    except OSError:
        time.sleep(2)  # what has no name is gone with its process: nobody could see it then
        raise
    kept.append(fd)
