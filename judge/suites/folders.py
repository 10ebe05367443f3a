"""Lists folders that somebody else wrote, with size limits, and follows no links out of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from judge.errors import SubmissionError

MAX_DEPTH = 32
"""How many levels of folders are searched; deeper files are ignored."""

MAX_ENTRIES = 500_000
"""How many files a folder may hold; 912 tasks x 3 cases x 10 attempts fit, with agents' logs."""


class Boundary:
    """The real folder of a suite, which no path that the suite names may leave.

    Args:
        root: the folder.

    Attributes:
        root: the folder, without links.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self._is_inside: dict[Path, bool] = {}

    def holds(self, path: Path) -> bool:
        """Whether a path is in the suite after its links are followed; it need not exist.

        Args:
            path: any path; an absolute one outside :attr:`root`, or one that leaves it by ``..``
                or by a link, is not in the suite.
        """
        # Resolving is slow: it is done once for each folder, and for links.
        resolved = path if path.name == ".." or path.is_symlink() else path.parent
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


def inner_path(text: str) -> PurePosixPath | None:
    """The path that a suite names, relative to one of its folders.

    Args:
        text: the path, with ``/`` between the names.

    Returns:
        None if it is absolute, contains ``..`` or cannot be the name of a file.
    """
    path = PurePosixPath(text)
    return None if path.is_absolute() or ".." in path.parts or "\0" in text else path


def is_plain_name(name: str) -> bool:
    """Whether a name is a plain file name, and not a path."""
    if name in {"", ".", ".."} or "\\" in name or "\0" in name:
        return False
    return name == Path(name).name


def regular_files(folder: Path) -> Iterator[Path]:
    """Yields every regular file below a folder, in a fixed order.

    Args:
        folder: the folder; it may itself be a link.

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
    """Whether a path is a regular file, and not a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether a path is a folder, and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
