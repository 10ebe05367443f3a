# property: a single request far beyond the limit does no harm
# verdict: MLE
kept = bytearray(1 << 44)
