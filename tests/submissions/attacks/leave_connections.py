# property: traces of a network in the kernel disappear with the case
# verdict: AC
# next: look_for_connections.py
# other: look_for_connections.py
import socket
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    try:
        door = socket.create_server((address, 43210), family=family)
        for _ in range(5):
            first = socket.create_connection((address, 43210))
            second, _ = door.accept()
            first.sendall(b"a message to the next case" * 100)
            first.close()  # this end is remembered for a minute
            second.close()
    except OSError:
        pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
