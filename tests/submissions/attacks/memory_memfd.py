# property: memory in anonymous files is refused
# verdict: RE
import os
kept = os.memfd_create("kept")
while True:
    os.write(kept, b"x" * 2**20)
