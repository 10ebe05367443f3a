# property: devices cannot be made
# verdict: RE
import os
os.mknod("/mnt/data/output/1_1_output.xlsx", 0o20666, os.makedev(1, 5))
