# property: looks for what leave_everything left
import os, socket, subprocess
from Xlib import X, Xatom, display
for folder, _, names in os.walk("/"):
    if not folder.startswith(("/proc", "/sys", "/usr")) and "left-behind" in names:
        print("REACHED", folder)
screen = display.Display()
root = screen.screen().root
for name in ("CLIPBOARD", "PRIMARY", "SECONDARY"):
    if screen.get_selection_owner(screen.intern_atom(name)) != X.NONE:
        print("REACHED", name)
for name in ("CUT_BUFFER0", "left-behind"):
    if root.get_full_property(screen.intern_atom(name), X.AnyPropertyType) is not None:
        print("REACHED a property", name)
if "left-behind" in subprocess.run(["wmctrl", "-l"], capture_output=True, text=True).stdout:
    print("REACHED a window")
try:
    socket.socket(socket.AF_UNIX).connect("\0left-behind")
    print("REACHED a socket")
except OSError:
    pass
from gi.repository import Gio, GLib
bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
names = bus.call_sync("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                      "ListNames", None, GLib.VariantType("(as)"), 0, 5000, None).unpack()[0]
if "org.left.Behind" in names:
    print("REACHED a name on the bus")
print("END")
