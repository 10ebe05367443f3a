# property: no local socket of the host is visible
# verdict: AC
import socket
for line in open("/proc/net/unix").read().splitlines()[1:]:
    parts = line.split()
    if len(parts) < 8:
        continue
    name = parts[7]
    try:
        end = socket.socket(socket.AF_UNIX)
        end.connect("\0" + name[1:] if name.startswith("@") else name)
        print("REACHED", name)
    except OSError:
        pass
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
             "/run/dbus/system_bus_socket", "/run/systemd/private"):
    try:
        end = socket.socket(socket.AF_UNIX)
        end.connect(path)
        print("REACHED", path)
    except OSError:
        pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
