# property: exit code 137 is not a kill for memory
# verdict: RE
import os
os._exit(137)
