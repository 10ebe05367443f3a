"""Files of folders that somebody else wrote: links are not followed out, the amount is bounded."""

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


class Boundary:
    """The folder of a suite as it really is: what the suite names must not lead out of it.

    Args:
        root: the folder.

    Attributes:
        root: the folder, without links.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self._is_inside: dict[Path, bool] = {}

    def holds(self, path: Path) -> bool:
        """Whether a path is in the suite once its links are followed; it need not exist.

        Args:
            path: a path below :attr:`root`, without ``..``.
        """
        # Nearly all files of a folder share it: only that and links are worth resolving.
        resolved = path if path.is_symlink() else path.parent
        if resolved not in self._is_inside:
            real = Path(os.path.realpath(resolved))
            self._is_inside[resolved] = real.is_relative_to(self.root)
        return self._is_inside[resolved]

    def has_file(self, path: Path) -> bool:
        """Whether a path is a regular file of the suite."""
        try:
            return self.holds(path) and stat.S_ISREG(path.stat().st_mode)
        except (OSError, ValueError):
            return False


def is_plain_name(name: str) -> bool:
    """Whether a name is that of a file, and no path that leads elsewhere."""
    if name in {"", ".", ".."} or "\\" in name or "\0" in name:
        return False
    return name == Path(name).name


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

    for name, folders, names in os.walk(folder, onerror=refuse, followlinks=False):
        entries += len(folders) + len(names)
        if entries > MAX_ENTRIES:
            raise SubmissionError(
                f"{folder} holds more than {MAX_ENTRIES:,} files and folders",
                hint="name the folder of one run",
            )
        parent = Path(name)
        deeper = len(parent.relative_to(folder).parts) < MAX_DEPTH
        folders[:] = sorted(folders) if deeper else []
        for file_name in sorted(names):
            path = parent / file_name
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
