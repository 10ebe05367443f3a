# property: the driver survives every signal, and no other process can answer for it
import os, signal
for number in range(1, signal.NSIG):
    for target in (1, -1):
        if target == -1 and number in (signal.SIGKILL, signal.SIGSTOP):
            continue
        try:
            if target == 1:
                os.kill(1, number)
        except (OSError, ValueError):
            pass
try:
    handle = os.pidfd_open(1)
    signal.pidfd_send_signal(handle, signal.SIGKILL)
except OSError:
    pass
print("END", flush=True)
os.kill(-1, signal.SIGKILL)
