# property: an exit that skips all handlers is an exit
# verdict: NO
import os
os._exit(0)
