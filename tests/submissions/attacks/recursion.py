# property: recursion to death is the program's own
# verdict: RE
import sys
sys.setrecursionlimit(10**9)
class Endless:
    def __repr__(self):
        return repr(self)
repr(Endless())
