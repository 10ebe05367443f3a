"""Which cells of an answer range were to be changed, and how they and the others came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from judge.compare.cells.comparison import CellGroup
from judge.compare.cells.differences import Differences
from judge.compare.cells.options import CheckOptions
from judge.compare.cells.range_check import RangeSide, compare_range, differing_keys
from judge.compare.cells.task_rule import MODIFICATION, REGRESSION
from judge.compare.cells.value import comparator
from judge.compare.profiles import Profile
from judge.workbook.cell import NOTHING_COMPUTED, CellRange, ComputedValues
from judge.workbook.position import match_sheet
from judge.workbook.reader import Workbook


@dataclass(frozen=True, slots=True)
class Before:
    """The input workbook.

    Attributes:
        workbook: the workbook.
        computed: computed values, which replace those in the file.
    """

    workbook: Workbook
    computed: ComputedValues = NOTHING_COMPUTED

    def placed(self, cell_range: CellRange) -> CellRange | None:
        """The same rectangle of the input; None if it lacks the sheet."""
        sheet = match_sheet(cell_range.sheet, self.workbook.sheet_names)
        return None if sheet is None else replace(cell_range, sheet=sheet)


def group_cells(
    before: Before,
    gold: Workbook,
    ranges: Sequence[CellRange],
    differing: Sequence[set[int] | None],
    profile: Profile,
    options: CheckOptions,
    style: tuple[str, ...],
    gold_computed: ComputedValues,
) -> tuple[CellGroup, CellGroup]:
    """Splits the cells of an answer range into those to change and those to keep.

    The gold is compared with the input by the rules by which the output is compared with the gold,
    except that rows stay where they are and that a surplus value counts. A sheet that the input
    lacks is blank there, so that all that the gold has on it was to be added.

    Args:
        before: the input workbook.
        gold: the gold workbook.
        ranges: rectangles of the gold.
        differing: for each rectangle, keys of the cells in which the output differs, or
            None where it differs in all of them.
        profile: the rules by which gold and input are compared.
        options: options of the task's checker.
        style: style attributes that are compared in addition to the values.
        gold_computed: computed values of the gold.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    rules = replace(profile, unordered_rows=False, ignore_extra=False)
    to_change = wrong_changes = cells = wrong = 0
    for each, wrong_keys in zip(ranges, differing, strict=True):
        new = RangeSide(gold, each, gold_computed)
        placed = before.placed(each)
        if placed is None:
            agree = comparator(rules, actual_1904=gold.date_1904)
            changing = {*differing_keys({}, new.values(), agree), *new.uncomputed()}
        else:
            old = RangeSide(before.workbook, placed, before.computed)
            changing = compare_range(old, new, rules, options, style=style, found=Differences(0))
        cells += each.size
        wrong += each.size if wrong_keys is None else len(wrong_keys)
        to_change += len(changing)
        wrong_changes += len(changing if wrong_keys is None else changing & wrong_keys)
    return (
        CellGroup(MODIFICATION, to_change, wrong_changes),
        CellGroup(REGRESSION, cells - to_change, wrong - wrong_changes),
    )
