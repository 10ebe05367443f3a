"""Computing one workbook from outside the grading: for the command and the library."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.core.submission import Origin
from judge.errors import WorkbookError
from judge.files.writing import write_whole
from judge.recalc.rewrite import with_values
from judge.recalc.select import open_recalculator, recalc_cache_folder
from judge.sandbox import open_sandbox
from judge.workbook.cell import CellRange, ComputedValues
from judge.workbook.position import SheetIndex, parse_position, resolve_position
from judge.workbook.reader import Workbook, open_workbook


@dataclass(frozen=True, slots=True)
class Recalculation:
    """The result of computing a workbook.

    Attributes:
        computed: values and the cells without one, with engines and notes.
        ranges: the rectangles that were searched.
        position_notes: how the position was interpreted, where it is not exact.
        written: where the copy with the values was written, if one was requested.
    """

    computed: ComputedValues
    ranges: tuple[CellRange, ...]
    position_notes: tuple[str, ...] = ()
    written: Path | None = None


def recalculate(
    path: Path,
    *,
    at: str | None,
    output: Path | None,
    engine: str,
    sandbox_kind: str,
    timeout_s: float,
    lenient_names: bool,
) -> Recalculation:
    """Computes the formulas of a workbook; see :func:`judge.recalc.recalculate`."""
    workbook = open_workbook(path)
    ranges, notes = ranges_of(workbook, at)
    with contextlib.ExitStack() as stack:
        sandbox = stack.enter_context(contextlib.closing(open_sandbox(sandbox_kind)))
        recalculator = open_recalculator(
            sandbox,
            engine=engine,
            timeout_s=timeout_s,
            lenient_names=lenient_names,
            cache_dir=recalc_cache_folder(),
        )
        stack.enter_context(contextlib.closing(recalculator))
        computed = recalculator.fill(workbook, ranges, origin=Origin.SOLUTION)
    if output is not None:
        write_copy(workbook, computed, output)
    return Recalculation(computed, tuple(ranges), notes, output)


def ranges_of(workbook: Workbook, at: str | None) -> tuple[Sequence[CellRange], tuple[str, ...]]:
    """The rectangles of a position, or the used ranges of all sheets; and notes.

    Raises:
        PositionError: nothing in the workbook fits the position.
        WorkbookError: the workbook cannot be read.
    """
    if at is None:
        used = (workbook.used_range(name) for name in workbook.sheet_names)
        return [area for area in used if area is not None], ()
    sheets = SheetIndex(
        names=workbook.sheet_names, used=lambda name: workbook.sheet(name).used_window()
    )
    position = parse_position(at)
    resolved = resolve_position(position, sheets, None, typed=True)
    return resolved.gold_ranges, (*position.notes, *resolved.notes)


def write_copy(workbook: Workbook, computed: ComputedValues, output: Path) -> None:
    """Writes a copy of a workbook that holds the computed values, all or nothing.

    Raises:
        WorkbookError: the copy cannot be written.
    """
    data = with_values(workbook.data, computed.values, date_1904=workbook.facts.date_1904)
    try:
        write_whole(output, data)
    except OSError as error:
        raise WorkbookError(f"{output}: {error.strerror or error}") from error
