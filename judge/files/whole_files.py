"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

PART = ".part"
"""Ending of files that are being written."""


def write_whole(path: Path, text: str) -> None:
    """Writes a file beside its place and moves it there, folders made where they are missing.

    Raises:
        OSError: it cannot be written; nothing is left of it then.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=PART)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
