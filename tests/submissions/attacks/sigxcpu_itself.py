# property: SIGXCPU by its own hand is not the time limit
# verdict: RE
import os, signal
os.kill(os.getpid(), signal.SIGXCPU)
