# property: a crash by recursion is an error of the program
# verdict: RE
import sys
sys.setrecursionlimit(10**9)
class Endless:
    def __repr__(self):
        return repr(self)
repr(Endless())
