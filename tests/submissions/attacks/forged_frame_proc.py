# property: descriptors of the warden cannot be opened through /proc
# verdict: NO
import os
for name in os.listdir("/proc"):
    if not name.isdigit() or int(name) == os.getpid():
        continue
    for number in [*range(0, 64), *range(95, 128)]:
        for mode in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):
            try:
                os.open(f"/proc/{name}/fd/{number}", mode | os.O_NONBLOCK)
                print("REACHED", name, number)
            except OSError:
                pass
