"""Stores files of a run under the SHA-256 of their content, and hashes the judge's own modules."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from types import ModuleType

from judge.errors import JudgeError, StoreError
from judge.files.documents import read_regular
from judge.files.writing import naming_what_is_written, write_whole

_HASH = re.compile(r"[0-9a-f]{64}")


def digest_of_modules(*packages: ModuleType) -> str:
    """Returns the SHA-256 of all modules of packages and their subpackages, in hexadecimal digits.

    Raises:
        JudgeError: the modules of a package cannot be found, so changes would not be noticed.
    """
    whole = hashlib.sha256()
    for package in packages:
        before = whole.hexdigest()
        for folder in map(Path, package.__path__):
            for path in sorted(folder.rglob("*.py")):
                name = f"{package.__name__}/{path.relative_to(folder).as_posix()}"
                whole.update(name.encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
        if whole.hexdigest() == before:
            raise JudgeError(
                f"the modules of {package.__name__} cannot be found, so nothing can show whether "
                "stored results come from this code",
                hint="Install the package as files, not as an archive.",
            )
    return whole.hexdigest()


class HashedFolder:
    """A folder of files named by their hash. Safe to use from several threads.

    Args:
        folder: the folder; it is made with the first file.
        what: what messages call such a file.
        most_bytes: a longer file is not read.
    """

    def __init__(self, folder: Path, what: str, most_bytes: int) -> None:
        self._folder = folder
        self._what = what
        self._most_bytes = most_bytes

    def add(self, data: bytes, suffix: str) -> str:
        """Stores a file.

        Args:
            data: the content of the file.
            suffix: the suffix of its name, with the dot.

        Returns:
            The SHA-256 of the content, in hexadecimal digits.

        Raises:
            StoreError: it cannot be written.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest, suffix)
        with naming_what_is_written(path, StoreError):
            # Readers check the content against the name; an incomplete file is written again.
            if not path.is_file() or path.stat().st_size != len(data):
                self._folder.mkdir(parents=True, exist_ok=True)
                write_whole(path, data)
        return digest

    def path(self, sha256: str, suffix: str) -> Path:
        """Returns the path of a file, whether or not it exists.

        Raises:
            StoreError: the argument is not a hash.
        """
        if _HASH.fullmatch(sha256) is None:
            raise StoreError(f"{sha256[:80]!r} is not a {self._what} of this run")
        return self._folder / f"{sha256}{suffix}"

    def read(self, sha256: str, suffix: str) -> bytes | None:
        """Reads a file; None if it is missing or was changed.

        Raises:
            StoreError: the argument is not a hash, or the file cannot be read.
        """
        return read_hashed(self.path(sha256, suffix), sha256, most_bytes=self._most_bytes)


def read_hashed(path: Path, sha256: str, *, most_bytes: int) -> bytes | None:
    """Reads a file; None if it is missing or has a different hash.

    Args:
        path: the file.
        sha256: the expected hash.
        most_bytes: a longer file is refused.

    Raises:
        StoreError: the file cannot be read, or is too long.
    """
    data = read_regular(path, StoreError, most_bytes=most_bytes)
    return data if data is not None and hashlib.sha256(data).hexdigest() == sha256 else None
