"""Collects the pictures and other input files that the pages of a report show, within limits.

Pictures come from strangers and are never decoded here: type and size are read from the header. If
a file is too large, or not a picture at all, a line of text is shown instead.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.core.task import FileKind, InputFile, Task, TestCase
from judge.errors import JudgeError, StoreError, SuiteError
from judge.files.documents import MAX_FILE_BYTES, MIB, opened_regular, read_regular
from judge.files.media import PICTURE_SUFFIXES, PICTURES_FOLDER, image_size, image_type
from judge.workbook.cell import ErrorValue
from judge.workbook.preview import SheetPreview, Value, read_preview, read_table

MAX_PICTURE_BYTES = 8 * MIB
"""Largest file that is shown, in bytes."""

MAX_PIXELS = 50_000_000
"""Largest picture that a browser has to decode, in pixels."""

PICTURES_BYTES = 24 * MIB
"""Largest total size of all pictures in a report that is a single file, in bytes."""

PAGE_PICTURES_BYTES = 96 * MIB
"""Largest total size of all pictures on one page from a server, in bytes."""

Shrink = Callable[[bytes], bytes | None]
"""Makes a picture smaller; returns None if that is not possible."""

_MAX_MISSES = 20
"""After this many pictures that do not fit, no further pictures are tried."""

_HASH = re.compile(r"[0-9a-f]{64}")


class PictureShelf:
    """Pictures that pages refer to.

    Args:
        run_folder: the results directory, whose own pictures may be shown.
    """

    def __init__(self, run_folder: Path) -> None:
        self._folder = run_folder / PICTURES_FOLDER
        self._known: dict[Path, dict[str, Any]] = {}
        self._places: dict[str, Path] = {}
        self._turns: dict[str, int] = {}

    def of_file(self, path: Path) -> dict[str, Any]:
        """A picture as a page names it.

        Args:
            path: the file.

        Returns:
            ``name`` and either ``problem``, a line that says why it cannot be shown, or ``sha256``,
            ``media_type``, ``width`` and ``height`` in pixels, and ``bytes``.
        """
        if path not in self._known:
            self._known[path] = {"name": path.name, **self._read(path)}
        return self._known[path]

    def of_message(self, part: Mapping[str, Any]) -> dict[str, Any]:
        """A picture of a conversation: an input of the suite, or one that the run keeps.

        Args:
            part: its part of the message, which is untrusted.

        Returns:
            As :meth:`of_file`.
        """
        name, digest = str(part.get("name") or "picture")[:200], str(part.get("sha256"))
        if _HASH.fullmatch(digest) is None:
            return {"name": name, "problem": "the conversation does not say which picture this is"}
        path = self._places.get(digest)
        if path is None:
            paths = (self._folder / f"{digest}{suffix}" for suffix in PICTURE_SUFFIXES.values())
            path = next((path for path in paths if path.is_file()), None)
        shown = {"problem": "the picture is no longer available"}
        if path is not None:
            shown = self.of_file(path)
        if shown.get("sha256", digest) != digest:
            shown = {"problem": "the picture was changed"}
        return {**shown, "name": name}

    def of_turn(self, sha256: str, name: str, rank: int) -> dict[str, Any]:
        """A screenshot of an episode.

        Args:
            sha256: its hash, under which the run stores it.
            name: its name.
            rank: its priority if not all pictures fit; lower comes first.

        Returns:
            As :meth:`of_file`.
        """
        shown = self.of_message({"sha256": sha256, "name": name})
        if "sha256" in shown:
            self._turns[sha256] = min(rank, self._turns.get(sha256, rank))
        return shown

    def text_of(self, sha256: str) -> str | None:
        """The bytes of a registered picture, as base64; None if it is no longer available."""
        path = self._places.get(sha256)
        try:
            data = None if path is None else read_regular(path, StoreError)
        except StoreError:
            return None
        if data is None or hashlib.sha256(data).hexdigest() != sha256:
            return None
        return base64.b64encode(data).decode("ascii")

    def within(self, max_bytes: int, shrink: Shrink | None = None) -> dict[str, str]:
        """The registered pictures that fit into a number of bytes.

        Inputs and pictures of conversations come first, smallest first; then the screenshots of
        episodes, by rank and in the order of their turns.

        Args:
            max_bytes: total size of all pictures as base64.
            shrink: makes screenshots smaller; used if they do not all fit in full size.

        Returns:
            SHA-256 -> the bytes as base64, in the order of the hashes.
        """
        sizes = {
            picture["sha256"]: picture["bytes"]
            for picture in self._known.values()
            if "sha256" in picture
        }
        others = sorted(sizes.keys() - self._turns, key=lambda digest: (sizes[digest], digest))
        turns = sorted((size for size in sizes if size in self._turns), key=self._turns.__getitem__)
        taken = self._taken(others, max_bytes, self.text_of)
        left = max_bytes - sum(map(len, taken.values()))
        are_many = sum(-(-sizes[turn] // 3) * 4 for turn in turns) > left
        read = self.text_of if shrink is None or not are_many else self._shrunk(shrink)
        return dict(sorted((taken | self._taken(turns, left, read)).items()))

    def _taken(
        self, digests: Iterable[str], max_bytes: int, read: Callable[[str], str | None]
    ) -> dict[str, str]:
        """The pictures that fit, in their order."""
        taken: dict[str, str] = {}
        misses = 0
        for digest in digests:
            text = read(digest) if misses < _MAX_MISSES else None
            if text is not None and len(text) <= max_bytes:
                taken[digest] = text
                max_bytes -= len(text)
            elif text is not None:
                misses += 1
        return taken

    def _shrunk(self, shrink: Shrink) -> Callable[[str], str | None]:
        def read(sha256: str) -> str | None:
            text = self.text_of(sha256)
            picture = None if text is None else shrink(base64.b64decode(text))
            return text if picture is None else base64.b64encode(picture).decode("ascii")

        return read

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            data = read_regular(path, StoreError, max_bytes=MAX_PICTURE_BYTES)
        except StoreError as error:
            return {"problem": error.message.removeprefix(f"{path}: ")}
        if data is None:
            return {"problem": "the file is missing"}
        media_type, size = image_type(data), image_size(data)
        if size is None:
            return {"problem": "the file is not a picture that can be shown"}
        width, height = size
        if width * height > MAX_PIXELS:
            return {"problem": f"{width:,} × {height:,} pixels are too many to show"}  # noqa: RUF001 - multiplication sign
        digest = hashlib.sha256(data).hexdigest()
        self._places[digest] = path
        return {
            "sha256": digest,
            "media_type": media_type,
            "width": width,
            "height": height,
            "bytes": len(data),
        }


_MAX_FILES = 40
_MAX_SHEETS = 4
_MAX_ROWS = 12
_MAX_COLUMNS = 16
_MAX_CELL_CHARS = 60
_MAX_TEXT_CHARS = 4_000
_MAX_TEXT_BYTES = 4 * _MAX_TEXT_CHARS


def shown_inputs(task: Task, case: TestCase, pictures: PictureShelf) -> list[dict[str, Any]]:
    """The input files of a case that are shown as pictures, tables or text instead of in a grid.

    Args:
        task: the task; if its answer is a file, its first input is shown in a grid.
        case: the case.
        pictures: the shelf on which pictures are registered.

    Returns:
        For each file ``name``, ``kind`` and, if it cannot be shown, ``problem``; a picture has
        ``picture`` (see :meth:`PictureShelf.of_file`), a table ``sheets`` (each with ``name``,
        ``rows`` of strings, ``total_rows`` or null, ``total_columns`` or null and ``cut``), text
        ``text``.
    """
    files = case.inputs[1:] if task.answer.is_file else case.inputs
    shown = [_shown(file, pictures) for file in files[:_MAX_FILES]]
    shown += [
        {"name": file.name, "kind": file.kind.value, "problem": f"is missing: {file.advice}"}
        for file in case.absent[:_MAX_FILES]
    ]
    return shown


def _shown(file: InputFile, pictures: PictureShelf) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": file.path.name, "kind": file.kind.value}
    if file.kind is FileKind.IMAGE:
        return {**entry, "picture": pictures.of_file(file.path)}
    try:
        match file.kind:
            case FileKind.WORKBOOK:
                sheets = read_preview(file.path, _MAX_ROWS)
            case FileKind.TABLE:
                sheets = (read_table(file.path, _MAX_ROWS),)
            case _:
                return {**entry, "text": _text(file.path)}
    except JudgeError as error:
        return {**entry, "problem": error.message.removeprefix(f"{file.path}: ")}
    shown = [_sheet(sheet) for sheet in sheets[:_MAX_SHEETS]]
    return {**entry, "sheets": shown, "more_sheets": max(len(sheets) - _MAX_SHEETS, 0)}


def _sheet(sheet: SheetPreview) -> dict[str, Any]:
    rows = [_row(row) for row in sheet.rows[:_MAX_ROWS]]
    is_cut = sheet.more_rows or any(len(row) > _MAX_COLUMNS for row in sheet.rows)
    return {
        "name": sheet.name,
        "rows": rows,
        "total_rows": sheet.total_rows,
        "total_columns": sheet.total_columns,
        "cut": is_cut,
    }


def _row(row: Sequence[Value]) -> list[str]:
    texts = (_cell(value) for value in row[:_MAX_COLUMNS])
    return [
        text if len(text) <= _MAX_CELL_CHARS else text[:_MAX_CELL_CHARS] + "…" for text in texts
    ]


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, ErrorValue):
        return value.code
    if isinstance(value, dt.datetime):
        return str(value).removesuffix(" 00:00:00")
    return str(value)


def _text(path: Path) -> str:
    with opened_regular(path, SuiteError, MAX_FILE_BYTES) as file:
        data = b"" if file is None else file.read(_MAX_TEXT_BYTES)
    text = data.decode("utf-8", "replace")
    return text if len(text) <= _MAX_TEXT_CHARS else text[:_MAX_TEXT_CHARS] + "…"
