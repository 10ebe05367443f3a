"""Files under the SHA-256 of their content: what a run keeps once, and the judge's own modules."""

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
    """SHA-256 of all modules of some packages and of those inside, in hexadecimal digits.

    Raises:
        JudgeError: a package has no modules here, so that changes of it could not be seen.
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
                f"the modules of {package.__name__} cannot be found, so results that are kept "
                "cannot be known to be those of this code",
                hint="Install the package as files, not as an archive.",
            )
    return whole.hexdigest()


class HashedFolder:
    """A folder of such files. Safe to use from several threads.

    Args:
        folder: made when the first file is.
        what: what messages call such a file.
        most_bytes: the most bytes of a file that is read.
    """

    def __init__(self, folder: Path, what: str, most_bytes: int) -> None:
        self._folder = folder
        self._what = what
        self._most_bytes = most_bytes

    def add(self, data: bytes, suffix: str) -> str:
        """Keeps a file.

        Args:
            data: its content.
            suffix: how its name ends, with the dot.

        Returns:
            The SHA-256 of the content, in hexadecimal digits.

        Raises:
            StoreError: it cannot be written.
        """
        digest = hashlib.sha256(data).hexdigest()
        path = self.path(digest, suffix)
        with naming_what_is_written(path, StoreError):
            # Its name is its content, which readers check; one that was cut off is rewritten.
            if not path.is_file() or path.stat().st_size != len(data):
                self._folder.mkdir(parents=True, exist_ok=True)
                write_whole(path, data)
        return digest

    def path(self, sha256: str, suffix: str) -> Path:
        """Where a file is, or will be.

        Raises:
            StoreError: that is not a hash.
        """
        if _HASH.fullmatch(sha256) is None:
            raise StoreError(f"{sha256[:80]!r} is not a {self._what} of this run")
        return self._folder / f"{sha256}{suffix}"

    def read(self, sha256: str, suffix: str) -> bytes | None:
        """The content of a file; None where it is missing, or is not what it was.

        Raises:
            StoreError: that is not a hash, or it cannot be read.
        """
        return read_hashed(self.path(sha256, suffix), sha256, most_bytes=self._most_bytes)


def read_hashed(path: Path, sha256: str, *, most_bytes: int) -> bytes | None:
    """The content of a file; None where it is missing, or its hash is another one.

    Args:
        path: the file.
        sha256: the hash that its content had.
        most_bytes: a longer file is refused.

    Raises:
        StoreError: it cannot be read, or is too long.
    """
    data = read_regular(path, StoreError, most_bytes=most_bytes)
    return data if data is not None and hashlib.sha256(data).hexdigest() == sha256 else None
