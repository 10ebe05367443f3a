"""A separate program that joins control groups, makes a user namespace and becomes bubblewrap.

    python -I -S launcher.py [group FILE]… [map FILE TEXT]… -- COMMAND…

It uses only the standard library, and as little of it as possible: each sandbox begins with this
program, and to import ``json`` would double its processor time. If a user namespace has more than
one user, a privileged process outside it has to write its map, so a helper is forked before the
namespace is made.
"""

from __future__ import annotations

import os
import sys

_CLONE_NEWUSER = 0x10000000


def _enter_namespace(maps: dict[str, str]) -> None:
    import ctypes  # noqa: PLC0415  not needed without a namespace

    outer = os.getpid()
    made_read, made_write = os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(made_write)
        if os.read(made_read, 1) != b".":
            os._exit(1)
        for name, text in maps.items():
            with open(f"/proc/{outer}/{name}", "w") as file:  # noqa: PTH123 - no imports to spare
                file.write(text)
        os._exit(0)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER) < 0:
        raise OSError(ctypes.get_errno(), "no user namespace can be made")
    os.write(made_write, b".")
    os.close(made_read)
    os.close(made_write)
    _, status = os.waitpid(helper, 0)
    if status != 0:
        raise OSError("the map of the user namespace was refused")
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)


def main() -> None:
    """Joins the groups, makes the namespace, and becomes the command."""
    groups: list[str] = []
    maps: dict[str, str] = {}
    words = sys.argv[1:]
    while (word := words.pop(0)) != "--":
        if word == "group":
            groups.append(words.pop(0))
        else:
            name = words.pop(0)
            maps[name] = words.pop(0)
    for group in groups:
        with open(group, "w") as file:  # noqa: PTH123 - no imports to spare
            file.write("0")
    if maps:
        _enter_namespace(maps)
    os.execv(words[0], words)  # noqa: S606 - the purpose of this program


if __name__ == "__main__":
    main()
