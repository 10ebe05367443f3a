# property: the number of folders is bounded, and clearing them away works
# verdict: OLE
import os
while True:
    os.mkdir("d")
    os.chdir("d")
