# property: sockets of every family but the local one are refused
# verdict: AC
import socket
for family in range(0, 46):
    if family == socket.AF_UNIX:
        continue
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind)
            print("REACHED family", family, kind)
        except OSError:
            pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
