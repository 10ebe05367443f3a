"""The data folder of a server: bodies, suites, results directories, keys and locks.

A file is written and synced before the row that names it is committed, so that no row names a
missing file. After a day, a sweep removes files that no row names.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from judge.errors import StoreError
from judge.files.writing import naming_what_is_written, sync_folder, write_whole

_SUBFOLDERS = ("bodies", "suites", "results", "keys", "locks", "tmp")
_SECRET_BYTES = 32  # a key of HMAC-SHA-256
MIN_FREE_BYTES = 256 << 20
"""If less space is free, no upload is accepted and no judging is started."""


@dataclass(frozen=True, slots=True)
class StoredBody:
    """A stored body: its SHA-256 in hexadecimal digits, and its size in bytes."""

    sha256: str
    size: int


class DataFolder:
    """The folder that ``--data`` names.

    Args:
        path: path of the folder; :meth:`make` creates it and its subfolders.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Creates the folder and its subfolders; only their owner can read them.

        If an earlier version made the folder readable for everybody, its permissions are
        restricted.

        Raises:
            StoreError: it cannot be made.
        """
        if self.path.exists() and not self.path.is_dir():
            raise StoreError(f"{self.path}: is not a folder", hint="Name a folder with --data.")
        with naming_what_is_written(self.path, StoreError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            for path in (self.path, *(self.path / name for name in _SUBFOLDERS)):
                path.mkdir(mode=0o700, exist_ok=True)
            facts = self.path.stat()
            if facts.st_uid == os.geteuid() and facts.st_mode & stat.S_IRWXO:
                self.path.chmod(stat.S_IMODE(facts.st_mode) & ~stat.S_IRWXO)

    @property
    def database(self) -> Path:
        """The path of the SQLite file."""
        return self.path / "judge.db"

    def body(self, sha256: str) -> Path:
        """The path of the body with this hash."""
        return self.path / "bodies" / sha256

    def unpacked(self, sha256: str) -> Path:
        """The folder with the unpacked files of the archive with this hash."""
        return self.path / "bodies" / f"{sha256}.d"

    def suite(self, folder: str) -> Path:
        """The folder with the files of a revision; its name is in the row's column ``folder``."""
        return self.path / "suites" / folder

    def results(self, judging: str) -> Path:
        """The results directory of a judging."""
        return self.path / "results" / judging

    def lock(self, name: str) -> Path:
        """The lock file of the dispatcher with this name."""
        return self.path / "locks" / f"{name}.lock"

    def temporary(self) -> Path:
        """The folder of files that are still being written."""
        return self.path / "tmp"

    def free_bytes(self) -> int:
        """How many bytes this process can still write."""
        return shutil.disk_usage(self.path).free

    def has_space(self, needed_bytes: int = 0) -> bool:
        """Whether enough space stays free after this many bytes are accepted."""
        return self.free_bytes() - needed_bytes >= MIN_FREE_BYTES

    def secret(self, name: str) -> bytes:
        """A random secret of 32 bytes of this server, made when it is first needed."""
        path = self.path / "keys" / name
        with naming_what_is_written(path, StoreError):
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                write_whole(path, secrets.token_bytes(_SECRET_BYTES), durable=True)
                data = path.read_bytes()
        return data

    @contextmanager
    def receiving(self) -> Iterator[ReceivedBody]:
        """A body that arrives piece by piece; stored when :meth:`ReceivedBody.keep` is called."""
        descriptor_path = self.temporary() / f"body-{secrets.token_hex(16)}"
        with naming_what_is_written(descriptor_path, StoreError):
            try:
                with descriptor_path.open("xb") as file:
                    yield ReceivedBody(self, descriptor_path, file)
            finally:
                descriptor_path.unlink(missing_ok=True)


class ReceivedBody:
    """A body that is being received into the data folder, see :meth:`DataFolder.receiving`."""

    def __init__(self, folder: DataFolder, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.size = 0
        self._folder = folder
        self._file = file
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Appends a piece."""
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def flush(self) -> None:
        """Makes the bytes received so far readable at :attr:`path`."""
        self._file.flush()

    def keep(self) -> StoredBody:
        """Syncs the body and moves it to its final path."""
        self._file.flush()
        os.fsync(self._file.fileno())
        digest = self._hash.hexdigest()
        target = self._folder.body(digest)
        self.path.replace(target)
        sync_folder(target.parent)
        return StoredBody(digest, self.size)
