# property: a segmentation fault is the program's own
# verdict: RE
import ctypes
ctypes.string_at(0)
