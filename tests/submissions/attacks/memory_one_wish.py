# property: one wish far beyond the bound does no harm
# verdict: MLE
# limits: memory_mib=256
kept = bytearray(1 << 44)
