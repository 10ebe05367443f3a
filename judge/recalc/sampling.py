"""A second engine computes some formulas of each kind where there are thousands of the same kind.

Formulas of a column that differ only in row numbers, and whose values are of the same kind, stand
for each other: if two engines agree on a sample of them, drawn by the content of the workbook, they
are taken to agree on all. For the second engine the others hold the first one's values, so
that it computes the sample from the inputs that the first one had.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from judge.errors import WorkbookError
from judge.recalc.references import form_of
from judge.recalc.rewrite import with_constants
from judge.workbook.cell import CellRef, CellValue, ErrorValue

FEWEST = 1_000
"""With fewer formulas than this every one is computed twice, which takes milliseconds."""

SAMPLE = 64
"""Formulas of each kind that are computed twice, and at least its first and last."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a second engine is asked.

    Attributes:
        package: the workbook, with values in place of the formulas that are not in the sample.
        cells: the sample.
    """

    package: bytes
    cells: frozenset[CellRef]


def draw(
    workbook: bytes, formulas: Mapping[CellRef, str], values: Mapping[CellRef, CellValue]
) -> Sample | None:
    """A sample of the formulas of a workbook; None if that is not worth it.

    Args:
        workbook: the package.
        formulas: the cells wanted and their formulas; none of them an array formula.
        values: what the first engine computed. Cells without a value are in the sample.
    """
    if len(formulas) < FEWEST:
        return None
    kinds: dict[object, list[CellRef]] = defaultdict(list)
    for cell, formula in formulas.items():
        kinds[_kind(cell, formula, values.get(cell))].append(cell)
    chance = random.Random(hashlib.sha256(workbook).digest())  # noqa: S311 - the same in every run
    chosen: set[CellRef] = set()
    for kind, members in kinds.items():
        members.sort()
        if kind is None or len(members) <= SAMPLE:
            chosen.update(members)
        else:
            chosen.update((members[0], members[-1]), chance.sample(members, SAMPLE))
    if len(chosen) > len(formulas) // 2:
        return None
    settled = {cell: values[cell] for cell in formulas if cell not in chosen}
    try:
        return Sample(with_constants(workbook, settled), frozenset(chosen))
    except WorkbookError:
        return None


def agrees(
    sample: Sample,
    first: Mapping[CellRef, CellValue],
    second: Mapping[CellRef, CellValue],
    same: Callable[[CellValue, CellValue], bool],
) -> bool:
    """Whether two engines agree on a whole sample."""
    return all(
        cell in first and cell in second and same(first[cell], second[cell])
        for cell in sample.cells
    )


def _kind(cell: CellRef, formula: str, value: CellValue) -> object:
    """What stands for the others of its kind; None for what stands only for itself."""
    if value is None:
        return None
    form = form_of(formula)
    if form is None:
        return None
    result: object = type(value).__name__
    if isinstance(value, ErrorValue):
        result = value.code
    elif isinstance(value, bool) or value in (0, ""):
        result = value, result
    return cell.sheet, cell.column, form, result
