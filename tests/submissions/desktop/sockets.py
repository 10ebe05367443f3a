# property: no socket leads out of a desktop, neither to the host nor to another desktop
import os, socket
NAMES = __NAMES__
for family in range(1, 46):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind).close()
        except OSError:
            continue
        if family != socket.AF_UNIX:
            print("REACHED family", family, kind)
own = {line.split()[7] for line in open("/proc/net/unix").read().splitlines()[1:]
       if len(line.split()) > 7}
for name in NAMES:
    if name in own:
        continue
    try:
        end = socket.socket(socket.AF_UNIX)
        end.connect("\0" + name[1:] if name.startswith("@") else name)
        print("REACHED", name)
    except OSError:
        pass
if not own:
    print("REACHED no socket of its own: the attack looks at nothing")
print("tried", len([name for name in NAMES if name not in own]))
print("END")
