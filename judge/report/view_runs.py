"""The runs of a results folder as they are right now: what is judged, what is in progress."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from judge.core.verdict import Verdict
from judge.errors import JudgeError, StoreError
from judge.files.documents import MalformedError, parse_json
from judge.files.json_lines import GrowingLines
from judge.files.writing import is_held
from judge.grading.overrides import OVERRIDES_FILE
from judge.grading.store import (
    CASES_FILE,
    LOCK_FILE,
    REPORT_FILE,
    RUN_FILE,
    SUBMISSIONS_FILE,
    RunDirectory,
)
from judge.report.build import build_report_data
from judge.report.files import inspect_files
from judge.report.html.pages import TaskPages
from judge.report.html.render import json_form
from judge.report.load import LoadedRun, load_run
from judge.report.model import ReportData
from judge.report.pairing import RunComparison, compare_loaded
from judge.suites import Suite, load_suite
from judge.web.local_page import check_wanted

_FILES = (RUN_FILE, SUBMISSIONS_FILE, CASES_FILE, REPORT_FILE, OVERRIDES_FILE)
_KEPT_RUNS = 8
_LOOK_UP_S = 0.2
"""How often one that waits for a report, which another one makes, looks whether it is wanted."""

_QUIET_S = 20.0
"""Where locks cannot be seen, a run whose records moved within so many seconds is going."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        done: cases on record.
        total: cases that its submissions have in all; None if the suite is not available.
        verdicts: code -> cases.
        going: whether a process is judging right now.
    """

    done: int
    total: int | None
    verdicts: Mapping[str, int]
    going: bool

    def to_json(self) -> dict[str, Any]:
        """The progress as a JSON object."""
        return {
            "done": self.done,
            "total": self.total,
            "verdicts": dict(self.verdicts),
            "going": self.going,
        }


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run with its report, as of some moment.

    Attributes:
        run: what is on record.
        data: the report; every number of the pages is one of its JSON form.
        document: that JSON form.
        pages: the task pages.
    """

    run: LoadedRun
    data: ReportData
    document: Mapping[str, Any]
    pages: TaskPages


class RunShelf:
    """All runs of a folder; safe to use from several threads.

    Args:
        folder: a results directory, or a folder of them.
        dataset: the suite; None for the one that each run remembers.

    Raises:
        StoreError: no such folder.
    """

    def __init__(self, folder: Path, dataset: str | None = None) -> None:
        if not folder.is_dir():
            raise StoreError(f"{folder}: no such folder")
        self._folder = folder.resolve()
        self._dataset = dataset
        self._lock = threading.Lock()
        self._suites: dict[str, Suite | None] = {}
        self._tails: dict[str, _Tail] = {}
        self._opened: _Kept[OpenRun] = _Kept(_KEPT_RUNS)
        self._loaded: _Kept[ReportData] = _Kept(500)
        self._compared: _Kept[RunComparison] = _Kept(_KEPT_RUNS)

    @property
    def folder(self) -> Path:
        """The folder."""
        return self._folder

    def runs(self) -> dict[str, Path]:
        """The runs by name. Only names in here are ever looked up on disk."""
        if RunDirectory.is_run(self._folder):
            return {self._folder.name: self._folder}
        found = (each for each in sorted(self._folder.iterdir()) if each.is_dir())
        return {each.name: each for each in found if RunDirectory.is_run(each)}

    def path(self, name: str) -> Path:
        """The directory of a run.

        Raises:
            StoreError: there is no run of that name.
        """
        found = self.runs().get(name)
        if found is None:
            raise StoreError(f"{self._folder}: holds no run {name!r}")
        return found

    def load(self, name: str) -> LoadedRun:
        """What is on record of a run.

        Raises:
            StoreError: there is no run of that name, or nothing of it has been judged yet.
        """
        return load_run(self.path(name), self._dataset, details=False)

    def compare(self, names: Sequence[str]) -> RunComparison:
        """Runs compared with each other.

        Raises:
            StoreError: there is no run of one of the names, or nothing of it has been judged yet.
            UsageError: they cannot be compared.
        """
        signatures = tuple(_signature(self.path(name)) for name in names)
        return self._compared.get("/".join(names), signatures, lambda: self._compare(names))

    def _compare(self, names: Sequence[str]) -> RunComparison:
        runs = []
        for name in names:
            check_wanted()
            runs.append(self.load(name))
        return compare_loaded(runs, on_pair=check_wanted)

    def scores(self, name: str) -> ReportData:
        """The report of a run without what needs its workbooks.

        Raises:
            StoreError: there is no run of that name, or nothing of it has been judged yet.
        """
        path = self.path(name)
        return self._loaded.get(
            name, _signature(path), lambda: build_report_data(self.load(name), {})
        )

    def open(self, name: str) -> OpenRun:
        """A run with its whole report.

        Raises:
            StoreError: there is no run of that name, or nothing of it has been judged yet.
        """
        path = self.path(name)
        return self._opened.get(name, _signature(path), lambda: self._open(name))

    def _open(self, name: str) -> OpenRun:
        run = self.load(name)
        data = build_report_data(run, inspect_files(run, on_file=check_wanted))
        document = json_form(data)
        return OpenRun(run, data, document, TaskPages(run, document))

    # -- progress ----------------------------------------------------------------------------------

    def progress(self, name: str) -> Progress:
        """How far a run is.

        Raises:
            StoreError: there is no run of that name.
        """
        path = self.path(name)
        with self._lock:
            tail = self._tails.setdefault(name, _Tail(GrowingLines(path / CASES_FILE)))
            tail.read()
            verdicts = Counter(tail.verdicts.values())
            return Progress(
                done=len(tail.verdicts),
                total=self._total(path),
                verdicts=dict(verdicts),
                going=is_going(path),
            )

    def _total(self, path: Path) -> int | None:
        """How many cases there are to judge in all."""
        try:
            with RunDirectory(path) as store:
                run = store.read_run() or {}
                tasks = [str(record.get("id")) for record in store.read_records(SUBMISSIONS_FILE)]
        except JudgeError:
            return None
        remembered = run.get("suite")
        source = None if remembered is None else remembered.get("source")
        suite = self._suite(self._dataset or source or None)
        if suite is None or not tasks:
            return None
        return sum(len(suite.task(task).cases) for task in tasks if task in suite)

    def _suite(self, name: str | None) -> Suite | None:
        if name is None:
            return None
        if name not in self._suites:
            try:
                self._suites[name] = load_suite(name)
            except JudgeError:
                self._suites[name] = None
        return self._suites[name]


