"""``judge view``: serves the current runs of a results folder to one person.

The online judge uses the same code, :class:`KeptRuns`, to show the results of a submission.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from starlette.requests import Request

from judge.core.verdict import Verdict
from judge.errors import JudgeError, StoreError, UsageError
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
from judge.local_page import INLINE_POLICY, LocalPage, UnwantedError, check_wanted
from judge.report.build import build_report_data
from judge.report.html.pages import TaskPages
from judge.report.html.render import PageLinks, json_form, render_served
from judge.report.html.runs import ListedRun, render_comparison, render_runs
from judge.report.load import LoadedRun, load_run
from judge.report.model import ReportData
from judge.report.pairing import RunComparison, compare_loaded
from judge.report.shapes import inspect_files
from judge.suites import Suite, load_suite

_FILES = (RUN_FILE, SUBMISSIONS_FILE, CASES_FILE, REPORT_FILE, OVERRIDES_FILE)
_MAX_LOADED_RUNS = 8  # that stay in memory
_LOOK_UP_S = 0.2
"""Seconds between two checks of whether the client of a waiting request is still there."""

_QUIET_S = 20.0
"""On a system without visible locks, a run whose records changed this recently counts as in
progress."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run.

    Attributes:
        done: how many cases are on record.
        total: how many cases its submissions have in all; None if the suite is not available.
        verdicts: code -> number of cases.
        running: whether a process is judging right now.
    """

    done: int
    total: int | None
    verdicts: Mapping[str, int]
    running: bool

    def to_json(self) -> dict[str, Any]:
        """The progress as a JSON object."""
        return {
            "done": self.done,
            "total": self.total,
            "verdicts": dict(self.verdicts),
            "going": self.running,
        }


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run with its report at some point in time.

    Attributes:
        run: the run as recorded.
        data: the report; every number on the pages comes from its JSON form.
        document: the JSON form of the report.
        pages: the task pages.
    """

    run: LoadedRun
    data: ReportData
    document: Mapping[str, Any]
    pages: TaskPages

    def page(self, number: str) -> Mapping[str, Any] | None:
        """A task page with its pictures, as the report's script requests it.

        Args:
            number: the 0-based number of the page, as written in the address.

        Returns:
            The object of :meth:`TaskPages.page` with ``pictures``; None if there is no such page.
        """
        if not (number.isascii() and number.isdigit() and len(number) < 9):
            return None
        if int(number) >= len(self.pages):
            return None
        page = self.pages.page(int(number))
        return {**page, "pictures": self.pages.pictures_of(page)}


_Value = TypeVar("_Value")


