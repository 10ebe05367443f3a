"""The results directory of a run: append-only, atomic, resumable.

```
run.json           description of the run: schema version, suite, settings, versions
submissions.jsonl  one record per task and sample
attempts.jsonl     for outputs made elsewhere: one record per task and sample, with time and cost
cases.jsonl        one record per (task, sample, case), written last: a record means "done"
workbooks/         outputs, each named by the hash of its content, in folders by its first digits
report.json        derived; can be made again without running anything
```

If a process dies in the middle of a write, the last line may be incomplete. It is ignored when the
file is read and cut off before the next append.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from judge.closable import Closable
from judge.core.records.runs import RunDocument, usage_fault
from judge.errors import StoreError
from judge.files.documents import (
    MIB,
    MalformedError,
    as_object,
    dump_json,
    parse_json,
    read_regular,
    written,
)
from judge.files.forms import Document, checked
from judge.files.json_lines import (
    MAX_LINE_BYTES,
    LineAppender,
    LinesAt,
    fits_a_line,
    read_json_lines,
    read_placed_json_lines,
)
from judge.files.writing import (
    FileLock,
    HeldError,
    naming_what_is_written,
    take_lock,
    write_whole,
    writing_whole,
)

SCHEMA_VERSION = 1
RUN_FILE = "run.json"
SUBMISSIONS_FILE = "submissions.jsonl"
ATTEMPTS_FILE = "attempts.jsonl"
_ASKED_FILES = frozenset({SUBMISSIONS_FILE, ATTEMPTS_FILE})
CASES_FILE = "cases.jsonl"
REPORT_FILE = "report.json"
SUSPECTS_FILE = "suspects.json"
"""The file of suspects; reports also show the scores without them."""
MARKS_FILE = "marks.jsonl"
WORKBOOKS_FOLDER = "workbooks"
LOCK_FILE = ".lock"

MAX_DOCUMENT_BYTES = 256 * MIB
"""Largest document that is read; a report.json of 100 samples of 912 tasks is smaller."""

MAX_WORKBOOK_BYTES = 256 * MIB
"""Largest workbook that is read; four times the largest output of a program."""

_FILE_MODE = 0o644


class HeldRunError(StoreError):
    """Another process is writing to the results directory."""


def kept_workbook(run: Path, digest: str) -> bytes | None:
    """Reads an output workbook of a results directory; None if it is missing or damaged.

    Args:
        run: the results directory.
        digest: the hash of the workbook's content.
    """
    for path in _workbook_places(run, digest):
        try:
            data = read_regular(path, StoreError, max_bytes=MAX_WORKBOOK_BYTES)
        except StoreError:
            continue
        if data and hashlib.sha256(data).hexdigest() == digest:
            return data
    return None


def _workbook_places(run: Path, digest: str) -> tuple[Path, Path]:
    """Returns the path of a workbook, and its path in earlier versions, which used one folder."""
    folder = run / WORKBOOKS_FOLDER
    return folder / digest[:2] / f"{digest}.xlsx", folder / f"{digest}.xlsx"


class TooLongError(StoreError):
    """Data was not written, because no command could read it again."""


def too_long_to_read(path: Path, max_bytes: int) -> TooLongError:
    """Returns the error for data that is not written because no command could read it again."""
    return TooLongError(
        f"{path}: the new content has more than {max_bytes // MIB} MiB, and no command would "
        "read it",
        hint="It was not written; the earlier content is kept.",
    )


class WatchedFolder:
    """Detects the removal or replacement of a folder in use, or of an append-only file in it.

    A command must not leave results there that were made from files that no longer exist.

    Args:
        folder: the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: tuple[int, int] | None = None
        self._files: dict[str, tuple[int, int, int]] = {}

    def hold(self) -> None:
        """Remembers the identity of the folder, if it exists; later calls do nothing."""
        if self._own is None:
            with contextlib.suppress(OSError):
                status = self._folder.stat()
                self._own = status.st_dev, status.st_ino

    def note(self, name: str, status: os.stat_result | None = None) -> None:
        """Remembers identity and size of a file, if it exists.

        Args:
            name: the file.
            status: its status, if the caller has the file open.
        """
        with contextlib.suppress(OSError):
            status = status or (self._folder / name).stat()
            self._files[name] = status.st_dev, status.st_ino, status.st_size

    def note_size(self, name: str, size: int) -> None:
        """Remembers the new size of a file that the caller has just extended."""
        device, inode, _ = self._files[name]
        self._files[name] = device, inode, size

    def forget(self, name: str) -> None:
        """Stops checking a file that the caller is about to truncate or replace."""
        self._files.pop(name, None)

    def check(self) -> None:
        """Checks that the folder and the files are the same as before, and the files no shorter.

        Raises:
            StoreError: one of them was removed, replaced or truncated.
        """
        if self._own is None:
            return
        try:
            status = self._folder.stat()
        except OSError as error:
            raise self._lost(self._folder, "is gone") from error
        if (status.st_dev, status.st_ino) != self._own:
            raise self._lost(self._folder, "is a different folder now")
        for name, (device, inode, size) in list(self._files.items()):
            path = self._folder / name
            try:
                status = path.stat()
            except OSError as error:
                raise self._lost(path, "is gone") from error
            if (status.st_dev, status.st_ino) != (device, inode):
                raise self._lost(path, "is a different file now")
            if status.st_size < size:
                raise self._lost(path, "has lost records")

    def check_file(self, name: str) -> None:
        """Checks one file; a file in a replaced folder also counts as replaced.

        Raises:
            StoreError: as for :meth:`check`.
        """
        with contextlib.suppress(OSError, KeyError):
            device, inode, size = self._files[name]
            status = os.stat(f"{self._folder}/{name}")  # noqa: PTH116  once for every record
            if (status.st_dev, status.st_ino) == (device, inode) and status.st_size >= size:
                return
        self.check()

    def _lost(self, path: Path, problem: str) -> StoreError:
        return StoreError(
            f"{path}: {problem}: somebody removed or changed it while this command was using it",
            hint="No report was written. Put it back, or give another --out, and run the command "
            "again: recorded cases are not judged twice.",
        )


