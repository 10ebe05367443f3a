# property: a segmentation fault is an error of the program
# verdict: RE
import ctypes
ctypes.string_at(0)
