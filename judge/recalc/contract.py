"""What a calculation engine does, and what the policy asks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from judge.errors import RecalcError
from judge.workbook.cell import CellRange, CellRef, CellValue


class EngineUnavailableError(RecalcError):
    """An engine cannot be started: the judge's own fault, whatever the workbook contains."""


class OutOfTimeError(RecalcError):
    """An engine used up the processor time that it was given for a workbook."""


class CrashedError(RecalcError):
    """An engine ended while it computed a workbook; that may be the workbook's fault or not."""


@dataclass(frozen=True, slots=True)
class EngineResult:
    """What one engine computed for one workbook.

    Attributes:
        values: every cell of the requested ranges for which the engine has a value. Numbers are
            numbers: a serial becomes a date only where the cell's number format is known.
        failed: cells that it could not compute -> why.
        seconds: processor time that it took, start-up of the engine not counted.
    """

    values: Mapping[CellRef, CellValue]
    failed: Mapping[CellRef, str]
    seconds: float


def _no_names() -> Mapping[str, str]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the formulas of a workbook are interpreted where their text does not determine it.

    Attributes:
        names: function names that replace others before the calculation, where these are called
            without a prefix: ``XLOOKUP`` -> ``_xlfn.XLOOKUP`` computes it, ``XLOOKUP`` -> a name
            that no engine knows makes it the ``#NAME?`` that Excel shows.
        date_1904: whether the workbook counts its days from 1904.
    """

    names: Mapping[str, str] = field(default_factory=_no_names)
    date_1904: bool = False


PLAIN = Dialect()
"""Formulas as written, days counted from 1900."""


class Engine(Protocol):
    """A program that calculates workbooks. It runs isolated, since it reads what a solution wrote.

    Safe to use from several threads; calls may wait for each other.
    """

    @property
    def name(self) -> str:
        """Short name, such as ``libreoffice``."""
        ...

    @property
    def version(self) -> str:
        """The engine's own version; may start the engine once.

        Raises:
            RecalcError: the engine cannot be started.
        """
        ...

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        """Recalculates a whole workbook and returns the cells of some ranges.

        Args:
            workbook: the package.
            ranges: rectangles to read, on sheets by their real names.
            timeout_s: processor seconds that the calculation may take, however long the engine
                waits for a processor.
            dialect: how its formulas are interpreted.

        Raises:
            OutOfTimeError: the calculation took more; the next call works again.
            CrashedError: the engine ended; the next call works again.
            RecalcError: the engine cannot open the workbook; the next call works again.
            EngineUnavailableError: the engine cannot be started, or hangs.
        """
        ...

    def close(self) -> None:
        """Ends what the engine started; safe to call twice."""
        ...


@runtime_checkable
class TeamedEngine(Engine, Protocol):
    """An engine that can compute a workbook together with another one, for less than twice."""

    def is_teamed_with(self, other: Engine) -> bool:
        """Whether the two can be asked together."""
        ...

    def compute_both(
        self,
        second: Engine,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> tuple[EngineResult, EngineResult | RecalcError]:
        """As :meth:`Engine.compute`, with this engine and then with a second one.

        Each may take ``timeout_s``.

        Returns:
            Both results; if the second engine fails, the reason takes the place of its result.
        """
        ...
