"""Files of strangers that are read in the sandbox: printed sheets, databases, pages of PDF."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from judge.compare.cells.computing import Compute


class UnreadableFileError(Exception):
    """A file is not what it should be, or reading it took too much; the text says which."""


@runtime_checkable
class SealedFiles(Protocol):
    """Reads files inside the sandbox; what computes formulas there may do this as well."""

    def print_sheet(self, workbook: bytes, number: int) -> list[str]:
        """The lines of a sheet as LibreOffice writes them to a text file.

        Args:
            workbook: the package.
            number: 1-based number of the sheet.

        Raises:
            UnreadableFileError: the workbook cannot be printed.
            RecalcError: there is no LibreOffice, or it cannot be started.
        """
        ...

    def read_file(self, reader: str, data: bytes, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """What one of the readers of :mod:`judge.recalc.services.files` makes of a file.

        Raises:
            UnreadableFileError: the file cannot be read.
            RecalcError: the sandbox has no interpreter, or it cannot be started.
        """
        ...


def sealed(compute: Compute) -> SealedFiles | None:
    """The same object as a reader of files; None if it only computes."""
    return compute if isinstance(compute, SealedFiles) else None


class Remembering:
    """Reads each file once, however often it is needed.

    Args:
        files: reads them.
    """

    def __init__(self, files: SealedFiles) -> None:
        self._files = files
        self._outcomes: dict[tuple[str, bytes, str], Mapping[str, Any] | UnreadableFileError] = {}

    def print_sheet(self, workbook: bytes, number: int) -> list[str]:
        """The lines of a sheet."""
        return self._files.print_sheet(workbook, number)

    def read_file(self, reader: str, data: bytes, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a reader makes of a file, or made of it before."""
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
