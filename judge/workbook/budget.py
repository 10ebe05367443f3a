"""The limits on reading a workbook, and how much of them is left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from judge.errors import WorkbookError


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits on the cost of reading a workbook.

    The workbooks of the published suites stay far below all of them.

    Attributes:
        file_bytes: size of the file itself.
        entries: entries in the archive.
        part_bytes: inflated size of one part.
        total_bytes: total of inflated bytes that are read from one workbook.
        ratio: inflated size divided by packed size, for parts larger than ``ratio_floor_bytes``.
        ratio_floor_bytes: parts up to this inflated size may have any ratio.
        cells: stored cells of one workbook that are kept in memory.
        kept_chars: characters of strings and formulas of one workbook that are kept in memory.
        text_chars: characters of one cell, string or formula.
        formula_chars: characters of the formulas that are read, with shared formulas written out.
            Each cell's formula counts once, and as at least :data:`MIN_FORMULA_CHARS`.
        token_bytes: bytes of one tag with its attributes.
        depth: nesting of elements.
        seconds: processor time spent reading one workbook, however busy the machine is.
        work_seconds: processor time spent on everything that is done with one output, reading
            included: the last resort if none of the other bounds has stopped it.
    """

    file_bytes: int = 256 << 20
    entries: int = 20_000
    part_bytes: int = 512 << 20
    total_bytes: int = 1 << 30
    ratio: int = 250
    ratio_floor_bytes: int = 16 << 20
    cells: int = 2_500_000
    kept_chars: int = 128 << 20
    text_chars: int = 1 << 20
    formula_chars: int = 16 << 20
    token_bytes: int = 4 << 20
    depth: int = 200
    seconds: float = 20.0
    work_seconds: float = 60.0


MIN_FORMULA_CHARS = 16
"""How many characters a formula counts as at least, however short it is."""

_CHARS_OF_A_LOOK = 4096
"""The clock is read once per this many characters of formulas; reading it takes 0.5 µs."""

DEFAULT_LIMITS = ReadLimits()
"""Limits that all published workbooks meet, and that stop every known decompression bomb."""


class Budget:
    """What is left of a workbook's limits; everything that reads the workbook shares it."""

    def __init__(self, limits: ReadLimits) -> None:
        self.limits = limits
        self._bytes_left = limits.total_bytes
        self._cells_left = limits.cells
        self._chars_left = limits.kept_chars
        self._formula_chars_left = limits.formula_chars
        self._unclocked_chars = 0
        self._seconds_left = limits.seconds
        self._work_seconds_left = limits.work_seconds
        self._stop_at_s: float | None = None

    def take_bytes(self, count: int) -> None:
        """Counts inflated bytes.

        Raises:
            WorkbookError: the workbook inflates to more than it may.
        """
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise WorkbookError(
                f"the workbook inflates to more than {self.limits.total_bytes:,} bytes"
            )

    def take_cells(self, count: int) -> None:
        """Counts cells that are kept.

        Raises:
            WorkbookError: more cells are stored than may be kept.
        """
        self._cells_left -= count
        if self._cells_left < 0:
            raise WorkbookError(f"more than {self.limits.cells:,} cells are stored in the range")

    def take_chars(self, count: int) -> None:
        """Counts characters that are kept.

        Raises:
            WorkbookError: more text is stored than may be kept.
        """
        self._chars_left -= count
        if self._chars_left < 0:
            raise WorkbookError(
                f"more than {self.limits.kept_chars:,} characters are stored in the range"
            )

    def take_formula(self, length: int) -> None:
        """Counts the characters of a formula that is written out.

        Raises:
            WorkbookError: more characters of formulas are read than may be.
        """
        length = max(length, MIN_FORMULA_CHARS)
        self._formula_chars_left -= length
        if self._formula_chars_left < 0:
            raise WorkbookError(
                f"the workbook's formulas come to more than {self.limits.formula_chars:,} "
                "characters, shared ones written out"
            )
        self._unclocked_chars += length
        if self._unclocked_chars > _CHARS_OF_A_LOOK:
            self._unclocked_chars = 0
            self._check_clock()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Counts the processor time of this thread towards the limit of the workbook.

        Raises:
            WorkbookError: the time is used up.
        """
        started = time.thread_time()
        outer, self._stop_at_s = self._stop_at_s, started + self._work_seconds_left
        try:
            yield
        finally:
            self._stop_at_s = outer
            if outer is None:
                self._work_seconds_left -= time.thread_time() - started

    def _check_clock(self) -> None:
        if self._stop_at_s is not None and time.thread_time() > self._stop_at_s:
            raise WorkbookError(
                "judging the workbook takes more than "
                f"{self.limits.work_seconds:g} s of processor time"
            )

    @property
    def is_mostly_left(self) -> bool:
        """Whether at least seven eighths of every limit are left."""
        limits = self.limits
        left = (
            (self._bytes_left, limits.total_bytes),
            (self._cells_left, limits.cells),
            (self._chars_left, limits.kept_chars),
            (self._formula_chars_left, limits.formula_chars),
            (self._seconds_left, limits.seconds),
        )
        return all(8 * part >= 7 * whole for part, whole in left)

    def check(self) -> None:
        """Makes sure that no limit was exceeded, for callers that continue after an error.

        Raises:
            WorkbookError: a limit was exceeded.
        """
        self.take_bytes(0)
        self.take_cells(0)
        self.take_chars(0)
        self.take_seconds(0)

    def take_seconds(self, count: float) -> None:
        """Counts reading time.

        Raises:
            WorkbookError: reading takes longer than it may.
        """
        self._check_clock()
        self._seconds_left -= count
        if self._seconds_left < 0:
            raise WorkbookError(f"reading the workbook takes more than {self.limits.seconds:g} s")
