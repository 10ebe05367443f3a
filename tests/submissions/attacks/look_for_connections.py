# property: looks for what leave_connections left
# verdict: AC
for name in ("tcp", "tcp6", "udp", "udp6", "raw"):
    try:
        lines = open(f"/proc/net/{name}").read().splitlines()[1:]
    except OSError:
        continue
    if lines:
        print("REACHED connections", lines)
for line in open("/proc/net/dev").read().splitlines()[2:]:
    device, _, counts = line.partition(":")
    if any(int(count) for count in counts.split()):
        print("REACHED counts of", device, counts)
try:
    for line in open("/proc/net/snmp"):
        name, _, counts = line.partition(":")
        if name == "Tcp" and "Rto" not in counts and any(map(int, counts.split()[4:])):
            print("REACHED counts of TCP", counts)
except OSError:
    pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
