# property: no host name can be resolved
# verdict: AC
import socket
for name in ("example.org", "host.docker.internal", "metadata.google.internal", "gateway"):
    try:
        print("REACHED", socket.getaddrinfo(name, 80))
    except OSError:
        pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
