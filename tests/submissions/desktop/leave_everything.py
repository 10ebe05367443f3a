# property: no desktop sees anything of another, at the same time or later
# other: look_around.py
import os, socket, subprocess, time
from Xlib import X, Xatom, display
for folder in ("/tmp", "/home", "/home/user", "/run", "/run/user", "/dev/shm", "/var/tmp", "/mnt"):
    try:
        open(f"{folder}/left-behind", "w").write("left-behind")
    except OSError:
        pass
if os.fork() == 0:
    os.setsid()
    screen = display.Display()
    root = screen.screen().root
    window = root.create_window(0, 0, 200, 200, 0, X.CopyFromParent)
    window.set_wm_name("left-behind")
    window.map()
    for name in ("CLIPBOARD", "PRIMARY", "SECONDARY"):
        window.set_selection_owner(screen.intern_atom(name), X.CurrentTime)
    for name in ("CUT_BUFFER0", "left-behind"):
        root.change_property(screen.intern_atom(name), Xatom.STRING, 8, b"left-behind")
    screen.sync()
    door = socket.socket(socket.AF_UNIX)
    door.bind("\0left-behind")
    door.listen()
    from gi.repository import Gio
    bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
    Gio.bus_own_name_on_connection(bus, "org.left.Behind", 0, None, None)
    open("/tmp/holds", "w").close()
    time.sleep(1000)
while not os.path.exists("/tmp/holds"):
    time.sleep(0.02)
print("END")
