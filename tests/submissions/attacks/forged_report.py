# property: a compile error cannot be faked
# verdict: RE
import os
for number in range(3, 64):
    try:
        os.write(number, b"c")
        print("REACHED", number)
    except OSError:
        pass
raise SyntaxError("feigned")
