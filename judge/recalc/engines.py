"""Implements all engines; they differ only in the service that does the computing."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.compare.sealed import UnreadableFileError
from judge.errors import RecalcError
from judge.files.documents import read_kept
from judge.files.writing import write_whole
from judge.recalc.contract import PLAIN, Dialect, Engine, EngineResult, OutOfTimeError
from judge.recalc.service import ServicePool, compute_request, read_answer
from judge.workbook.cell import CellRange


class VersionBook:
    """Keeps the versions of engines on disk, in one file for each root.

    If a file cannot be read or written, the engines are asked again, which only costs time.

    Args:
        folder: where the files are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, root: str) -> Mapping[str, str]:
        """Engine -> version, as recorded for a root; empty if nothing was recorded.

        Args:
            root: the digest of the root.
        """
        noted = read_kept(self._path(root))
        if not isinstance(noted, dict):
            return {}
        return {str(name): str(version) for name, version in noted.items()}

    def put(self, root: str, versions: Mapping[str, str]) -> None:
        """Records the versions that the engines of a root reported."""
        with contextlib.suppress(OSError):
            path = self._path(root)
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_whole(path, json.dumps(dict(versions)).encode())

    def _path(self, root: str) -> Path:
        return self._folder / f"{hashlib.sha256(root.encode()).hexdigest()[:32]}.json"


INSTALL_COMMAND = "judge sandbox build"
"""The command that installs the engines in the sandbox."""

DESCRIBE_TIMEOUT_S = 10.0
"""Processor seconds to report a version, which includes the start of soffice (about 0.3 s)."""


class ServiceEngine:
    """An engine that runs in a service program inside the sandbox.

    Args:
        name: one of :data:`judge.recalc.names.ENGINE_NAMES`.
        pool: channels to the service; shared with other engines of the same program, so the caller
            that made it closes it.
        root: digest of the root that holds the engine.
        book: where the engine's version is recorded per root; if None, the engine is queried.
    """

    def __init__(
        self,
        name: str,
        pool: ServicePool,
        *,
        root: str | None = None,
        book: VersionBook | None = None,
    ) -> None:
        self._name = name
        self.pool = pool
        self._root = root
        self._book = book
        self._version: str | None = None

    @property
    def name(self) -> str:
        """Short name."""
        return self._name

    @property
    def version(self) -> str:
        """The engine's own version; asks the service once, unless it is recorded for the root.

        Raises:
            RecalcError: the service cannot be started, or the engine is not installed there.
        """
        if self._version is None:
            versions = self._noted() or self._described()
            version = versions.get(self._name)
            if version is None:
                raise RecalcError(
                    f"{self._name} is not installed in the sandbox",
                    hint=f"Run `{INSTALL_COMMAND}`.",
                )
            self._version = version
        return self._version

    def _noted(self) -> Mapping[str, str]:
        return self._book.get(self._root) if self._book and self._root else {}

    def _described(self) -> Mapping[str, str]:
        answer = self.pool.ask({"op": "describe"}, b"", DESCRIBE_TIMEOUT_S)
        if "error" in answer:
            raise RecalcError(f"{self._name}: {answer['error']}")
        versions = {str(name): str(version) for name, version in answer["versions"].items()}
        if self._book and self._root:
            self._book.put(self._root, versions)
        return versions

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        """Calculates a workbook; see :class:`judge.recalc.contract.Engine`."""
        stop_s = _stopped_at_s(timeout_s)
        request = compute_request(self._name, ranges, dialect, stop_s)
        answer = self.pool.ask(request, workbook, stop_s)
        return _in_time(answer, ranges, self._name, timeout_s)

    def is_teamed_with(self, other: Engine) -> bool:
        """Whether another engine runs in the same service."""
        return isinstance(other, ServiceEngine) and other.pool is self.pool

    def compute_both(
        self,
        second: Engine,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> tuple[EngineResult, EngineResult | RecalcError]:
        """Calculates with two engines; see :class:`judge.recalc.contract.TeamedEngine`."""
        stop_s = _stopped_at_s(timeout_s)
        request = compute_request(self._name, ranges, dialect, stop_s)
        request["then"] = second.name
        answer = self.pool.ask(request, workbook, 2 * stop_s)
        first = _in_time(answer, ranges, self._name, timeout_s)
        then = answer.get("then")
        try:
            second_answer = then if isinstance(then, dict) else {}
            return first, _in_time(second_answer, ranges, second.name, timeout_s)
        except RecalcError as error:
            return first, error

    def print_sheet(self, workbook: bytes, number: int, *, timeout_s: float) -> list[str]:
        """Returns the lines of a sheet as text; only LibreOffice can do this.

        Raises:
            UnreadableFileError: the workbook cannot be printed.
            RecalcError: the service cannot be started, or does not answer.
        """
        request = compute_request(self._name, (), PLAIN, timeout_s)
        answer = self.pool.ask({**request, "print": number}, workbook, timeout_s)
        if "error" in answer:
            raise UnreadableFileError(f"{self._name}: {answer['error']}")
        return [str(line) for line in answer["values"][0]]

    def read_file(
        self, reader: str, data: bytes, options: Mapping[str, Any], *, timeout_s: float
    ) -> Mapping[str, Any]:
        """Reads a file with a reader of the service; only the embedded engines' service has any.

        Raises:
            UnreadableFileError: the file cannot be read.
            RecalcError: the service cannot be started, or does not answer.
        """
        request = compute_request(reader, (), PLAIN, timeout_s)
        answer = self.pool.ask({**request, **options, "op": "read"}, data, timeout_s)
        if "error" in answer:
            raise UnreadableFileError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """Ends the service."""
        self.pool.close()


def _in_time(
    answer: Mapping[str, Any], ranges: Sequence[CellRange], engine: str, timeout_s: float
) -> EngineResult:
    """Returns the cells of an answer if the processor time that it reports is within the limit."""
    if not answer.get("timed_out"):
        result = read_answer(answer, ranges, engine)
        if result.seconds <= timeout_s:
            return result
    raise OutOfTimeError(f"{engine}: took longer than {timeout_s:g} s of processor time")


def _stopped_at_s(timeout_s: float) -> float:
    """Processor seconds after which the service ends an engine: somewhat more than the limit.

    The reported time then decides whether the engine was within the limit. The service checks the
    engine every 50 ms of wall-clock time, and includes the time to read the request and to write
    the answer.
    """
    return 0.1 + 1.1 * timeout_s
