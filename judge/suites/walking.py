"""Lists the files of a stranger's folder: links are not followed, and the amount is bounded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from judge.errors import SubmissionError

MAX_DEPTH = 32
"""How many folders down; what is deeper is left out."""

MAX_ENTRIES = 500_000
"""Of 912 tasks with three cases and ten attempts, with everything that agents log."""


def regular_files(folder: Path) -> Iterator[Path]:
    """Every regular file of a folder and of the folders in it, in a fixed order.

    Args:
        folder: where to begin; it may be a link itself.

    Raises:
        SubmissionError: a folder cannot be listed, or there are too many entries.
    """
    entries = 0

    def refuse(error: OSError) -> None:
        raise SubmissionError(f"{error.filename} cannot be listed: {error.strerror}") from error

    for parent, folders, names in os.walk(folder, onerror=refuse, followlinks=False):
        entries += len(folders) + len(names)
        if entries > MAX_ENTRIES:
            raise SubmissionError(
                f"{folder} holds more than {MAX_ENTRIES:,} files and folders",
                hint="name the folder of one run",
            )
        place = Path(parent)
        deeper = len(place.relative_to(folder).parts) < MAX_DEPTH
        folders[:] = sorted(folders) if deeper else []
        for name in sorted(names):
            path = place / name
            if is_regular(path):
                yield path


def is_regular(path: Path) -> bool:
    """Whether there is a regular file of that name, and no link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether there is a folder of that name, and no link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
