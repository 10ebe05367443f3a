# property: a program cannot make the kernel send a signal to the warden
# verdict: AC
import fcntl, os, signal, time
for target in (1, os.getppid(), -1, -os.getpgid(os.getppid())):
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGIO):
        read_end, write_end = os.pipe()
        try:
            fcntl.fcntl(read_end, fcntl.F_SETOWN, target)
            fcntl.fcntl(read_end, fcntl.F_SETSIG, number)
            flags = fcntl.fcntl(read_end, fcntl.F_GETFL)
            fcntl.fcntl(read_end, fcntl.F_SETFL, flags | os.O_ASYNC)
            os.write(write_end, b"x")
        except OSError:
            pass
# and as many as it bears of those that it does take
end = time.monotonic() + 1
while time.monotonic() < end:
    for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGUSR1, signal.SIGPIPE, signal.SIGALRM):
        for target in {1, os.getppid()}:
            try:
                os.kill(target, number)
            except OSError:
                pass

import openpyxl
book = openpyxl.Workbook()
book.active["A1"] = 42
book.save("/mnt/data/output/1_1_output.xlsx")
