"""Versions of engines, remembered as long as the root that contains them stays the same.

Asking an engine for its version starts it, which takes longer than all the rest of a command that
finds every case already judged.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from judge.files.documents import read_kept
from judge.files.writing import write_whole


class VersionBook:
    """Engine -> version, on disk, one file for each root.

    If a file cannot be read or written, that only costs the time to ask the engines again.

    Args:
        folder: where the files are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, root: str) -> Mapping[str, str]:
        """What was noted for a root; empty if nothing was.

        Args:
            root: its digest.
        """
        noted = read_kept(self._path(root))
        if not isinstance(noted, dict):
            return {}
        return {str(name): str(version) for name, version in noted.items()}

    def put(self, root: str, versions: Mapping[str, str]) -> None:
        """Notes what the engines of a root reported."""
        with contextlib.suppress(OSError):
            path = self._path(root)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, json.dumps(dict(versions)).encode())

    def _path(self, root: str) -> Path:
        return self._folder / f"{hashlib.sha256(root.encode()).hexdigest()[:32]}.json"
