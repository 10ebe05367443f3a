"""What a calculation engine does, and what the policy asks of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from judge.compare.cell import CellRange, CellRef, CellValue


@dataclass(frozen=True, slots=True)
class EngineResult:
    """What one engine says of one workbook.

    Attributes:
        values: every *formula* cell of the asked ranges that the engine computed.
        failed: formula cells that it could not compute -> why.
        seconds: how long it took, start-up of the engine not counted.
    """

    values: Mapping[CellRef, CellValue]
    failed: Mapping[CellRef, str]
    seconds: float


class Engine(Protocol):
    """A program that calculates workbooks. Runs sealed off: it reads what a solution wrote.

    Safe to use from several threads; calls may wait for each other.
    """

    @property
    def name(self) -> str:
        """Short name, such as ``libreoffice``."""
        ...

    @property
    def version(self) -> str:
        """The engine's own version; may start the engine once."""
        ...

    def compute(
        self, workbook: bytes, ranges: Sequence[CellRange], *, timeout_s: float
    ) -> EngineResult:
        """Calculates a whole workbook anew and returns the formula cells of some ranges.

        Raises:
            RecalcError: the engine cannot open the workbook, or took longer than ``timeout_s``;
                the next call works again.
        """
        ...

    def close(self) -> None:
        """Ends what the engine started; safe to call twice."""
        ...
