"""Programs that run *inside* the sandbox and make up a desktop: none of this is trusted outside.

The driver starts a screen, its windows and the spreadsheet program, reads them, and has actions
performed by another process, the actor. There is no ``judge`` inside: :func:`program_text` puts
the modules into one text, which ``Sandbox.service`` takes. Only what needs nothing but the
standard library (``calls``, ``permitted``, ``gui_values``, ``gui_only``, ``nodes``) is imported by
the judge as well.
"""

from __future__ import annotations

import functools
import hashlib
import json
from importlib import resources

_WARDEN = ("frames", "kernel", "files")
_DRIVER = (
    "settings",
    "guard",
    "calls",
    "permitted",
    "gui_values",
    "gui_only",
    "keys",
    "actor",
    "hands",
    "processes",
    "nodes",
    "screen",
    "layout",
    "bus",
    "cells",
    "tree",
    "marks",
    "acting",
    "desk",
    "main",
)
"""In the order of their imports."""

_TEMPLATE = """\
import json, sys, types
bundle = json.loads({bundle!r})
for name in bundle:
    package = name.rpartition(".")[0]
    while package and package not in sys.modules:
        sys.modules[package] = types.ModuleType(package)
        sys.modules[package].__path__ = []
        package = package.rpartition(".")[0]
for name, text in bundle.items():
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)
    setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
sys.modules["judge.desktop.driver.main"].main(bundle)
"""


@functools.cache
def program_text() -> str:
    """The whole text of the driver, ready for ``Sandbox.service``."""
    bundle = {}
    for package, modules in (("judge.sandbox.warden", _WARDEN), (__package__, _DRIVER)):
        folder = resources.files(package)
        for name in modules:
            bundle[f"{package}.{name}"] = folder.joinpath(f"{name}.py").read_text(encoding="utf-8")
    return _TEMPLATE.format(bundle=json.dumps(bundle))


@functools.cache
def driver_digest() -> str:
    """Changes whenever the driver does."""
    return hashlib.sha256(program_text().encode()).hexdigest()[:16]
