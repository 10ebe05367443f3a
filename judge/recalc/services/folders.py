"""Folders for one calculation each, removed completely when it has ended.

The temporary folder of a service has a limited size, and is used for every workbook that the
service computes. What one workbook leaves there would take space from the next, which may belong to
another submission.

Standard library only: this text goes into the sandbox.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile

from judge.recalc.services.common import CannotStartError

MIN_BYTES = 16 * 1024 * 1024
"""The temporary folder counts as full if it has less space than this."""

MIN_FILES = 256


class TemporaryFolder:
    """The temporary folder of this process, and whether it can still be relied on.

    If the folder is missing or full, the next workbook is not at fault: the caller gets
    :class:`CannotStartError`, and the whole service is replaced.
    """

    def __init__(self) -> None:
        self._at_first: int | None = None

    def check(self) -> None:
        """Makes sure that a calculation can begin.

        Raises:
            CannotStartError: the folder is missing or full, or half of its initial space is used,
                so something was left behind there.
        """
        free, files = self._room()
        if self._at_first is None:
            self._at_first = free
        if free < max(MIN_BYTES, self._at_first // 2) or files < MIN_FILES:
            raise CannotStartError(
                f"its temporary folder {tempfile.gettempdir()} is full: {free} bytes are free"
            )

    def is_full(self) -> bool:
        """Whether the current calculation may have failed because of a lack of space."""
        try:
            free, files = self._room()
        except CannotStartError:
            return True
        return free < MIN_BYTES or files < MIN_FILES

    def free_bytes(self) -> int:
        """How much space there is.

        Raises:
            CannotStartError: the folder is missing.
        """
        return self._room()[0]

    def _room(self) -> tuple[int, int]:
        """How many bytes and how many files there is space for."""
        try:
            facts = os.statvfs(tempfile.gettempdir())
        except OSError as error:
            raise CannotStartError(f"there is no temporary folder: {error}") from error
        files = facts.f_favail if facts.f_files else MIN_FILES
        return facts.f_bavail * facts.f_frsize, files


class Folder:
    """A folder for one calculation, removed by the process that made it.

    Args:
        prefix: what its name begins with.

    Raises:
        CannotStartError: it cannot be made.
    """

    def __init__(self, prefix: str) -> None:
        try:
            self.path = tempfile.mkdtemp(prefix=prefix)
        except OSError as error:
            raise CannotStartError(f"its temporary folder cannot be used: {error}") from error

    def enter(self) -> None:
        """Makes this folder the temporary one of this process and of those that it starts."""
        os.chdir(self.path)
        os.environ.update(TMPDIR=self.path, HOME=self.path)
        tempfile.tempdir = self.path

    def remove(self) -> None:
        """Removes the folder with everything in it; safe to call twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        if os.path.lexists(self.path):
            _unlock(self.path)
            shutil.rmtree(self.path, ignore_errors=True)


def _unlock(path: str) -> None:
    """Makes locked folders removable."""
    # Top down: the content of a locked folder is visible once it is unlocked.
    for folder, below, _ in os.walk(path):
        for each in (folder, *(os.path.join(folder, name) for name in below)):  # noqa: PTH118
            if not os.path.islink(each):  # noqa: PTH114
                with contextlib.suppress(OSError):
                    os.chmod(each, stat.S_IRWXU)  # noqa: PTH101


def write_book(folder: str, workbook: bytes) -> str:
    """Writes a workbook for an engine that reads from a file; returns the file's path.

    Raises:
        CannotStartError: there is no space for it.
    """
    path = os.path.join(folder, "book.xlsx")  # noqa: PTH118 - a string is needed
    try:
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(workbook)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(path)  # noqa: PTH107
        why = errno.errorcode.get(error.errno or 0, "an error")
        raise CannotStartError(f"the workbook cannot be written for the engine ({why})") from error
    return path
