# property: memory of the main process is bounded
# verdict: MLE
# limits: memory_mib=256
kept = []
while True:
    kept.append(b"x" * 2**20)
