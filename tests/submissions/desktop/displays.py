# property: there is no display but the desktop's own, and the driver cannot be controlled through it
import os, socket
reached = []
for number in range(64):
    for address in (f"/tmp/.X11-unix/X{number}", f"\0/tmp/.X11-unix/X{number}"):
        try:
            socket.socket(socket.AF_UNIX).connect(address)
            reached.append(number)
        except OSError:
            pass
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            socket.socket(family).connect((host, 6000 + number))
            print("REACHED a display over TCP", number)
        except OSError:
            pass
if set(reached) != {1}:
    print("REACHED displays", reached)
from Xlib import X, display
screen = display.Display()
root = screen.screen().root
# a file that the server would read for us, and a font path out of its folders
for path in ("/etc/shadow", "/proc/1/environ", "/root"):
    try:
        screen.set_font_path([path])
        screen.sync()
        if path in [str(each) for each in screen.get_font_path()]:
            print("REACHED a font path", path)
    except Exception:
        pass
picture = root.get_image(0, 0, 64, 64, X.ZPixmap, 0xFFFFFFFF)
if len(picture.data) != 64 * 64 * 4:
    print("REACHED more than the screen")
# memory that the server would share: no System V memory, and none of other processes
import ctypes
if ctypes.CDLL(None).shmget(0, 1 << 20, 0o1600) >= 0:
    print("REACHED System V memory")
print("END")
