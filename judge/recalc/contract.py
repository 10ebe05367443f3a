"""The interface of a calculation engine, and its results and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from judge.errors import RecalcError
from judge.workbook.cell import CellRange, CellRef, CellValue


class EngineUnavailableError(RecalcError):
    """An engine cannot be started. This is the judge's own fault, whatever the workbook holds."""


class OutOfTimeError(RecalcError):
    """An engine used up its processor time for a workbook."""


class CrashedError(RecalcError):
    """An engine ended while it computed a workbook, which may or may not be at fault."""


NO_VALUE = "the engine has no value for the cell"
"""Why a requested cell that an engine's result does not mention has no value."""


class RangeValues(Mapping[CellRef, CellValue]):
    """The values of the cells of some ranges, which are kept as an engine sent them.

    Args:
        ranges: each range, and its values row by row; None for a cell without a value.
    """

    def __init__(self, ranges: Sequence[tuple[CellRange, Sequence[CellValue]]]) -> None:
        self._ranges = ranges

    def __getitem__(self, ref: CellRef) -> CellValue:
        for area, flat in self._ranges:
            if area.has(ref):
                at = (ref.row - area.min_row) * area.columns + ref.column - area.min_column
                value = flat[at]
                if value is not None:
                    return value
        raise KeyError(ref)

    def __iter__(self) -> Iterator[CellRef]:
        for area, flat in self._ranges:
            refs = area.refs()
            yield from (ref for ref, value in zip(refs, flat, strict=True) if value is not None)

    def __len__(self) -> int:
        return sum(len(flat) - flat.count(None) for _, flat in self._ranges)

    def at(
        self, positions: Sequence[tuple[Sequence[CellRef], Sequence[int]]]
    ) -> dict[CellRef, CellValue]:
        """The values of some cells.

        Args:
            positions: for each range, cells and their positions in it, row by row from 0.
        """
        return {
            ref: value
            for (_, flat), (refs, indexes) in zip(self._ranges, positions, strict=True)
            for ref, value in zip(refs, map(flat.__getitem__, indexes), strict=True)
            if value is not None
        }


@dataclass(frozen=True, slots=True)
class EngineResult:
    """The result of one engine for one workbook.

    Attributes:
        values: cell of the requested ranges -> the engine's value, if it has one. Dates are serial
            numbers: they become dates only where the cell's number format is known.
        failed: cell that the engine could not compute -> why. A cell of the requested ranges that
            is in neither mapping has no value.
        seconds: processor time of the calculation, without starting the engine.
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
        names: name of a function that is called without a prefix -> the name that replaces it
            before the calculation. ``XLOOKUP`` -> ``_xlfn.XLOOKUP`` makes engines compute it;
            ``XLOOKUP`` -> a name that no engine knows gives the ``#NAME?`` that Excel shows.
        date_1904: whether the workbook counts its days from 1904.
    """

    names: Mapping[str, str] = field(default_factory=_no_names)
    date_1904: bool = False


PLAIN = Dialect()
"""Formulas as written, days counted from 1900."""


class Engine(Protocol):
    """A program that calculates workbooks. It runs in isolation, since it reads solutions' files.

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
            OutOfTimeError: the calculation took longer; the engine can still be used.
            CrashedError: the engine ended; the next call starts it again.
            RecalcError: the engine cannot open the workbook; the engine can still be used.
            EngineUnavailableError: the engine cannot be started, or hangs.
        """
        ...

    def close(self) -> None:
        """Ends the engine's processes; safe to call twice."""
        ...


@runtime_checkable
class TeamedEngine(Engine, Protocol):
    """An engine that can compute a workbook together with another one, which saves time."""

    def is_teamed_with(self, other: Engine) -> bool:
        """Whether the two engines can compute a workbook together."""
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
        """Like :meth:`Engine.compute`, with this engine and then with a second one.

        Each of them may take ``timeout_s``.

        Returns:
            Both results; if the second engine fails, the error instead of its result.
        """
        ...
