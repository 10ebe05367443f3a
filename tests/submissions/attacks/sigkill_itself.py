# property: SIGKILL that a program sends to itself is not a kill for memory or time
# verdict: RE
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
