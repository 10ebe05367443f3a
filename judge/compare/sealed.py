"""Reads untrusted files in the sandbox: printed sheets, databases, pages of PDF files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from judge.compare.cells.computing import Compute


class UnreadableFileError(Exception):
    """A file is invalid, or reading it exceeded a limit; the message says which."""


@runtime_checkable
class SealedFiles(Protocol):
    """Reads files inside the sandbox; an engine pool that computes formulas may do this as well."""

    def print_sheet(self, workbook: bytes, number: int) -> list[str]:
        """Returns the lines of a sheet as LibreOffice writes them to a text file.

        Args:
            workbook: the bytes of the workbook.
            number: 1-based number of the sheet.

        Raises:
            UnreadableFileError: the workbook cannot be printed.
            RecalcError: there is no LibreOffice, or it cannot be started.
        """
        ...

    def read_file(self, reader: str, data: bytes, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Reads a file with one of the readers in :mod:`judge.recalc.services.files`.

        Raises:
            UnreadableFileError: the file cannot be read.
            RecalcError: the sandbox has no interpreter, or it cannot be started.
        """
        ...


def sealed(compute: Compute) -> SealedFiles | None:
    """Returns the same object as a reader of files; None if it can only compute formulas."""
    return compute if isinstance(compute, SealedFiles) else None


class FileCache:
    """Reads each file only once, however often it is requested.

    Args:
        files: the reader for files that were not read yet.
    """

    def __init__(self, files: SealedFiles) -> None:
        self._files = files
        self._outcomes: dict[tuple[str, bytes, str], Mapping[str, Any] | UnreadableFileError] = {}

    def print_sheet(self, workbook: bytes, number: int) -> list[str]:
        """Returns the lines of a sheet, from memory if it was printed before."""
        return self._files.print_sheet(workbook, number)

    def read_file(self, reader: str, data: bytes, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns what a reader reads from a file, from memory if it was read before."""
        key = reader, hashlib.sha256(data).digest(), json.dumps(options, sort_keys=True)
        if key not in self._outcomes:
            try:
                self._outcomes[key] = self._files.read_file(reader, data, options)
            except UnreadableFileError as error:
                self._outcomes[key] = error
        outcome = self._outcomes[key]
        if isinstance(outcome, UnreadableFileError):
            raise outcome
        return outcome
