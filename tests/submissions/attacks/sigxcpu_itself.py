# property: SIGXCPU that a program sends to itself is not the time limit
# verdict: RE
import os, signal
os.kill(os.getpid(), signal.SIGXCPU)
