"""A folder of workbooks for tools: no path leads out of it, and no link is followed."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from judge.console import visible
from judge.files.documents import MIB
from judge.tools.contract import ToolFaultError

MAX_FILE_BYTES = 64 * MIB
MAX_LISTED = 200
_SUFFIXES = (".xlsx", ".xlsm")
_MAX_DEPTH = 8
_NO_LINK = os.O_NOFOLLOW | os.O_CLOEXEC


class ToolFolder:
    """A folder in which tools read and write workbooks.

    The parts of a path are opened one by one, without following links, so that no path leads out of
    the folder even if the folder is changed at the same time.

    Args:
        path: the folder.
        read_only: whether writing is refused.

    Raises:
        ToolFaultError: there is no such folder.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path.resolve()
        self.read_only = read_only
        if not self.path.is_dir():
            raise ToolFaultError(f"{path}: there is no such folder", hint="Create it first.")

    def names(self) -> list[tuple[str, int]]:
        """Returns paths within the folder, and sizes in bytes, of the first workbooks."""
        listed: list[tuple[str, int]] = []
        for root, folders, files, descriptor in os.fwalk(self.path, follow_symlinks=False):
            depth = len(Path(root).relative_to(self.path).parts)
            folders[:] = sorted(name for name in folders if depth < _MAX_DEPTH)
            for name in sorted(files):
                if name.lower().endswith(_SUFFIXES):
                    with contextlib.suppress(OSError):
                        facts = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                        if stat.S_ISREG(facts.st_mode):
                            shown = str((Path(root) / name).relative_to(self.path))
                            listed.append((shown, facts.st_size))
                if len(listed) == MAX_LISTED:
                    return listed
        return listed

    def read(self, name: str) -> bytes:
        """Returns the bytes of a workbook.

        Raises:
            ToolFaultError: there is no such file in the folder, or it is not a workbook.
        """
        with self._parent(name) as (descriptor, last):
            try:
                file = os.open(last, os.O_RDONLY | os.O_NONBLOCK | _NO_LINK, dir_fd=descriptor)
            except OSError as error:
                raise _fault(name, error) from error
            with os.fdopen(file, "rb") as opened:
                status = os.fstat(file)
                if not stat.S_ISREG(status.st_mode):
                    raise ToolFaultError(f"{visible(name)} is not a regular file")
                if status.st_size > MAX_FILE_BYTES:
                    raise ToolFaultError(
                        f"{visible(name)} has {status.st_size:,} bytes; files of up to "
                        f"{MAX_FILE_BYTES:,} are opened"
                    )
                return opened.read(MAX_FILE_BYTES + 1)

    def write(self, name: str, data: bytes) -> None:
        """Writes a workbook, either completely or not at all.

        Raises:
            ToolFaultError: the folder is read-only, or the file cannot be written.
        """
        if self.read_only:
            raise ToolFaultError("nothing may be written: this folder is read-only")
        with self._parent(name) as (descriptor, last):
            beside = f".{secrets.token_hex(8)}.part"
            try:
                with contextlib.suppress(FileNotFoundError):
                    status = os.stat(last, dir_fd=descriptor, follow_symlinks=False)
                    if not stat.S_ISREG(status.st_mode):
                        raise ToolFaultError(f"{visible(name)} is not a regular file")
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
                file = os.open(beside, flags, 0o644, dir_fd=descriptor)
                try:
                    with os.fdopen(file, "wb") as opened:
                        opened.write(data)
                    os.replace(beside, last, src_dir_fd=descriptor, dst_dir_fd=descriptor)
                except OSError:
                    os.unlink(beside, dir_fd=descriptor)
                    raise
            except OSError as error:
                raise _fault(name, error) from error

    @contextlib.contextmanager
    def _parent(self, name: str) -> Iterator[tuple[int, str]]:
        """Opens the folder that contains a file; yields it and the last part of the path.

        Raises:
            ToolFaultError: the path leads out of the folder, or there is no such folder.
        """
        parts = self._parts(name)
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                try:
                    inner = os.open(
                        part, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=descriptor
                    )
                except OSError as error:
                    raise _fault(name, error) from error
                os.close(descriptor)
                descriptor = inner
            yield descriptor, parts[-1]
        finally:
            os.close(descriptor)

    def _parts(self, name: str) -> tuple[str, ...]:
        path = Path(name)
        if path.is_absolute() and path.is_relative_to(self.path):
            path = path.relative_to(self.path)
        parts = path.parts
        if path.is_absolute() or ".." in parts or not parts or not _is_name(name):
            raise ToolFaultError(
                f"{visible(name)!r:.200} is not in the folder",
                hint="Give a path within the folder, such as book.xlsx.",
            )
        if len(parts) > _MAX_DEPTH or not parts[-1].lower().endswith(_SUFFIXES):
            raise ToolFaultError(f"{visible(name)!r:.200} is not the path of an .xlsx workbook")
        return parts


def _is_name(text: str) -> bool:
    """Whether a file can have this name, which must not contain a NUL or a lone surrogate."""
    return "\0" not in text and text.encode("utf-8", "replace").decode() == text


def _fault(name: str, error: OSError) -> ToolFaultError:
    return ToolFaultError(f"{visible(name)!r:.200} cannot be opened: {error.strerror}")