def is_going(path: Path) -> bool:
    """Whether a process is judging into a results directory; its lock is not taken."""
    held = is_held(path / LOCK_FILE)
    return _moved_lately(path / CASES_FILE) if held is None else held


def _moved_lately(path: Path) -> bool:
    try:
        # A file from the future is one from before the clock was set back.
        return abs(time.time() - path.stat().st_mtime) < _QUIET_S
    except OSError:
        return False


def _signature(path: Path) -> tuple[tuple[int, int] | None, ...]:
    """What changes whenever a run does."""
    found: list[tuple[int, int] | None] = []
    for name in _FILES:
        try:
            status = (path / name).stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_mtime_ns, status.st_size))
    return tuple(found)


@dataclass(slots=True)
class _Tail:
    """The verdicts of a cases.jsonl that grows, each line read once."""

    lines: GrowingLines
    verdicts: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def read(self) -> None:
        """Takes in what was appended; starts again if the file was replaced by a shorter one."""
        try:
            fresh, replaced = self.lines.read(StoreError)
        except StoreError:
            return
        if replaced:
            self.verdicts.clear()
        for line in fresh:
            try:
                record = parse_json(line)
                key = (str(record["task"]), str(record["sample"]), str(record["case"]))
                self.verdicts[key] = Verdict(str(record["verdict"])).value
            except (MalformedError, ValueError, KeyError, TypeError):
                continue


_Value = TypeVar("_Value")


class _Kept(Generic[_Value]):
    """Values by name, made again when what they depend on has changed; the latest ones are kept."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}
        self._values: OrderedDict[str, tuple[object, _Value]] = OrderedDict()

    def get(self, name: str, signature: object, make: Callable[[], _Value]) -> _Value:
        """The value of a name; made once, however many threads request it at the same time."""
        with self._lock:
            making = self._making.setdefault(name, threading.Lock())
        while not making.acquire(timeout=_LOOK_UP_S):
            check_wanted()
        try:
            with self._lock:
                known = self._values.get(name)
                if known is not None and known[0] == signature:
                    self._values.move_to_end(name)
                    return known[1]
            value = make()
            with self._lock:
                self._values[name] = (signature, value)
                while len(self._values) > self._size:
                    self._values.popitem(last=False)
            return value
        finally:
            making.release()
