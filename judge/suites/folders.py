"""Reads folders that somebody else wrote, with size limits, and follows no links out of them.

An answer of several files is a folder, or a recorded response with files next to it. It is judged
and stored as one file, a zip that :mod:`judge.files.packed_folder` makes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from judge.errors import JudgeError, SubmissionError
from judge.files.documents import MalformedError, dump_json, parse_json, read_regular
from judge.files.packed_folder import MAX_BYTES, files_below, packed

MAX_DEPTH = 32
"""How many levels of folders are searched; deeper files are ignored."""

MAX_ENTRIES = 500_000
"""How many files a folder may hold; 912 tasks x 3 cases x 10 attempts fit, with agents' logs."""


class Boundary:
    """The real path of the suite's folder; no path in the suite may lead out of it.

    Args:
        root: the folder.

    Attributes:
        root: the folder, without links.
    """

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.realpath(root))
        self._is_inside: dict[Path, bool] = {}

    def holds(self, path: Path) -> bool:
        """Whether a path is in the suite after links are followed, even if it does not exist.

        Args:
            path: any path; an absolute one outside :attr:`root`, or one that leaves it by ``..``
                or by a link, is not in the suite.
        """
        # Resolving is slow: it is done once for each folder, and for links.
        resolved = path if path.name == ".." or path.is_symlink() else path.parent
        if resolved not in self._is_inside:
            real = Path(os.path.realpath(resolved))
            self._is_inside[resolved] = real.is_relative_to(self.root)
        return self._is_inside[resolved]

    def has_file(self, path: Path) -> bool:
        """Whether a path is a regular file of the suite."""
        try:
            return self.holds(path) and stat.S_ISREG(path.stat().st_mode)
        except (OSError, ValueError):
            return False


def inner_path(text: str) -> PurePosixPath | None:
    """The path that a suite names, relative to one of its folders.

    Args:
        text: the path, with ``/`` between the names.

    Returns:
        None if it is absolute, contains ``..`` or cannot be the name of a file.
    """
    path = PurePosixPath(text)
    return None if path.is_absolute() or ".." in path.parts or "\0" in text else path


def is_plain_name(name: str) -> bool:
    """Whether a name is a plain file name, and not a path."""
    if name in {"", ".", ".."} or "\\" in name or "\0" in name:
        return False
    return name == Path(name).name


def regular_files(folder: Path) -> Iterator[Path]:
    """Yields every regular file below a folder, in a fixed order.

    Args:
        folder: the folder; it may itself be a link.

    Raises:
        SubmissionError: a folder cannot be listed, or there are too many entries.
    """
    entries = 0

    def refuse(error: OSError) -> None:
        raise SubmissionError(f"{error.filename} cannot be listed: {error.strerror}") from error

    for name, folders, names in os.walk(folder, onerror=refuse, followlinks=False):
        entries += len(folders) + len(names)
        if entries > MAX_ENTRIES:
            raise SubmissionError(
                f"{folder} holds more than {MAX_ENTRIES:,} files and folders",
                hint="name the folder of one run",
            )
        parent = Path(name)
        deeper = len(parent.relative_to(folder).parts) < MAX_DEPTH
        folders[:] = sorted(folders) if deeper else []
        for file_name in sorted(names):
            path = parent / file_name
            if is_regular(path):
                yield path


def is_regular(path: Path) -> bool:
    """Whether a path is a regular file, and not a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether a path is a folder, and not a link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except (OSError, ValueError):
        return False


REPLY = "reply.json"
"""Name of the file, in an answer's folder, that holds the typed reply."""

_PARSED = "parsed_response"
_RECORD = frozenset({"task_id", "raw_response", "stop_reason"})
"""Fields that a response recorded by IB-bench has in addition to its parsed reply."""


def read_answer(path: Path, error: type[JudgeError], *, max_bytes: int = MAX_BYTES) -> bytes | None:
    """Reads an answer, as the bytes that are judged.

    Args:
        path: a file, a folder, or an IB-bench response that names workbooks next to it.
        error: class of the error to raise.
        max_bytes: size limit of each file.

    Returns:
        None if there is no such file.

    Raises:
        JudgeError: of the class ``error``: it cannot be read, or is too large.
    """
    try:
        if path.is_dir():
            return packed(files_below(path))
    except JudgeError as problem:
        raise error(problem.message) from problem
    data = read_regular(path, error, max_bytes=max_bytes)
    if data is None or path.suffix != ".json":
        return data
    record = _record(data)
    if record is None:
        return data
    files = {REPLY: dump_json(record[_PARSED]).encode()}
    listed = record.get("output_files")
    for name in listed if isinstance(listed, list) else []:
        if isinstance(name, str) and is_plain_name(name):
            content = read_regular(path.parent / name, error, max_bytes=max_bytes)
            if content is not None:
                files[name] = content
    return packed(files)


def _record(data: bytes) -> dict[str, object] | None:
    """Parses a response recorded by IB-bench; None for other files."""
    try:
        record = parse_json(data)
    except MalformedError:
        return None
    if not isinstance(record, dict) or _PARSED not in record or not record.keys() >= _RECORD:
        return None
    return record
