"""Packs trusted programs for a sandbox as source text, since there is no ``judge`` inside.

The warden is sent over standard input: a short boot program reads a frame with the source of its
modules and a configuration. An image does not contain anything of the judge, so it does not have to
be rebuilt when the warden changes. The modules of a service are joined into one program.
"""

from __future__ import annotations

import functools
import json
import struct
from functools import cache
from importlib import resources
from typing import Any

_PACKAGE = "judge.sandbox.warden"
_SHARED = ("kernel", "filter", "meters")
_MODULES = {
    "zygote": ("frames", *_SHARED, "groups", "files", "world", "program", "case", "zygote"),
    "service": (*_SHARED, "service"),
    "direct": (*_SHARED, "service", "direct"),
}
"""Entry -> the modules that it needs, in the order of their imports. Others would be compiled in
every sandbox, and would import more of the standard library."""

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
"""The boot program, which the interpreter gets with ``-c``."""


@cache
def _sources(entry: str) -> dict[str, str]:
    folder = resources.files(_PACKAGE)
    return {
        f"{_PACKAGE}.{name}": folder.joinpath(f"{name}.py").read_text(encoding="utf-8")
        for name in _MODULES[entry]
    }


def boot_frame(entry: str, config: dict[str, Any]) -> bytes:
    """The first frame to send.

    Args:
        entry: ``zygote``, ``service`` or ``direct``.
        config: the argument of its ``main``.
    """
    parts = _PACKAGE.split(".")
    bundle = {
        "packages": [".".join(parts[: end + 1]) for end in range(len(parts))],
        "modules": _sources(entry),
        "entry": f"{_PACKAGE}.{entry}",
        "config": config,
    }
    payload = json.dumps(bundle).encode()
    return struct.pack(">I", len(payload)) + payload


_FRAMES = "judge.sandbox.service_frames"

_TEMPLATE = """\
import sys, types
sources = {sources!r}
for name in sources:
    package = name.rpartition(".")[0]
    while package and package not in sys.modules:
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = []
        package = package.rpartition(".")[0]
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(sources[name], name, "exec", dont_inherit=True), module.__dict__)
for name in [name for name in sys.modules if name.split(".")[0] == "judge"]:
    del sys.modules[name]
module.main()
"""


@functools.cache
def program_text(*modules: str) -> str:
    """One program that runs the ``main`` of the last module, ready for ``Sandbox.service``.

    Once all modules are loaded, they can no longer be imported, so programs that the service runs
    do not find ``judge``.

    Args:
        modules: full names, in the order of their imports. They may import each other,
            :mod:`judge.sandbox.service_frames`, and modules that exist inside.
    """
    return _TEMPLATE.format(sources={name: _text(name) for name in (_FRAMES, *modules)})


def _text(name: str) -> str:
    package, _, module = name.rpartition(".")
    return resources.files(package).joinpath(f"{module}.py").read_text(encoding="utf-8")
