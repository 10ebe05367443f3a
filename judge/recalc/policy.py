"""Decides which formula cells are computed, trusted or left without a value."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Sequence
from dataclasses import replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from judge.core.submission import Origin
from judge.errors import RecalcError
from judge.recalc.cache import ResultCache
from judge.recalc.contract import CellVotes, Engine, EngineUnavailableError
from judge.recalc.names import Mode
from judge.recalc.services import services_digest
from judge.recalc.trust import TrustTable, table_digest, trust_table
from judge.recalc.wanted import (
    ChosenCells,
    replaced_cells,
    untrusted_cells,
)
from judge.workbook.cell import (
    NOTHING_COMPUTED,
    CellRange,
    CellRef,
    ComputedValues,
)
from judge.workbook.reader import Workbook

if TYPE_CHECKING:
    from judge.recalc.calculation import Calculation
    from judge.recalc.explaining import Explanation

DEFAULT_TIMEOUT_S = 60.0
"""Processor seconds that one engine may take for one workbook."""

RULES = 20
"""Version of the rules; incremented whenever the policy or the cascade decides differently."""


class Recalculator:
    """Computes formula cells where the policy requires it, and only there.

    Safe to use from several threads.

    Args:
        engines: the available engines; none is started before a formula needs it.
        mode: ``auto`` computes the cells without a trusted value, ``never`` none, ``always`` every
            formula cell of the requested ranges.
        timeout_s: processor seconds that one engine may take for one workbook.
        cache: keeps results by content; None for a new cache in memory.
        lenient_names: whether newer functions without their prefix are computed (Excel shows
            ``#NAME?``); a note then says so.
        trust: how often each engine is right; None for the table that ships with the package.
        missing: engines that are not installed, for messages.
    """

    def __init__(
        self,
        engines: Sequence[Engine],
        *,
        mode: Mode = "auto",
        timeout_s: float = DEFAULT_TIMEOUT_S,
        cache: ResultCache | None = None,
        lenient_names: bool = False,
        trust: TrustTable | None = None,
        missing: Sequence[str] = (),
    ) -> None:
        self._engines = tuple(engines)
        self._mode = mode
        self._timeout_s = timeout_s
        self._cache = cache if cache is not None else ResultCache()
        self._lenient = lenient_names
        self._missing = missing
        self._trust = trust
        self._identity: tuple[str, ...] | None = None
        self._lock = threading.Lock()

    @functools.cached_property
    def _calculation(self) -> Calculation:
        """Computes the cells; imported and made when the first cell has to be computed."""
        make: type[Calculation] = resolve_name("judge.recalc.calculation:Calculation")
        return make(
            self._engines,
            lambda: self.identity,
            self._cache,
            self._trust if self._trust is not None else trust_table(),
            timeout_s=self._timeout_s,
            lenient_names=self._lenient,
            missing=self._missing,
        )

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The available engines."""
        return self._engines

    @property
    def identity(self) -> tuple[str, ...]:
        """Everything that determines results: engines, their versions, a digest of our rules.

        Starts the engines to ask for their versions; an engine that does not answer is included
        without a version.
        """
        with self._lock:
            if self._identity is None:
                self._identity = self._describe()
            return self._identity

    def _describe(self) -> tuple[str, ...]:
        if self._mode == "never":
            return ("never",)
        engines = []
        for engine in self._engines:
            try:
                engines.append(f"{engine.name} {engine.version}")
            except EngineUnavailableError:
                # It may answer the next time, so the version is not remembered.
                engines.append(f"{engine.name} of an unknown version")
            except RecalcError:
                continue
        if not engines:
            return ()
        rules = f"{RULES}{services_digest()}{table_digest()}"
        engines.append(f"rules {hashlib.sha256(rules.encode()).hexdigest()[:12]}")
        if self._lenient:
            engines.append("lenient names")
        return tuple(engines)

    def fill(
        self,
        workbook: Workbook,
        ranges: Sequence[CellRange],
        *,
        origin: Origin,
        like: Workbook | None = None,
    ) -> ComputedValues:
        """Computes the formula cells of some ranges that have no trusted value.

        Args:
            workbook: an open workbook.
            ranges: rectangles on its sheets, by their real names.
            origin: where the workbook comes from.
            like: the gold of an output, whose stored values show in which region it was saved;
                for a gold, the gold itself.

        Returns:
            The values of the computed cells, in the types that the reader returns, and the cells
            that no engine could compute with the reason. All other cells keep the value in the
            file.

        Raises:
            WorkbookError: the ranges cannot be read.
            EngineUnavailableError: an installed engine cannot be started.
        """
        chosen = self._chosen(workbook, ranges, origin)
        if chosen.cells:
            return self._calculation.fill(workbook, chosen, origin=origin, like=like)
        if chosen.refused:
            return replace(NOTHING_COMPUTED, not_calculated=chosen.refused)
        return NOTHING_COMPUTED

    def _chosen(
        self, workbook: Workbook, ranges: Sequence[CellRange], origin: Origin
    ) -> ChosenCells:
        cells, unseen = untrusted_cells(workbook, ranges, self._mode, origin)
        refused = replaced_cells(workbook, ranges, self._mode, origin)
        return ChosenCells([cell for cell in cells if cell.ref not in refused], refused, unseen)

    def changing_cells(self, workbook: Workbook, cells: Sequence[CellRef]) -> set[CellRef]:
        """Those of the given formula cells that depend on a volatile function.

        If there are many cells and any of them depends on one, all of them are returned.

        Raises:
            WorkbookError: the cells cannot be read.
        """
        return self._calculation.changing_cells(workbook, cells)

    def explain(self, workbook: Workbook, ref: CellRef, *, origin: Origin) -> Explanation:
        """Computes one cell as :meth:`fill` does, and returns the answers of all engines.

        The cache is not used, and engines that the decision does not need are asked as well.

        Args:
            workbook: an open workbook.
            ref: the cell, on a sheet by its real name.
            origin: where the workbook comes from.

        Raises:
            WorkbookError: the workbook cannot be read.
            EngineUnavailableError: an installed engine cannot be started.
        """
        area = CellRange(ref.sheet, ref.row, ref.column, ref.row, ref.column)
        chosen = self._chosen(workbook, [area], origin)
        return self._calculation.explain(workbook, ref, chosen, origin=origin)

    def votes(
        self, workbook: Workbook, ranges: Sequence[CellRange], like: Workbook | None
    ) -> dict[CellRef, CellVotes]:
        """The answers of every engine except the slow one, and of the judge, for formula cells.

        Raises:
            WorkbookError: the ranges cannot be read.
            EngineUnavailableError: an installed engine cannot be started.
        """
        return self._calculation.votes(workbook, ranges, like)

    def close(self) -> None:
        """Ends the engines; safe to call twice."""
        for engine in self._engines:
            engine.close()
