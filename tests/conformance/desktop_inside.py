"""Runs inside the root `desktop` as process 1: programs of others, and a screen for them.

As small as it can be, so that what holds is the sandbox's doing and not a driver's. Requests and
replies are JSON; see ``tests/conformance/desktop_place.py``.
"""

# ruff: noqa: PTH103, PTH108, PTH112, PTH114, PTH120, PTH123, PTH208, SIM105, PLC0415, PLW1510
# mypy: ignore-errors

import base64
import json
import os
import selectors
import shutil
import signal
import struct
import subprocess
import sys
import time

KEPT_BYTES = 1 << 16
FIRST_TO_GO = ("sh", "-c", 'echo 1000 > /proc/self/oom_score_adj; unset PWD; exec "$@"', "sh")
"""If memory runs out, the kernel ends the started programs before this process."""
ENVIRONMENT = {
    "HOME": "/home/user",
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
}
SCREEN = {
    "DISPLAY": ":1",
    "XDG_RUNTIME_DIR": "/run/user",
    "GSETTINGS_BACKEND": "memory",
    "SAL_USE_VCLPLUGIN": "gtk3",
    "GDK_BACKEND": "x11",
    "GTK_THEME": "Adwaita",
    "NO_AT_BRIDGE": "0",
}


def others():
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def sweep(_):
    """Ends all other processes, and removes every file."""
    counted = len(others())
    deadline = time.monotonic() + 100
    while others() and time.monotonic() < deadline:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        reap()
        time.sleep(0.002)
    for folder in ("/tmp", "/home/user", "/run", "/dev/shm"):
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            path = f"{folder}/{name}"
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
    return {"counted": counted, "left": len(others())}


def run(request):
    """Runs a program as an action is run: in its own process group, without our descriptors."""
    path = request.get("path", "/home/user/data/solution.py")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(request["program"])
    environment = {**ENVIRONMENT, **(SCREEN if request.get("screen") else {})}
    process = subprocess.Popen(
        [*FIRST_TO_GO, "python3", path],
        env=environment,
        cwd="/home/user",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    kept = b""
    deadline = time.monotonic() + request["seconds"]
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0 and process.poll() is None:
            if selector.select(min(left, 0.05)):
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                kept = (kept + chunk)[-KEPT_BYTES:]
                if not chunk:
                    time.sleep(0.005)
    late = process.poll() is None
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    code = process.wait()
    os.set_blocking(process.stdout.fileno(), False)
    rest = process.stdout.read(KEPT_BYTES) or b""
    process.stdout.close()
    return {"said": (kept + rest).decode(errors="replace"), "code": code, "late": late}


def start(request):
    """A screen with a window manager and buses, and LibreOffice if a file is to be opened."""
    environment = {**ENVIRONMENT, **SCREEN}
    os.makedirs("/tmp/.X11-unix", exist_ok=True)
    os.makedirs("/run/user", mode=0o700, exist_ok=True)

    def spawn(*command, **more):
        plain = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        return subprocess.Popen(
            [*FIRST_TO_GO, *command],
            env=environment,
            stderr=subprocess.DEVNULL,
            **{**plain, **more},
        )

    ready, answer = os.pipe()
    screen = ["Xvfb", ":1", "-screen", "0", "1024x768x24", "-nolisten", "tcp", "-noreset"]
    spawn(*screen, "-extension", "GLX", "-displayfd", str(answer), pass_fds=[answer])
    os.close(answer)
    with os.fdopen(ready) as number:
        number.readline()
    address = "--address=unix:path=/run/user/bus"
    bus = spawn(
        *("dbus-daemon", "--session", "--nofork", "--nopidfile", address, "--print-address=1"),
        stdout=subprocess.PIPE,
    )
    SCREEN["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().decode().strip()
    environment.update(SCREEN)
    spawn("/usr/libexec/at-spi-bus-launcher", "--launch-immediately")
    spawn("openbox")
    if "open" in request:
        spawn("soffice", "--norestore", "--nologo", "--nofirststartwizard", request["open"])
        deadline = time.monotonic() + 150
        while time.monotonic() < deadline:
            listed = subprocess.run(["wmctrl", "-l"], env=environment, capture_output=True)
            if request["title"].encode() in listed.stdout:
                return {"open": True}
            time.sleep(0.1)
        return {"open": False, "windows": listed.stdout.decode()}
    return {"open": True}


def place(request):
    os.makedirs(os.path.dirname(request["path"]), exist_ok=True)
    with open(request["path"], "wb") as file:
        file.write(base64.b64decode(request["data"]))
    return {}


def collect(request):
    from judge.sandbox.warden import files

    status, size, data = files.collect(request["path"], request["limit"])
    return {"status": status, "size": size, "data": base64.b64encode(data or b"").decode()}


def look(_):
    """Returns what this process can see of itself and of all others."""
    reap()
    return {"pid": os.getpid(), "others": len(others())}


def descriptors(_):
    """Returns the inodes of everything that leads to the judge."""
    ours = (sys.stdin.fileno(), sys.stdout.fileno(), 2)
    return {"inodes": [os.fstat(number).st_ino for number in ours]}


TASKS = {
    "descriptors": descriptors,
    "sweep": sweep,
    "run": run, "start": start, "place": place, "collect": collect, "look": look,
}  # fmt: skip

while head := sys.stdin.buffer.read(4):
    asked = json.loads(sys.stdin.buffer.read(struct.unpack(">I", head)[0]))
    try:
        answer = TASKS[asked["do"]](asked)
    except OSError as error:
        answer = {"failed": repr(error)}
    said = json.dumps(answer).encode()
    sys.stdout.buffer.write(struct.pack(">I", len(said)) + said)
    sys.stdout.buffer.flush()
