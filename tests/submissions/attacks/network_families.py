# property: sockets that pass by the network namespace are refused
# verdict: AC
import socket
for family in range(0, 46):
    if family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
        continue
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind)
            print("REACHED family", family, kind)
        except OSError:
            pass
for kind in (socket.AF_INET, socket.AF_INET6):
    try:
        socket.socket(kind, socket.SOCK_RAW, 1)
        print("REACHED raw sockets")
    except OSError:
        pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
