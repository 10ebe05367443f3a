# property: a program cannot make the kernel kill the warden instead of itself
# verdict: MLE
import os, subprocess, sys
def calm():
    try:
        open("/proc/self/oom_score_adj", "w").write("-1000")
    except OSError:
        try:
            open("/proc/self/oom_score_adj", "w").write("0")
        except OSError:
            pass
calm()
hog = """
try:
    open("/proc/self/oom_score_adj", "w").write("0")
except OSError:
    pass
kept = []
while True:
    kept.append(b"x" * 2**20)
"""
subprocess.run([sys.executable, "-c", hog])
