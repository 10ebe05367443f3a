"""Comparing one rectangle of the gold with the same rectangle of the output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from judge.compare.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key, cell_name
from judge.compare.cell import CellRange, CellRef, CellValue, ComputedValues
from judge.compare.comparison import Difference, DifferenceClass
from judge.compare.differences import Differences
from judge.compare.options import CheckOptions
from judge.compare.position import parse_position
from judge.compare.profiles import Profile
from judge.compare.reader import Workbook
from judge.compare.sheet import Sheet
from judge.compare.value import Agree, classify, comparator


@dataclass(frozen=True, slots=True)
class RangeSide:
    """One of the two sides of a comparison.

    Attributes:
        workbook: the workbook.
        cell_range: the rectangle.
        computed: values that take the place of those in the file.
    """

    workbook: Workbook
    cell_range: CellRange
    computed: ComputedValues

    @property
    def sheet(self) -> Sheet:
        """The worksheet."""
        return self.workbook.sheet(self.cell_range.sheet)

    @property
    def window(self) -> Window:
        """The rectangle without its sheet."""
        each = self.cell_range
        return Window(each.min_row, each.min_column, each.max_row, each.max_column)

    def values(self) -> Mapping[int, CellValue]:
        """Values of the stored and of the computed cells by key."""
        stored = self.sheet.values(self.window)
        computed = self._in_range(self.computed.values)
        if not computed:
            return stored
        return {**stored, **{key: self.computed.values[ref] for key, ref in computed.items()}}

    def uncomputed(self) -> dict[int, str]:
        """Formula cells whose value nobody knows -> why."""
        refused = self._in_range(self.computed.not_calculated)
        unknown = {key: self.computed.not_calculated[ref] for key, ref in refused.items()}
        known = self._in_range(self.computed.values)
        for key in self.sheet.formula_keys(self.window):
            raw = self.sheet.raw_formula(key)
            if key not in known and raw is not None and not raw.cached:
                unknown.setdefault(key, "the formula has no value, and nothing computed it")
        return unknown

    def _in_range(self, cells: Iterable[CellRef]) -> dict[int, CellRef]:
        window, sheet = self.window, self.cell_range.sheet
        return {
            cell_key(each.row, each.column): each
            for each in cells
            if each.sheet == sheet and window.holds(each.row, each.column)
        }


def compare_range(
    gold: RangeSide,
    output: RangeSide,
    profile: Profile,
    options: CheckOptions,
    *,
    found: Differences,
) -> None:
    """Compares one rectangle and adds what differs to what was found.

    Args:
        gold: the gold's side.
        output: the output's side.
        profile: the rules.
        options: options of the task's checker.
        found: where differences go.
    """
    expected, actual = gold.values(), output.values()
    unknown = output.uncomputed()
    if unknown:
        gold_unknown = gold.uncomputed()
        for key in [key for key in unknown if key in gold_unknown]:
            # Nobody knows the value of either, but the same formula gives the same value.
            if gold.sheet.formula(key) == output.sheet.formula(key):
                del unknown[key]
    ignored = _ignored(options.ignore, gold.cell_range)
    differing = differing_keys(expected, actual, comparator(profile), profile.ignore_extra)
    keys = set(differing) | {key for key in unknown if gold.window.holds(*_place(key))}
    for key in sorted(keys):
        if any(window.holds(*_place(key)) for window in ignored):
            continue
        why = unknown.get(key)
        kind = (
            DifferenceClass.NOT_CALCULATED
            if why is not None
            else classify(expected.get(key), actual.get(key))
        )
        if found.is_full:
            found.count(kind)
            continue
        found.add(
            Difference(
                kind=kind,
                sheet=gold.cell_range.sheet,
                cell=cell_name(*_place(key)),
                expected=expected.get(key),
                actual=None if why is not None else actual.get(key),
                expected_formula=gold.sheet.formula(key),
                actual_formula=output.sheet.formula(key),
                detail=why or "",
            )
        )


def differing_keys(
    expected: Mapping[int, CellValue],
    actual: Mapping[int, CellValue],
    agree: Agree,
    ignore_extra: bool = False,
) -> list[int]:
    """Keys of the cells that do not agree, in no order; cells that neither side stores do."""
    differing = []
    for key, value in expected.items():
        other = actual.get(key)
        if (
            value is not other
            and not (type(value) is type(other) and value == other)
            and not agree(value, other)
        ):
            differing.append(key)
    if ignore_extra:
        return [key for key in differing if expected[key] not in {None, ""}]
    differing.extend(
        key
        for key, value in actual.items()
        if value is not None and key not in expected and not agree(None, value)
    )
    return differing


def _place(key: int) -> tuple[int, int]:
    return key >> COLUMN_BITS, key & COLUMN_MASK


def _ignored(ranges: Iterable[str], gold_range: CellRange) -> list[Window]:
    windows = []
    for text in ranges:
        for part in parse_position(text).parts:
            if part.sheet is None or part.sheet == gold_range.sheet:
                max_row = gold_range.max_row if part.max_row is None else part.max_row
                max_column = gold_range.max_column if part.max_column is None else part.max_column
                windows.append(Window(part.min_row, part.min_column, max_row, max_column))
    return windows
