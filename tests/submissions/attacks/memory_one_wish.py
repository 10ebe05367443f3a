# property: one wish far beyond the bound does no harm
# verdict: MLE
kept = bytearray(1 << 44)
