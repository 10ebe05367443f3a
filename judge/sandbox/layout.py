"""The layout of every sandbox as seen from inside, whichever backend makes it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from types import MappingProxyType

from judge.core.limits import MIB, Limits
from judge.errors import SandboxError
from judge.sandbox.contract import RunRequest

HOME = "/home/solution"
SITE = "/opt/judge/site"
"""Folder of the packages that solutions can import."""
ENGINES = "/opt/judge/engines"
"""Folder of the calculation engines; only services have it on their import path."""
INTERPRETER = "/usr/bin/python3"
PYTHON_FLAGS = ("-s", "-P")
INODES = 16384
"""How many files and folders a case may make in its folders in memory."""
_WARM_MODULES = ("openpyxl", "openpyxl.packaging.extended", "encodings.cp437", "numpy")
"""Modules that most programs import; openpyxl and zipfile import the second and third when they
read a workbook."""
_USERS_OF_THEM = ("openpyxl", "numpy", "pandas", "matplotlib")
_HEAVY_MODULES = ("pandas",)
_SPARE_DISK_BYTES = 128 * MIB
_MAX_PATH_BYTES = 4096
_MAX_NAME_BYTES = 255
_SYSTEM = frozenset(
    {"bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "run", "sbin"}
) | {"sys", "usr", "var"}

ENVIRONMENT = MappingProxyType(
    {
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "LOGNAME": "solution",
        "OPENBLAS_NUM_THREADS": "1",
        "PATH": "/usr/bin:/bin",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONPATH": SITE,
        "TZ": "UTC",
        "USER": "solution",
    }
)
"""All environment variables of a solution. A fixed hash seed makes runs repeatable."""


def disk_bytes(limits: Limits) -> int:
    """How many bytes a run may have on disk at a time: twice its output, and some working space."""
    return 2 * limits.output_bytes + _SPARE_DISK_BYTES


def modules_to_warm(program: str) -> list[str]:
    """The slow modules that a program will probably import, since its source mentions them.

    They are imported once for all programs of a sandbox, before the first one that mentions them.
    """
    common = _WARM_MODULES if any(name in program for name in _USERS_OF_THEM) else ()
    return [*common, *(name for name in _HEAVY_MODULES if name in program)]


def folders_of(request: RunRequest) -> set[str]:
    """The top folders in which a run reads and writes.

    Raises:
        SandboxError: a path is not absolute, or is in one of the system's own folders.
    """
    paths: Iterable[str] = [*request.files, request.program_name]
    if request.collect is not None:
        paths = [*paths, request.collect.removesuffix("/")]
    tops = set()
    for path in paths:
        if not _is_plain(path):
            raise SandboxError(
                f"{path!r} is not a plain absolute path",
                hint="give the solution paths such as /mnt/data/input/1_7_input.xlsx",
            )
        if not can_be_placed(path):
            raise SandboxError(
                f"nothing can be placed at {path!r} inside a sandbox",
                hint="give the solution a path below a folder such as /mnt, /data or /tmp",
            )
        tops.add("/" + path.split("/")[1])
    return tops


def can_be_placed(path: str) -> bool:
    """Whether a file can be at a path inside a sandbox, outside the system's own folders."""
    top, _, below = path[1:].partition("/")
    return _is_plain(path) and bool(below) and top not in _SYSTEM


def _is_plain(path: str) -> bool:
    return (
        path.startswith("/")
        and posixpath.normpath(path) == path
        and "\0" not in path
        and len(path.encode("utf-8", "replace")) < _MAX_PATH_BYTES
        and all(len(part.encode("utf-8", "replace")) <= _MAX_NAME_BYTES for part in path.split("/"))
    )
