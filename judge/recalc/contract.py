"""The interface of calculation engines: requests, results and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from judge.errors import RecalcError
from judge.recalc.names import LIBREOFFICE
from judge.recalc.trust import PAIR_ENGINES
from judge.workbook.cell import CellRange, CellRef, CellValue

if TYPE_CHECKING:
    from judge.formulas.shapes import Call
    from judge.recalc.support import Reads
    from judge.workbook.dependency import Dependencies


class EngineUnavailableError(RecalcError):
    """An engine cannot be started. This is the judge's own fault, whatever the workbook holds."""


class OutOfTimeError(RecalcError):
    """An engine used up its processor time for a workbook."""


class CrashedError(RecalcError):
    """An engine ended while it computed a workbook; the workbook may or may not be at fault."""


NO_VALUE = "the engine has no value for the cell"
"""The reason that is recorded for a requested cell that an engine's result does not mention."""


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


QUICK_S = 0.3
QUICK_S_OF_FORMULA = 1e-3
QUICK_S_OF_BYTE = 2e-6
"""Processor seconds that each quick engine gets if LibreOffice can compute everything as well, plus
what it gets for each formula and for each byte that it opens. This is several times what they need
in the published suites. LibreOffice finishes sooner than an engine that needs more."""


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One request to the engines: the values of some cells of a workbook.

    Attributes:
        workbook: the package.
        formulas: cell -> its formula (or the array formula that fills it), for the requested cells
            and the cells that they depend on.
        dependencies: what the cells depend on.
        dialect: how the formulas are interpreted.
        timeout_s: processor seconds that one engine may take.
        intersecting: cells whose formula takes a range where Excel expects one value, and is not an
            array formula. The quick engines compute an array there; Excel does not.
        arrays: cells that an array formula or a data table fills.
        wanted: the requested cells; None for all of ``formulas``.
        reads_text: where the workbook has text beyond ASCII, for which engines have no records;
            None if it has none.
        reads_logical: where the workbook has TRUE and FALSE as constants; None if it has none.
        reads_spilled: where formulas may spill to; None if no formula spills.
        reads_nameless: where the workbook has ``#NAME?`` as constants; None if it has none.
        slim: the package that the quick engines get; None if they get the same as LibreOffice.
        narrowed: makes the package that the quick engines get for the sure cells, with only the
            formulas of these; None if they get the same package.
        lambdas: names in the workbook that are defined as functions, in upper case.
    """

    workbook: bytes
    formulas: Mapping[CellRef, str]
    dependencies: Dependencies
    dialect: Dialect
    timeout_s: float
    intersecting: frozenset[CellRef] = frozenset()
    arrays: AbstractSet[CellRef] = frozenset()
    wanted: AbstractSet[CellRef] | None = None
    reads_text: Reads | None = None
    reads_logical: Reads | None = None
    reads_spilled: Reads | None = None
    reads_nameless: Reads | None = None
    slim: bytes | None = None
    narrowed: Callable[[AbstractSet[CellRef]], bytes] | None = None
    lambdas: frozenset[str] = frozenset()

    @property
    def requested(self) -> AbstractSet[CellRef]:
        """The requested cells."""
        return self.formulas.keys() if self.wanted is None else self.wanted

    def package_for(self, engine: str) -> bytes:
        """The package that is sent to an engine."""
        return self.workbook if engine == LIBREOFFICE or self.slim is None else self.slim

    def narrowed_to(self, sure: AbstractSet[CellRef]) -> EngineRequest:
        """The request for the sure cells, in a workbook that contains no other formulas.

        Args:
            sure: all sure cells, requested or not.
        """
        if self.narrowed is None:
            return self
        return replace(
            self,
            formulas={cell: text for cell, text in self.formulas.items() if cell in sure},
            dependencies=replace(self.dependencies, cells=len(sure)),
            slim=self.narrowed(sure),
        )

    @property
    def quick_s(self) -> float:
        """Time limit, in processor seconds, of a quick engine if LibreOffice can take over."""
        formulas, size = self.dependencies.cells, len(self.package_for(PAIR_ENGINES[0]))
        enough_s = QUICK_S + QUICK_S_OF_FORMULA * formulas + QUICK_S_OF_BYTE * size
        return min(enough_s, self.timeout_s)


@dataclass(slots=True)
class CascadeResult:
    """The combined result of the engines.

    Attributes:
        values: cell -> value; dates are still serial numbers.
        failed: cell -> why it has no value.
        used: engines whose values were taken.
        office_alone: cells with a value that LibreOffice alone gave.
        notes: disagreements and crashes of engines.
        complete: whether every engine that could change a value answered well within its time
            limit, so that it would answer in any run.
    """

    values: dict[CellRef, CellValue] = field(default_factory=dict)
    failed: dict[CellRef, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    office_alone: set[CellRef] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    complete: bool = True

    def updated(self, newer: CascadeResult) -> CascadeResult:
        """Merges a newer result into this one; it replaces the values of the cells that it has."""
        cells = newer.values.keys() | newer.failed.keys()
        return replace(
            newer,
            values={
                **{ref: value for ref, value in self.values.items() if ref not in cells},
                **newer.values,
            },
            failed={
                **{ref: why for ref, why in self.failed.items() if ref not in cells},
                **newer.failed,
            },
            used=self.used | newer.used,
            office_alone=(self.office_alone - cells) | newer.office_alone,
            notes=[*self.notes, *(note for note in newer.notes if note not in self.notes)],
            complete=self.complete and newer.complete,
        )


@dataclass(frozen=True, slots=True)
class CellVotes:
    """The answers of engines for a cell.

    Attributes:
        formula: its formula.
        calls: what the formula calls.
        votes: engine -> its value, if that value is usable.
        typed: the same values, in the types that the reader would return.
    """

    formula: str
    calls: tuple[Call, ...]
    votes: Mapping[str, CellValue]
    typed: Mapping[str, CellValue]
