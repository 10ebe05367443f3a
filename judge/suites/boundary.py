"""Whether files that a suite names are its own: links must not lead out of its folder."""

from __future__ import annotations

import os
from pathlib import Path


class Boundary:
    """The folder of a suite as it really is.

    Args:
        root: the folder.

    Attributes:
        root: the folder, without links.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self._known: dict[Path, bool] = {}

    def holds(self, path: Path) -> bool:
        """Whether a path is in the suite once its links are followed; it need not exist.

        Args:
            path: a path below :attr:`root`, without ``..``.
        """
        # Nearly all files of a folder share it: only that and links are worth resolving.
        place = path if path.is_symlink() else path.parent
        if place not in self._known:
            self._known[place] = Path(os.path.realpath(place)).is_relative_to(self.root)
        return self._known[place]
