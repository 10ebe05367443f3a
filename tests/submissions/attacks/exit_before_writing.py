# property: exit code 0 without an output is no success
# verdict: NO
import sys
sys.exit(0)
