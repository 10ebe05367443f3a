# property: the memory limit applies to the whole process tree
# verdict: MLE
import os, time
for _ in range(16):
    if os.fork() == 0:
        kept = b"x" * (40 * 2**20)
        time.sleep(1000)
os.wait()  # for the first that is killed
