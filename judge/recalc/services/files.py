"""Reads files other than workbooks inside the sandbox: databases, and pages of PDF.

Standard library only: this text goes into the sandbox. A hostile file can harm only the process
that reads it, which has its own limits.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import time
from typing import Any

from judge.recalc.services.common import Answer, CannotComputeError

MAX_ROWS = 200_000
MAX_CHARS = 32 << 20
MAX_PAGES = 500
MAX_SECONDS = 10.0
_ALLOWED = ("SQLITE_SELECT", "SQLITE_READ", "SQLITE_FUNCTION", "SQLITE_RECURSIVE")


class _Room:
    """How many rows and characters may still be kept."""

    def __init__(self) -> None:
        self.rows = MAX_ROWS
        self.chars = MAX_CHARS

    def take(self, rows: int, chars: int) -> None:
        self.rows -= rows
        self.chars -= chars
        if self.rows < 0 or self.chars < 0:
            raise CannotComputeError(
                f"holds more than {MAX_ROWS:,} rows or {MAX_CHARS:,} characters"
            )


def read_database(data: bytes, options: dict[str, Any]) -> Answer:
    """Tables and views of an SQLite database, with columns and rows in their order.

    Whatever its views contain, only ``SELECT`` and reading the schema are allowed.

    Args:
        data: the file.
        options: ``kinds``: ``table``, ``view`` or both; ``rows``: the kinds whose rows are read;
            ``targets``: names for each kind, an empty list for all.
    """
    import sqlite3  # noqa: PLC0415 - only where it is asked for

    if not data.startswith(b"SQLite format 3\0"):
        raise CannotComputeError("not an SQLite database")
    # A database in the write-ahead mode cannot be opened from memory; its file is complete without.
    data = data[:18] + b"\1\1" + data[20:]
    connection = sqlite3.connect(":memory:")
    try:
        connection.deserialize(data)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 8 << 20)
        allowed = {getattr(sqlite3, name) for name in _ALLOWED}

        def authorise(action: int, first: str | None, *_: object) -> int:
            harmless = action in allowed or (
                action == sqlite3.SQLITE_PRAGMA and first == "table_info"
            )
            return sqlite3.SQLITE_OK if harmless else sqlite3.SQLITE_DENY

        connection.set_authorizer(authorise)
        stop_at = time.process_time() + MAX_SECONDS
        connection.set_progress_handler(lambda: time.process_time() > stop_at, 100_000)
        return {"objects": _objects(connection, options)}
    except sqlite3.Error as error:
        raise CannotComputeError(f"not a readable SQLite database: {error}") from error
    finally:
        connection.close()


def _objects(connection: Any, options: dict[str, Any]) -> list[dict[str, object]]:
    room = _Room()
    found = []
    for kind in options["kinds"]:
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = ? ORDER BY name", (kind,)
        ).fetchall()
        targets = options["targets"].get(kind) or []
        for (name,) in names:
            if targets and name not in targets:
                continue
            quoted = '"' + name.replace('"', '""') + '"'
            columns = connection.execute(f"PRAGMA table_info({quoted})").fetchall()
            rows = None
            if kind in options["rows"]:
                rows = []
                for row in connection.execute(f"SELECT * FROM {quoted}"):  # noqa: S608
                    cells = [_cell(value) for value in row]
                    room.take(1, sum(len(str(cell)) for cell in cells))
                    rows.append(cells)
            found.append(
                {"kind": kind, "name": name, "columns": [list(each) for each in columns],
                 "rows": rows}
            )  # fmt: skip
    return found


def _cell(value: object) -> object:
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def read_pdf(data: bytes, options: dict[str, Any]) -> Answer:
    """How many pages a PDF has, and the text of each.

    Args:
        data: the reader's library as a zip archive, then the file.
        options: ``library_bytes``: the size of the library.
    """
    size = int(options["library_bytes"])
    place = os.path.join(os.getcwd(), "library.zip")  # noqa: PTH118, PTH109
    with open(place, "wb") as file:  # noqa: PTH123
        file.write(data[:size])
    sys.path.insert(0, place)
    from pypdf import PdfReader  # noqa: PLC0415 - it came with the request

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stderr(nowhere):  # noqa: PTH123
        reader = PdfReader(io.BytesIO(data[size:]))
        count = len(reader.pages)
        texts: list[str] = []
        room = _Room()
        if options.get("texts"):
            if count > MAX_PAGES:
                raise CannotComputeError(f"has more than {MAX_PAGES} pages")
            for page in reader.pages:
                texts.append(page.extract_text())
                room.take(1, len(texts[-1]))
    return {"pages": count, "texts": texts}


READERS = {"sqlite3": read_database, "pypdf": read_pdf}


def read_file(reader: str, request: dict[str, object], data: bytes) -> Answer:
    """Reads one file; runs in a child."""
    return READERS[reader](data, dict(request))
