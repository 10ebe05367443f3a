"""Files that are there as a whole or not at all, and what is said where one cannot be written."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from judge.errors import JudgeError

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


@contextlib.contextmanager
def naming_what_is_written(
    path: Path, error: type[JudgeError] = JudgeError, *, kept: str = ""
) -> Iterator[None]:
    """Says which file could not be written: a full disk leaves no name in the system's error.

    Args:
        path: what is being written.
        error: what to raise.
        kept: what the hint adds, of what is there already.

    Raises:
        JudgeError: of the class ``error``; a file that is there already is left to the caller.
    """
    try:
        yield
    except (FileExistsError, BrokenPipeError):
        raise
    except OSError as problem:
        full = problem.errno in {errno.ENOSPC, errno.EDQUOT}
        reason = "the disk is full" if full else (problem.strerror or str(problem))
        hint = f"Make room and run the same command again{kept}." if full else None
        raise error(f"{path}: cannot be written: {reason}", hint=hint) from problem
