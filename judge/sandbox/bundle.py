"""Packs trusted programs for a sandbox as source text, since there is no ``judge`` inside.

The warden is sent over standard input: a short boot program reads a frame with the source of its
modules and a configuration. An image does not contain anything of the judge, so it does not have to
be rebuilt when the warden changes. The modules of a service are joined into one program.

If the interpreter inside is of the judge's own version, the warden need not be compiled there: its
modules are also sent as byte code, which the judge's interpreter keeps in ``__pycache__``.
"""

from __future__ import annotations

import base64
import functools
import json
import marshal
import struct
import sys
import zlib
from functools import cache
from importlib import resources
from importlib.util import MAGIC_NUMBER, find_spec
from types import CodeType
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
import base64, importlib.util, json, marshal, os, sys, types, zlib
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
ready = bundle["compiled"].get(importlib.util.MAGIC_NUMBER.hex(), {})
for name, text in bundle["modules"].items():
    module = sys.modules[name] = types.ModuleType(name)
    if name in ready:
        code = marshal.loads(zlib.decompress(base64.b64decode(ready[name])))
    else:
        code = compile(text, name, "exec", dont_inherit=True)
    exec(code, module.__dict__)
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


@cache
def _compiled(entry: str) -> dict[str, dict[str, str]]:
    """The modules' byte code: number of its version -> module -> compressed code."""
    if sys.flags.optimize:  # it would have no assertions
        return {}
    return {MAGIC_NUMBER.hex(): {name: _byte_code(name) for name in _sources(entry)}}


def _byte_code(module: str) -> str:
    spec = find_spec(module)
    assert spec is not None
    code = spec.loader.get_code(module)  # type: ignore[union-attr]
    return base64.b64encode(zlib.compress(marshal.dumps(_named(code, module)))).decode()


def _named(code: CodeType, name: str) -> CodeType:
    """The code as if it had been compiled inside: it does not tell where the judge is installed."""
    constants = (
        _named(part, name) if isinstance(part, CodeType) else part for part in code.co_consts
    )
    return code.replace(co_filename=name, co_consts=tuple(constants))


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
        "compiled": _compiled(entry),
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