class _Kept(Generic[_Value]):
    """A cache of values by name; a value is made again if its sources have changed."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}
        self._values: OrderedDict[str, tuple[object, _Value]] = OrderedDict()

    def get(self, name: str, signature: object, make: Callable[[], _Value]) -> _Value:
        """The value of a name; made only once, even if several threads request it together."""
        with self._lock:
            making = self._making.setdefault(name, threading.Lock())
        while not making.acquire(timeout=_LOOK_UP_S):
            check_wanted()
        try:
            with self._lock:
                kept = self._values.get(name)
                if kept is not None and kept[0] == signature:
                    self._values.move_to_end(name)
                    return kept[1]
            value = make()
            with self._lock:
                self._values[name] = (signature, value)
                while len(self._values) > self._size:
                    self._values.popitem(last=False)
            return value
        finally:
            making.release()


class KeptRuns:
    """Runs that were loaded, and their reports; the latest are kept until they change.

    Safe to use from several threads; a report that several of them request is made only once.
    """

    def __init__(self) -> None:
        self._loaded: _Kept[LoadedRun] = _Kept(_MAX_LOADED_RUNS)
        self._opened: _Kept[OpenRun] = _Kept(_MAX_LOADED_RUNS)

    def load(self, path: Path, dataset: str | Path | None = None) -> LoadedRun:
        """The records of a run.

        Args:
            path: its results directory.
            dataset: the suite; None for the one that the run names.

        Raises:
            StoreError: it does not hold a run, or nothing of it has been judged yet.
        """
        make = partial(load_run, path, dataset, details=False)
        return self._loaded.get(str(path), signature_of(path), make)

    def open(self, path: Path, dataset: str | Path | None = None) -> OpenRun:
        """A run with its whole report.

        Raises:
            StoreError: it holds no run, or nothing of it has been judged yet.
        """
        return self._opened.get(
            str(path), signature_of(path), lambda: _open(self.load(path, dataset))
        )


def _open(run: LoadedRun) -> OpenRun:
    data = build_report_data(run, inspect_files(run, on_file=check_wanted))
    document = json_form(data)
    return OpenRun(run, data, document, TaskPages(run, document))


class RunShelf:
    """All runs of a folder; safe to use from several threads.

    Args:
        folder: a results directory, or a folder of them.
        dataset: the suite; None for the one that each run names.

    Raises:
        StoreError: there is no such folder.
    """

    def __init__(self, folder: Path, dataset: str | None = None) -> None:
        if not folder.is_dir():
            raise StoreError(f"{folder}: no such folder")
        self._folder = folder.resolve()
        self._dataset = dataset
        self._lock = threading.Lock()
        self._suites: dict[str, Suite | None] = {}
        self._tails: dict[str, _Tail] = {}
        self._kept = KeptRuns()
        self._scores: _Kept[ReportData] = _Kept(500)
        self._compared: _Kept[RunComparison] = _Kept(_MAX_LOADED_RUNS)

    @property
    def folder(self) -> Path:
        """The folder."""
        return self._folder

    def runs(self) -> dict[str, Path]:
        """The runs by name. Other names are never looked up on disk."""
        if RunDirectory.is_run(self._folder):
            return {self._folder.name: self._folder}
        folders = (folder for folder in sorted(self._folder.iterdir()) if folder.is_dir())
        return {folder.name: folder for folder in folders if RunDirectory.is_run(folder)}

    def path(self, name: str) -> Path:
        """The directory of a run.

        Raises:
            StoreError: there is no run of that name.
        """
        run = self.runs().get(name)
        if run is None:
            raise StoreError(f"{self._folder}: holds no run {name!r}")
        return run

    def load(self, name: str) -> LoadedRun:
        """The records of a run.

        Raises:
            StoreError: there is no run of that name, or nothing of it has been judged yet.
        """
        return self._kept.load(self.path(name), self._dataset)

    def compare(self, names: Sequence[str]) -> RunComparison:
        """Runs compared with each other.

        Raises:
            StoreError: one of the names has no run, or nothing of a run has been judged yet.
            UsageError: the runs cannot be compared.
        """
        signatures = tuple(signature_of(self.path(name)) for name in names)
        return self._compared.get("/".join(names), signatures, lambda: self._compare(names))

    def _compare(self, names: Sequence[str]) -> RunComparison:
        runs = []
        for name in names:
            check_wanted()
            runs.append(self.load(name))
        return compare_loaded(runs, on_pair=check_wanted)

    def scores(self, name: str) -> ReportData:
        """The report of a run, without the figures that need its workbooks.

        Raises:
            StoreError: there is no run of that name, or nothing of it has been judged yet.
        """
        path = self.path(name)
        return self._scores.get(
            name, signature_of(path), lambda: build_report_data(self.load(name), {})
        )

    def open(self, name: str) -> OpenRun:
        """A run with its whole report.

        Raises:
            StoreError: there is no run of that name, or nothing of it has been judged yet.
        """
        return self._kept.open(self.path(name), self._dataset)

    # -- progress ----------------------------------------------------------------------------------

    def progress(self, name: str) -> Progress:
        """The progress of a run.

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
                running=is_judging(path),
            )

    def _total(self, path: Path) -> int | None:
        """How many cases the submissions have in all."""
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


def is_judging(path: Path) -> bool:
    """Whether a process is judging into a results directory; its lock is not taken."""
    is_locked = is_held(path / LOCK_FILE)
    return _moved_lately(path / CASES_FILE) if is_locked is None else is_locked


def _moved_lately(path: Path) -> bool:
    try:
        # A file from the future was written before the clock was set back.
        return abs(time.time() - path.stat().st_mtime) < _QUIET_S
    except OSError:
        return False


def signature_of(path: Path) -> tuple[tuple[int, int] | None, ...]:
    """Modification times and sizes of a run's files, which change whenever the run does."""
    signature: list[tuple[int, int] | None] = []
    for name in _FILES:
        try:
            status = (path / name).stat()
        except OSError:
            signature.append(None)
        else:
            signature.append((status.st_mtime_ns, status.st_size))
    return tuple(signature)


