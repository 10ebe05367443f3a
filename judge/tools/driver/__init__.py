"""Programs that run *inside* the sandbox and execute an agent's calls; the judge trusts none.

The driver is process 1 of its root. It starts a Python interpreter, a shell, a program that draws
workbooks, and MCP servers, each when it is first needed, and relays between them and the judge.
The driver limits what it reads from them, before anything is parsed.
"""

from __future__ import annotations

import functools
import hashlib
import json

from judge.sandbox.bundle import program_text

_DRIVER = (
    "judge.sandbox.warden.frames",
    "judge.sandbox.warden.files",
    "judge.tools.driver.children",
    "judge.tools.driver.shell",
    "judge.tools.driver.main",
)
_DRAWING = (
    *(f"judge.recalc.services.{name}" for name in ("common", "dialect", "folders")),
    *(f"judge.recalc.services.{name}" for name in ("match_arrays", "package", "reading")),
    *(f"judge.recalc.services.{name}" for name in ("slim", "office")),
    "judge.tools.driver.drawing",
)
_OWN = "judge.tools.driver"


def driver_text() -> str:
    """Returns the text of the driver, for ``Sandbox.service``."""
    return program_text(*_DRIVER)


@functools.cache
def helper_texts() -> dict[str, str]:
    """Returns the source text of the programs that the driver starts, by name."""
    return {
        "python": program_text(f"{_OWN}.interpreter"),
        "drawing": program_text(*_DRAWING),
        "view_xlsx": program_text(f"{_OWN}.view_xlsx"),
    }


@functools.cache
def driver_digest() -> str:
    """Returns a hash of the programs that run inside."""
    text = json.dumps([driver_text(), helper_texts()])
    return hashlib.sha256(text.encode()).hexdigest()
