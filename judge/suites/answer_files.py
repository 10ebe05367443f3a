"""Reads answers of several files: a folder, or a recorded response with files next to it.

Such an answer is judged and stored as one file, a zip that :mod:`judge.files.packed_folder` makes.
"""

from __future__ import annotations

from pathlib import Path

from judge.errors import JudgeError
from judge.files.documents import MalformedError, dump_json, parse_json, read_regular
from judge.files.packed_folder import MAX_BYTES, files_below, packed
from judge.suites.folders import is_plain_name

REPLY = "reply.json"
"""Name of the file, in an answer's folder, that holds the typed reply."""

_PARSED = "parsed_response"
_RECORD = frozenset({"task_id", "raw_response", "stop_reason"})
"""Fields that a response recorded by IB-bench has in addition to its parsed reply."""


def read_answer(
    path: Path, error: type[JudgeError], *, most_bytes: int = MAX_BYTES
) -> bytes | None:
    """Reads an answer, as the bytes that are judged.

    Args:
        path: a file, a folder, or an IB-bench response that names workbooks next to it.
        error: class of the error to raise.
        most_bytes: size limit of each file.

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
    data = read_regular(path, error, most_bytes=most_bytes)
    if data is None or path.suffix != ".json":
        return data
    record = _record(data)
    if record is None:
        return data
    files = {REPLY: dump_json(record[_PARSED]).encode()}
    listed = record.get("output_files")
    for name in listed if isinstance(listed, list) else []:
        if isinstance(name, str) and is_plain_name(name):
            content = read_regular(path.parent / name, error, most_bytes=most_bytes)
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
