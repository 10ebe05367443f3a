# property: a program that a macro starts has no more rights than an action
import os, socket
said = []
facts = dict(line.split(":", 1) for line in open("/proc/self/status"))
rights = [facts[name].split()[0] for name in ("CapEff", "NoNewPrivs", "Seccomp")]
if rights != ["0000000000000000", "1", "2"] or os.getuid() == 0:
    said.append(f"REACHED rights {rights}")
for family in (socket.AF_INET, socket.AF_INET6, 16, 17, 40):
    try:
        socket.socket(family, socket.SOCK_DGRAM)
        said.append(f"REACHED family {family}")
    except OSError:
        pass
for path in ("/proc/1/mem", "/proc/1/fd/3", "/etc/passwd", "/usr/bin/python3"):
    try:
        os.open(path, os.O_WRONLY)
        said.append(f"REACHED {path}")
    except OSError:
        pass
open("/home/user/probed.tmp", "w").write("the macro ran " + " ".join(said))
os.rename("/home/user/probed.tmp", "/home/user/probed")