@dataclass(slots=True)
class _Tail:
    """The verdicts of a growing cases.jsonl; each line is read once."""

    lines: GrowingLines
    verdicts: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def read(self) -> None:
        """Reads what was appended; starts again if the file was replaced by a shorter one."""
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


MAX_COMPARED = 24
"""How many runs one page compares at most: they form 276 pairs, and each pair takes a bootstrap."""


class ViewPage(LocalPage):
    """The runs of a results folder: a list, the report of each, and comparisons.

    The documents are ``/``, ``/compare?run=A&run=B`` and ``/runs/NAME/``; their scripts request
    ``/progress.json``, ``/runs/NAME/pages/NUMBER`` and ``/runs/NAME/report.json``.

    Args:
        folder: a results directory, or a folder of them.
        dataset: the suite; None for the one that each run names.
        port: the port that requests must name.

    Raises:
        StoreError: no such folder.
    """

    def __init__(self, folder: Path, dataset: str | None = None, port: int = 0) -> None:
        super().__init__("judge view", INLINE_POLICY, port, only_reads=True)
        self._shelf = RunShelf(folder, dataset)

    # -- documents ---------------------------------------------------------------------------------

    def index(self) -> str:
        """All runs, best first."""
        listed = [self._listed(name) for name in self._shelf.runs()]
        return render_runs(self._shelf.folder.name, listed, token=self.token)

    def is_document(self, path: str) -> bool:
        """The list, comparisons, and the reports of runs."""
        return path in {"/", "/compare"} or (_parts(path)[1:] == [""])

    def document(self, path: str, request: Request) -> str:
        """The document at a path."""
        if path == "/":
            return self.index()
        if path == "/compare":
            return self._comparison(request.query_params.getlist("run"))
        name = _parts(path)[0]
        opened = self._shelf.open(name)
        served = PageLinks(
            pages_url=f"/runs/{quote(name, safe='')}/pages/",
            home_url=f"/?token={self.token}",
            token=self.token,
        )
        return render_served(opened.data, opened.document, served)

    def _listed(self, name: str) -> ListedRun:
        check_wanted()
        progress = self._shelf.progress(name)
        try:
            document: Any = _summary(self._shelf.scores(name).to_json())
            problem = ""
        except UnwantedError:
            raise
        except JudgeError as error:
            where = f"{self._shelf.path(name)}: "
            document, problem = None, error.message.removeprefix(where)
        except Exception as error:  # noqa: BLE001  one broken run must not hide the others
            kind = type(error).__name__
            document, problem = None, f"its records cannot be shown ({kind}: {error})"
        return ListedRun(name, document, progress.to_json(), problem)

    def _comparison(self, given: list[str]) -> str:
        names = list(dict.fromkeys(given))
        if len(names) > MAX_COMPARED:
            raise UsageError(
                f"{len(names)} runs are too many for one page; it compares at most {MAX_COMPARED}",
                hint="Choose fewer; `judge compare-runs` compares any number of runs.",
            )
        return render_comparison(self._shelf.compare(names), token=self.token)

    # -- what their scripts request ----------------------------------------------------------------

    def respond(
        self, method: str, path: str, request: Request, body: bytes
    ) -> Mapping[str, Any] | None:
        """The progress of all runs, the report of a run as JSON, or one of its task pages."""
        del request, body
        if method != "GET":
            return None
        if path == "/progress.json":
            return {name: self._shelf.progress(name).to_json() for name in self._shelf.runs()}
        match _parts(path):
            case [name, "report.json"]:
                return self._shelf.open(name).document
            case [name, "pages", number]:
                return self._shelf.open(name).page(number)
        return None

    def refusal(self, error: JudgeError) -> tuple[dict[str, Any], int]:
        """The answer to an error, with status 404 if something does not exist."""
        answer, status = super().refusal(error)
        return answer, 404 if isinstance(error, StoreError) else status


def _parts(path: str) -> list[str]:
    """Splits a path below ``/runs/`` into the name of a run and the resource that is requested."""
    return path.removeprefix("/runs/").split("/") if path.startswith("/runs/") else []


def _summary(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in ("name", "run", "overall", "notes", "departures")}
