# property: no network connection leaves the sandbox
# verdict: AC
import socket
for family, address in (
    (socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("10.0.0.1", 80)),
    (socket.AF_INET, ("172.17.0.1", 2375)), (socket.AF_INET, ("169.254.169.254", 80)),
    (socket.AF_INET6, ("2606:4700:4700::1111", 53)),
):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            end = socket.socket(family, kind)
            end.settimeout(1)
            end.connect(address)
            end.send(b"x")
            print("REACHED", address)
        except OSError:
            pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
