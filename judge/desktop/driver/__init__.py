"""Programs that run *inside* the sandbox and make up a desktop; the judge does not trust them.

The driver starts a screen, its windows and the spreadsheet program, and reads them. Another
process, the actor, performs actions. The package ``judge`` is not installed inside:
:func:`program_text` joins the modules to one program text for ``Sandbox.service``. The judge itself
only imports the modules that need nothing but the standard library (``calls``, ``permitted``,
``gui_values``, ``gui_only``, ``nodes``).
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
"""The modules of the driver, in the order in which they are imported."""

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
    """Returns the whole program text of the driver, ready for ``Sandbox.service``."""
    bundle = {}
    for package, modules in (("judge.sandbox.warden", _WARDEN), (__package__, _DRIVER)):
        folder = resources.files(package)
        for name in modules:
            bundle[f"{package}.{name}"] = folder.joinpath(f"{name}.py").read_text(encoding="utf-8")
    return _TEMPLATE.format(bundle=json.dumps(bundle))


@functools.cache
def driver_digest() -> str:
    """Returns a digest that changes whenever the driver changes."""
    return hashlib.sha256(program_text().encode()).hexdigest()[:16]
