"""Sheets as they are printed: text files next to a workbook, named ``{stem}-{sheet}.csv``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath

from judge.core.submission import AnswerFile
from judge.errors import WorkbookError
from judge.files.documents import read_regular

_MAX_BYTES = 32 << 20
_MAX_FILES = 200


def prints_beside(workbook: Path) -> Mapping[str, Sequence[str]]:
    """Name of a sheet -> its lines, from the files next to a workbook.

    Raises:
        WorkbookError: a file is too large or cannot be read.
    """
    found = {}
    start = f"{workbook.stem}-"
    try:
        listed = sorted(
            each
            for each in workbook.parent.iterdir()
            if each.name.startswith(start) and each.suffix == ".csv"
        )
    except OSError:
        return {}
    for path in listed[:_MAX_FILES]:
        data = read_regular(path, WorkbookError, most_bytes=_MAX_BYTES) or b""
        lines = _lines(data)
        if lines is not None:
            found[path.stem[len(start) :]] = lines
    return found


def prints_of(files: Sequence[AnswerFile]) -> Mapping[str, Sequence[str]]:
    """Name of a sheet -> its lines, from what was handed in with a workbook, which is the first."""
    found = {}
    start = f"{PurePath(files[0].name).stem}-" if files else ""
    for file in files[1 : _MAX_FILES + 1]:
        name = PurePath(file.name)
        if name.suffix == ".csv" and name.name.startswith(start) and len(file.data) <= _MAX_BYTES:
            lines = _lines(file.data)
            if lines is not None:
                found[name.stem[len(start) :]] = lines
    return found


def _lines(data: bytes) -> list[str] | None:
    try:
        return data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        return None
