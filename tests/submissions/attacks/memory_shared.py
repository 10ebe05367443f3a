# property: shared anonymous memory is counted
# verdict: MLE
import mmap
kept = []
while True:
    region = mmap.mmap(-1, 16 * 2**20)
    region.write(b"x" * len(region))
    kept.append(region)
