"""Engines whose answers are stored on disk, so that a second measurement does not run them."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from pathlib import Path

from judge.errors import RecalcError
from judge.files.writing import write_whole
from judge.recalc.contract import (
    PLAIN,
    CrashedError,
    Dialect,
    Engine,
    EngineResult,
    EngineUnavailableError,
    OutOfTimeError,
)
from judge.recalc.services import services_digest
from judge.workbook.cell import CellRange


class RememberedEngine:
    """An engine that computes each workbook only once, for this process and later ones.

    The key of an answer is the engine's version, the code of the services, the package, the ranges
    and the dialect. If an engine ran out of time or ended, it is run again.

    Args:
        engine: the engine.
        folder: the folder with its answers; only this program writes there.
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def name(self) -> str:
        """The engine's name."""
        return self._engine.name

    @property
    def version(self) -> str:
        """The engine's version."""
        return self._engine.version

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        """Returns the engine's stored or new answer; see :class:`judge.recalc.contract.Engine`."""
        key_parts = (
            (self.name, self.version, services_digest()),
            hashlib.sha256(workbook).hexdigest(),
            tuple(ranges),
            (sorted(dialect.names.items()), dialect.date_1904),
        )
        path = self._folder / hashlib.sha256(repr(key_parts).encode()).hexdigest()
        if path.exists():
            answer = pickle.loads(path.read_bytes())
            if isinstance(answer, str):
                raise RecalcError(answer)
            result = EngineResult(*answer)
            if result.seconds > timeout_s:
                raise OutOfTimeError(f"{self.name}: took longer than {timeout_s:g} s")
            return result
        try:
            result = self._engine.compute(workbook, ranges, timeout_s=timeout_s, dialect=dialect)
        except (OutOfTimeError, CrashedError, EngineUnavailableError):
            raise
        except RecalcError as error:
            write_whole(path, pickle.dumps(str(error)))
            raise
        write_whole(path, pickle.dumps((dict(result.values), dict(result.failed), result.seconds)))
        return result

    def close(self) -> None:
        """Ends the engine."""
        self._engine.close()
