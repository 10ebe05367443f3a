"""How the trusted programs get into a sandbox: as source text over standard input.

A short boot program reads one frame with the text of the warden's modules and a configuration.
An image contains nothing of the judge, so it need not be rebuilt when the warden changes.
"""

from __future__ import annotations

import json
import struct
from functools import cache
from importlib import resources
from typing import Any

_PACKAGE = "judge.sandbox.warden"
_MODULES = (
    "frames",
    "kernel",
    "filter",
    "meters",
    "groups",
    "files",
    "world",
    "program",
    "case",
    "zygote",
    "service",
    "direct",
)
"""In the order of their imports."""

BOOT = """\
import json, os, sys, types
def read(size):
    data = b""
    while len(data) < size:
        chunk = os.read(0, size - len(data))
        if not chunk:
            os._exit(3)
        data += chunk
    return data
bundle = json.loads(read(int.from_bytes(read(4), "big")))
for name in bundle["packages"]:
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = []
for name, text in bundle["modules"].items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
    setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
sys.modules[bundle["entry"]].main(bundle["config"])
"""
"""Given to the interpreter with ``-c``."""


@cache
def _sources() -> dict[str, str]:
    folder = resources.files(_PACKAGE)
    return {
        f"{_PACKAGE}.{name}": folder.joinpath(f"{name}.py").read_text(encoding="utf-8")
        for name in _MODULES
    }


def boot_frame(entry: str, config: dict[str, Any]) -> bytes:
    """The first frame to send.

    Args:
        entry: ``zygote``, ``service`` or ``direct``.
        config: what its ``main`` takes.
    """
    parts = _PACKAGE.split(".")
    bundle = {
        "packages": [".".join(parts[: end + 1]) for end in range(len(parts))],
        "modules": _sources(),
        "entry": f"{_PACKAGE}.{entry}",
        "config": config,
    }
    payload = json.dumps(bundle).encode()
    return struct.pack(">I", len(payload)) + payload