class RunDirectory(Closable):
    """One run's results directory.

    Args:
        path: the directory.

    Raises:
        StoreError: ``path`` is a file, or holds a run of another schema version.
    """

    def __init__(self, path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise StoreError(f"{path} is a file, not a results directory")
        self.path = path
        self._appenders: dict[str, LineAppender] = {}
        self._lines: dict[str, LinesAt] = {}
        self._lock: FileLock | None = None
        self._watched = WatchedFolder(path)
        self.read_run()

    @staticmethod
    def is_run(path: Path) -> bool:
        """Returns whether a folder holds a run: whether it has a run.json or submissions."""
        return (path / RUN_FILE).is_file() or (path / SUBMISSIONS_FILE).is_file()

    # -- run.json and other small documents -------------------------------------------------

    def read_run(self) -> RunDocument | None:
        """Reads the description of the run; None if the directory has none yet.

        Raises:
            StoreError: run.json is not a JSON object or has another schema version, or one of its
                fields has the wrong type.
        """
        run = self.read_document(RUN_FILE)
        if run is None:
            return None
        if (version := run.get("schema_version")) != SCHEMA_VERSION:
            raise StoreError(
                f"{self.path / RUN_FILE}: schema_version is {written(version)}, this judge writes "
                f"{SCHEMA_VERSION}",
                hint="Grade into another folder (--out), or use the judge that wrote this one.",
            )
        return self.checked(RUN_FILE, run, RunDocument)

    def checked(self, name: str, document: object, declared: type[Document]) -> Document:
        """Checks the content of a file of the directory and returns it typed.

        Args:
            name: the name of the file, for messages.
            document: the whole document, or one record.
            declared: a ``TypedDict`` of :mod:`judge.core.records`.

        Raises:
            StoreError: a field does not have the type that the judge writes.
        """
        try:
            return checked(document, declared)
        except MalformedError as error:
            raise StoreError(
                f"{self.path / name}: is not in the format that this judge writes: {error}",
                hint="It was not written by this judge.",
            ) from error

    def write_run(self, run: Mapping[str, object]) -> None:
        """Replaces run.json atomically, and adds the schema version."""
        self.write_document(RUN_FILE, {"schema_version": SCHEMA_VERSION, **run})

    def read_document(self, name: str) -> dict[str, object] | None:
        """Reads a JSON file of the directory; None if there is no such file."""
        path = self.path / name
        data = read_regular(path, StoreError, max_bytes=MAX_DOCUMENT_BYTES)
        if data is None:
            return None
        try:
            return as_object(parse_json(data))
        except MalformedError as error:
            raise StoreError(
                f"{path}: {error}", hint=f"Move {path} away and run the command again."
            ) from error

    def write_document(self, name: str, document: Mapping[str, object]) -> None:
        """Replaces a JSON document of the directory atomically.

        Raises:
            StoreError: the document is longer than :meth:`read_document` reads, or cannot be
                written.
        """
        text = dump_json(document, indent=2) + "\n"
        # A character takes at most four bytes, so only long documents have to be encoded for this.
        if 4 * len(text) > MAX_DOCUMENT_BYTES < len(text.encode("utf-8")):
            raise too_long_to_read(self.path / name, MAX_DOCUMENT_BYTES)
        self.write_text(name, text)

    def write_text(self, name: str, text: str) -> None:
        """Replaces a text file of the directory atomically."""
        with self._writing(name):
            self._make()
            write_whole(self.path / name, text.encode("utf-8"), mode=_FILE_MODE)

    # -- append-only records ------------------------------------------------------------------

    def read_records(self, name: str) -> Iterator[dict[str, object]]:
        """Yields the records of a .jsonl file in order; an incomplete last line is ignored.

        Raises:
            StoreError: the file is not a regular file, or a line before the last is not a JSON
                object or contains a number of requests that is too large to count.
        """
        for number, record in read_json_lines(self.path / name, StoreError, whole=True):
            if name in _ASKED_FILES and (fault := usage_fault(record)) is not None:
                raise StoreError(
                    f"{self.path / name}, line {number}: {fault}",
                    hint="It was not written by this judge. Correct the field, or remove it.",
                )
            yield record

    def read_placed_records(self, name: str) -> Iterator[tuple[int, int, dict[str, object]]]:
        """Yields each record with its offset and length in the file, for :meth:`read_record`."""
        path = self.path / name
        if self._lock is not None:
            self._watched.note(name)
        for _, offset, length, record in read_placed_json_lines(path, StoreError, whole=True):
            yield offset, length, record

    def read_record(self, name: str, offset: int, length: int) -> dict[str, object]:
        """Reads one record at an offset in a .jsonl file.

        Raises:
            StoreError: another process has changed the file in the meantime.
        """
        lines = self._lines.get(name)
        if lines is None:
            lines = self._lines.setdefault(name, LinesAt(self.path / name, StoreError))
        try:
            return as_object(parse_json(lines.read(offset, length)))
        except MalformedError as error:
            raise StoreError(
                f"{self.path / name}: has changed while it was in use: {error}",
                hint="Run the command again.",
            ) from error

    def append(self, name: str, record: Mapping[str, object], *, durable: bool = False) -> None:
        """Appends one record; when this returns, the whole record is in the file.

        Args:
            name: the file.
            record: the record.
            durable: whether to wait until the record is on disk, not only in the kernel's cache.

        Raises:
            TooLongError: the record is longer than readers accept; nothing was written.
            StoreError: the record cannot be written.
        """
        line = self._line(name, record)
        appender = self._appenders.get(name)
        if appender is None:
            with self._writing(name):
                self._make()
                self._watched.forget(name)  # cuts off an incomplete last line
                appender = self._appenders[name] = LineAppender(self.path / name)
                self._watched.note(name, appender.status())
        else:
            self._watched.check_file(name)
        with self._naming(name):
            # Unbuffered: one write passes a record to the kernel before the next case begins.
            self._watched.note_size(name, appender.append(line))
            if durable:
                appender.sync()

    def sync(self, name: str) -> None:
        """Waits until all records that were appended to a file are on disk."""
        if (appender := self._appenders.get(name)) is not None:
            with self._writing(name):
                appender.sync()

    def replace_records(self, name: str, records: Iterable[Mapping[str, object]]) -> None:
        """Replaces a whole .jsonl file atomically; holds only one record in memory at a time."""
        if (appender := self._appenders.pop(name, None)) is not None:
            appender.close()
        if (lines := self._lines.pop(name, None)) is not None:
            lines.close()
        self._watched.forget(name)
        with self.writing(name) as file:
            for record in records:
                file.write(self._line(name, record) + b"\n")

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[io.BufferedRandom]:
        """Opens a file of the directory to write in pieces; at the end it replaces the old file."""
        with self._writing(name):
            self._make()
            with writing_whole(self.path / name, mode=_FILE_MODE) as file:
                yield file

    # -- workbooks ---------------------------------------------------------------------------

    def put_workbook(self, data: bytes) -> str:
        """Stores an output workbook under the hash of its content.

        Returns:
            The SHA-256 of the content as hexadecimal digits.
        """
        digest = hashlib.sha256(data).hexdigest()
        if not self.has_workbook(digest):
            path = self.workbook_path(digest)
            with self._writing(f"{WORKBOOKS_FOLDER}/{path.parent.name}/{path.name}"):
                self._make()
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, data, mode=_FILE_MODE)
        return digest

    def get_workbook(self, digest: str) -> bytes | None:
        """Reads an output workbook by the hash of its content; None if it is missing or damaged."""
        return kept_workbook(self.path, digest)

    def has_workbook(self, digest: str) -> bool:
        """Returns whether a workbook, possibly damaged, is stored under a hash."""
        return any(path.exists() for path in _workbook_places(self.path, digest))

    def workbook_path(self, digest: str) -> Path:
        """Returns the path of an output workbook, which is named by the hash of its content."""
        new, old = _workbook_places(self.path, digest)
        return old if old.exists() and not new.exists() else new

    # -- one writer at a time ---------------------------------------------------------------------

    def lock(self) -> None:
        """Locks the directory for this process until :meth:`close` (or the end of the process).

        Raises:
            StoreError: another process is writing to it.
        """
        if self._lock is not None:
            return
        try:
            with self._writing(LOCK_FILE):
                self._make()
                self._lock = take_lock(self.path / LOCK_FILE)
        except HeldError as error:
            raise HeldRunError(
                f"{self.path}: another judge is writing to this results directory",
                hint="Wait for it to end, or give another --out.",
            ) from error

    def close(self) -> None:
        """Closes open files and unlocks the directory; safe to call twice."""
        while self._appenders:
            _, appender = self._appenders.popitem()
            appender.close()
        while self._lines:
            _, lines = self._lines.popitem()
            lines.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # -- inside --------------------------------------------------------------------------------

    def _line(self, name: str, record: Mapping[str, object]) -> bytes:
        """Encodes a record as a line for :meth:`read_records`.

        Raises:
            StoreError: the line would be too long to be read.
        """
        text = dump_json(record)
        if not fits_a_line(text):
            raise too_long_to_read(self.path / name, MAX_LINE_BYTES)
        return text.encode("utf-8")

    def check_intact(self) -> None:
        """Checks that the directory and its records are the ones that this process has used.

        Raises:
            StoreError: they were removed, replaced or truncated in the meantime.
        """
        self._watched.check()

    def _make(self) -> None:
        """Creates the directory, unless it existed before."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._watched.hold()

    def _writing(self, name: str) -> contextlib.AbstractContextManager[None]:
        self._watched.check()
        return self._naming(name)

    def _naming(self, name: str) -> contextlib.AbstractContextManager[None]:
        kept = ": judged cases are kept"
        return naming_what_is_written(self.path / name, StoreError, kept=kept)
