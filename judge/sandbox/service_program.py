"""Programs for the sandbox that are made of several modules: there is no ``judge`` inside."""

from __future__ import annotations

import functools
from importlib import resources

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
    """One text that runs the ``main`` of the last module, ready for ``Sandbox.service``.

    Once all are loaded, none can be imported any more: what the service runs finds no ``judge``.

    Args:
        modules: full names, in the order of their imports; they may also import
            :mod:`judge.sandbox.service_frames`, and otherwise only what there is inside.
    """
    return _TEMPLATE.format(sources={name: _text(name) for name in (_FRAMES, *modules)})


def _text(name: str) -> str:
    package, _, module = name.rpartition(".")
    return resources.files(package).joinpath(f"{module}.py").read_text(encoding="utf-8")
