# property: an abort is the program's own
# verdict: RE
import os
os.abort()
