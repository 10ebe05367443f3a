# property: the number of folders is bounded, and they can be removed
# verdict: OLE
import os
while True:
    os.mkdir("d")
    os.chdir("d")
