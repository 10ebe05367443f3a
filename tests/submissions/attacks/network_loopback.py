# property: the host's loopback interface cannot be reached
# verdict: AC
# limits: cpu_s=30 wall_s=300
import socket
for port in range(1, 65536):
    try:
        end = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    except OSError:
        continue
    end.settimeout(0.2)
    # a socket may happen to connect to itself
    if end.connect_ex(("127.0.0.1", port)) == 0 and end.getsockname() != end.getpeername():
        print("REACHED port", port)
    end.close()

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
