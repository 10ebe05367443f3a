# property: memory of the main process is bounded
# verdict: MLE
kept = []
while True:
    kept.append(b"x" * 2**20)
