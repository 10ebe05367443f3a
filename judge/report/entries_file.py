"""The entries of ``report.json``: held where they are few, otherwise written as they come."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from array import array
from collections.abc import Sequence
from typing import IO, cast, overload

from judge.core.records.reports import ReportDocument, ReportHead, TaskReport
from judge.errors import StoreError
from judge.files.documents import dump_json, parse_json
from judge.files.json_lines import LinesAt
from judge.grading.store import REPORT_FILE, RunDirectory

MAX_HELD = 20_000
"""Entries of a report, and results of a run, up to which all are held in memory."""

_INDENT = b"\n    "


class EntriesFile:
    """Takes the entries of a report one by one, and writes the report at the end.

    Args:
        store: the results directory.
        most_held: entries that are held in memory; more than these are kept in a file meanwhile.
    """

    def __init__(self, store: RunDirectory, most_held: int = MAX_HELD) -> None:
        self._store = store
        self._most_held = most_held
        self._held: list[TaskReport] = []
        self._stack = contextlib.ExitStack()
        self._file: IO[bytes] | None = None
        self._places, self._lengths = array("Q"), array("I")
        self._end = 0

    def add(self, entry: TaskReport) -> None:
        """Takes the next entry.

        Raises:
            OSError: it cannot be written.
        """
        if self._file is None and len(self._held) < self._most_held:
            self._held.append(entry)
            return
        if self._file is None:
            opened = tempfile.TemporaryFile(dir=self._store.path)  # noqa: SIM115  closed at the end
            self._file = self._stack.enter_context(opened)
            for each in self._held:
                self._write(each)
            self._held = []
        self._write(entry)

    def _write(self, entry: TaskReport) -> None:
        assert self._file is not None
        text = dump_json(entry, indent=2).encode("utf-8").replace(b"\n", _INDENT)
        before = b",\n    " if len(self._places) else b"    "
        self._file.write(before + text)
        self._places.append(self._end + len(before))
        self._lengths.append(len(text))
        self._end += len(before) + len(text)

    def finish(self, head: ReportHead) -> ReportDocument:
        """Writes report.json.

        Args:
            head: everything but the entries.

        Returns:
            The report; its entries are read from the file if they are not held.

        Raises:
            StoreError: it cannot be written.
        """
        with self._stack:
            if self._file is None:
                report: ReportDocument = {**head, "tasks": self._held}
                self._store.write_document(REPORT_FILE, report)
                return report
            with self._store.writing(REPORT_FILE) as file:
                text = dump_json(head, indent=2).removesuffix("\n}").encode("utf-8")
                start = file.write(text + b',\n  "tasks": [\n')
                self._file.seek(0)
                shutil.copyfileobj(self._file, file)
                file.write(b"\n  ]\n}\n")
        lines = LinesAt(self._store.path / REPORT_FILE, StoreError)
        return {**head, "tasks": WrittenEntries(lines, start, self._places, self._lengths)}


class WrittenEntries(Sequence[TaskReport]):
    """Entries that are in report.json, each read when it is needed.

    Args:
        lines: the file.
        start: where the entries begin in it.
        places: where each entry is, from there on.
        lengths: how long it is.
    """

    def __init__(
        self, lines: LinesAt, start: int, places: Sequence[int], lengths: Sequence[int]
    ) -> None:
        self._lines = lines
        self._start = start
        self._places = places
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> TaskReport: ...

    @overload
    def __getitem__(self, index: slice) -> list[TaskReport]: ...

    def __getitem__(self, index: int | slice) -> TaskReport | list[TaskReport]:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        place = self._start + self._places[index]
        return cast("TaskReport", parse_json(self._lines.read(place, self._lengths[index])))
