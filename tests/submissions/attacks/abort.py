# property: an abort is an error of the program, not of the judge
# verdict: RE
import os
os.abort()
