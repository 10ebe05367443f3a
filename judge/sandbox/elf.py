"""Which shared libraries a program needs, according to its own loader."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path

from judge.errors import SandboxError

_MAGIC = b"\x7fELF"
_PT_INTERP = 3


def loader_of(program: Path) -> Path:
    """The dynamic loader that a 64-bit ELF program names.

    Raises:
        SandboxError: not a 64-bit ELF program.
    """
    data = program.read_bytes()
    if data[:4] != _MAGIC or data[4] != 2:
        raise SandboxError(f"{program} is not a 64-bit ELF program")
    order = "<" if data[5] == 1 else ">"
    (start,) = struct.unpack_from(f"{order}Q", data, 32)
    size, count = struct.unpack_from(f"{order}HH", data, 54)
    for position in range(start, start + size * count, size):
        (kind,) = struct.unpack_from(f"{order}I", data, position)
        if kind == _PT_INTERP:
            (offset,) = struct.unpack_from(f"{order}Q", data, position + 8)
            (length,) = struct.unpack_from(f"{order}Q", data, position + 32)
            return Path(data[offset : offset + length].rstrip(b"\0").decode())
    raise SandboxError(
        f"{program} is linked statically; the embedded sandbox needs a dynamic interpreter",
        hint="use --sandbox docker, or another Python",
    )


def libraries_of(files: Iterable[Path], loader: Path) -> set[Path]:
    """Every library that the loader would load for the files, under the names it looks for."""
    found: set[Path] = set()
    for file in files:
        with file.open("rb") as opened:
            if opened.read(4) != _MAGIC:
                continue
        listed = subprocess.run(
            [str(loader), "--list", str(file)], capture_output=True, text=True, check=False
        )
        for line in listed.stdout.splitlines():
            name, arrow, path = line.strip().partition(" => ")
            path = (path if arrow else name).rpartition(" (")[0]
            if path.startswith("/"):
                found.add(Path(path))
    return found
