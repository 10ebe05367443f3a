"""The result of the comparison for each cell, from the record and from the files.

A record lists only the first differences. The other differences are computed from the files, except
in cells whose formula had to be computed for the verdict: these are marked as unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from judge.compare.cells.answer_range import check, prepare
from judge.compare.cells.comparison import DifferenceClass
from judge.compare.cells.conditional_formats import OTHER_RULES
from judge.compare.cells.sides import Side
from judge.compare.profiles import get_profile
from judge.core.records.cases import CaseComparison, DifferenceRecord
from judge.core.task import Task
from judge.errors import JudgeError
from judge.workbook.address import cell_key, parse_cell
from judge.workbook.reader import Workbook

UNKNOWN = "unknown"
"""A computed cell; the record does not say whether it differs."""

_OUTSIDE = {DifferenceClass.TOUCHED.value, DifferenceClass.MISSING_SHEET.value}


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of the cells of an answer.

    Attributes:
        kinds: (sheet, cell key) -> class of difference; all other cells agree.
        recorded: (sheet, cell key) -> the difference as recorded.
        doubtful: whether formula cells that are in neither mapping may still differ.
        computed: (``gold`` or ``output``, that workbook's sheet) -> cell key -> computed value.
    """

    kinds: Mapping[tuple[str, int], str] = field(default_factory=dict)
    recorded: Mapping[tuple[str, int], DifferenceRecord] = field(default_factory=dict)
    doubtful: bool = False
    computed: Mapping[tuple[str, str], Mapping[int, Any]] = field(default_factory=dict)

    def keys(self, sheet: str) -> set[int]:
        """Keys of the differing cells of a sheet."""
        return {key for name, key in self.kinds if name == sheet}


def marks_of_record(record: CaseComparison) -> Marks:
    """The marks that follow from a comparison's record alone."""
    recorded: dict[tuple[str, int], DifferenceRecord] = {}
    for difference in record.get("differences", ()):
        position = parse_cell(difference["cell"])
        if position is not None and difference["kind"] not in _OUTSIDE:
            recorded[difference["sheet"], cell_key(*position)] = difference
    kinds = {cell: difference["kind"] for cell, difference in recorded.items()}
    return Marks(kinds, recorded, doubtful=is_cut(record), computed=_computed_values(record))


def _computed_values(record: CaseComparison) -> dict[tuple[str, str], dict[int, Any]]:
    computed: dict[tuple[str, str], dict[int, Any]] = {}
    for side, sheets in record.get("computed_values", {}).items():
        for sheet, cells in sheets.items():
            positions = ((parse_cell(address), value) for address, value in cells.items())
            computed[side, sheet] = {
                cell_key(*at): value for at, value in positions if at is not None
            }
    return computed


def is_cut(record: CaseComparison) -> bool:
    """Whether more cells differ than the record lists."""
    listed = sum(difference["kind"] not in _OUTSIDE for difference in record.get("differences", ()))
    lacking = record.get("difference_counts", {}).get(DifferenceClass.MISSING_SHEET.value, 0)
    return record.get("differing_cells", 0) - lacking > listed


def complete_marks(
    marks: Marks,
    task: Task,
    gold: Workbook,
    output: Workbook,
    *,
    profile: str,
    style: Sequence[str],
    computed: Collection[tuple[str, int]],
) -> Marks:
    """Adds the differences that the record does not list, by comparing the files again.

    Args:
        marks: the marks from the record.
        task: the task, for its answer position and checker.
        gold: the gold workbook.
        output: the output workbook.
        profile: the profile of the record.
        style: style attributes that were compared.
        computed: cells whose value was computed for the verdict, so that the files do not have it.

    Returns:
        All differences. Differences in ``computed`` cells and in conditional formats, whose
        conditions were computed, are included only if the record lists them.
    """
    try:
        plan = prepare(
            task.checker,
            gold=gold,
            output=output,
        )
        comparison = check(
            plan,
            Side(gold),
            Side(output),
            profile=get_profile(profile),
            style=style,
            max_differences=1_000_000,
            ask_official=False,
        )
    except JudgeError:
        return marks
    kinds = dict(marks.kinds)
    for difference in comparison.differences:
        position = parse_cell(difference.cell)
        if position is None or difference.kind.value in _OUTSIDE:
            continue
        key = (difference.sheet, cell_key(*position))
        if key not in computed and not difference.detail.endswith(OTHER_RULES):
            kinds.setdefault(key, difference.kind.value)
    return replace(marks, kinds=kinds, doubtful=bool(computed))
