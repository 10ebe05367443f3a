# property: exit code 0 without an output is not a success
# verdict: NO
import sys
sys.exit(0)
