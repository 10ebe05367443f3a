# property: no descriptor of the protocol is open in a solution
# verdict: NO
import os, struct
frame = struct.pack(">I", 2) + b"{}"
for number in range(3, 4096):
    try:
        os.write(number, frame)
        print("REACHED descriptor", number)
    except OSError:
        pass
