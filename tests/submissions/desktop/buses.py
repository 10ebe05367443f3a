# property: there is no bus but the desktop's own, and programs that it starts have no more rights than actions
import os, socket
from gi.repository import Gio, GLib
for path in ("/run/dbus/system_bus_socket", "/var/run/dbus/system_bus_socket",
             "/run/user/0/bus", "/run/user/1001/bus", "/run/systemd/private"):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print("REACHED", path)
    except OSError:
        pass
try:
    Gio.bus_get_sync(Gio.BusType.SYSTEM, None)
    print("REACHED the system bus")
except GLib.Error:
    pass
bus = Gio.bus_get_sync(Gio.BusType.SESSION, None)
def ask(method, arguments, kind):
    return bus.call_sync("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                         method, arguments, GLib.VariantType(kind), 0, 3000, None).unpack()[0]
started = 0
for name in ask("ListActivatableNames", None, "(as)"):
    try:
        ask("StartServiceByName", GLib.Variant("(su)", (name, 0)), "(u)")
        started += 1
    except GLib.Error:
        pass
print("started", started, "services")
def rights(process):
    facts = dict(line.split(":", 1) for line in open(f"/proc/{process}/status"))
    return [facts[name].split() for name in
            ("Uid", "Gid", "Groups", "CapEff", "CapPrm", "CapBnd", "NoNewPrivs", "Seccomp")]
own = rights("self")
for process in filter(str.isdigit, os.listdir("/proc")):
    try:
        if rights(process) != own:
            print("REACHED other rights:", process, rights(process))
    except OSError:
        pass
owner = ask("GetConnectionUnixProcessID", GLib.Variant("(s)", ("org.freedesktop.DBus",)), "(u)")
if owner == 1:
    print("REACHED a bus of process 1")
print("END")
