"""Programs that run *inside* the sandbox, around the calculation engines.

They open what a solution wrote, so they are passed to the sandbox as text and run isolated. There
is no ``judge`` inside: :func:`program_text` puts the shared modules into the text.
"""

from __future__ import annotations

import functools
import hashlib
from importlib import resources

_SHARED = (
    "common",
    "dialect",
    "match_arrays",
    "package",
    "slim",
    "reading",
    "folders",
    "children",
    "files",
)

_TEMPLATE = """\
import sys, types
for _name in ("judge", "judge.recalc", "judge.recalc.services"):
    sys.modules[_name] = types.ModuleType(_name)
    sys.modules[_name].__path__ = []
for _name, _text in {shared!r}:
    _module = types.ModuleType(_name)
    sys.modules[_name] = _module
    exec(compile(_text, _name, "exec"), _module.__dict__)
exec(compile({program!r}, {name!r}, "exec"), {{"__name__": "__main__"}})
"""


@functools.cache
def services_digest() -> str:
    """Changes whenever a service reads or rewrites anything differently."""
    texts = "".join(program_text(name) for name in PROGRAMS)
    return hashlib.sha256(texts.encode()).hexdigest()


PROGRAMS = ("office", "embedded")


def program_text(name: str) -> str:
    """The whole text of one service program, ready for ``Sandbox.service``.

    Args:
        name: ``office`` or ``embedded``.
    """
    folder = resources.files(__package__)

    def text(module: str) -> str:
        return folder.joinpath(f"{module}.py").read_text(encoding="utf-8")

    return _TEMPLATE.format(
        shared=[(f"{__package__}.{module}", text(module)) for module in _SHARED],
        program=text(name),
        name=f"{name}_service",
    )
