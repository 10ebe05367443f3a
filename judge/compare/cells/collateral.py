"""Collateral damage: what an output changed outside the answer range, cell by cell.

The input says what was there, the gold what had to change. A formula counts by its text, without
``$``, spaces and case, whatever value is stored with it; a constant by the rules of the profile
``standard``. Rows and columns that were inserted or deleted are matched by their content first.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.compare.cells.lines import Content, Contents, Lines
from judge.compare.cells.scope import FORMULA, find_losses
from judge.compare.cells.style_check import StyleChecker
from judge.compare.cells.value import Agree, comparator
from judge.compare.profiles import get_profile
from judge.core.records.cases import CollateralCellRecord, CollateralRecord
from judge.formulas.shift import formula_shape
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    WHOLE_SHEET,
    Window,
    cell_key,
    cell_name,
    parse_window,
)
from judge.workbook.cell import STYLE_ATTRIBUTES, CellRange
from judge.workbook.position import match_sheet
from judge.workbook.reader import Workbook, filling_cells

MAX_CELLS = 20
"""How many changed cells are kept of a case; all are counted."""

_STYLE = tuple(name for name in STYLE_ATTRIBUTES if name != "hyperlink")


class Harm(enum.StrEnum):
    """How a cell outside the answer range differs from the input."""

    OVERWRITTEN = "overwritten"
    """Input and gold have the same, the output something else."""
    ERASED = "erased"
    """Input and gold have the same, the output nothing."""
    ADDED = "added"
    """Input and gold have nothing, the output something."""
    OTHER = "other_than_gold"
    """The gold changed it, and the output changed it in another way."""
    AS_GOLD = "as_gold"
    """The output has what the gold has, which is not damage."""


_NOTHING = Content(None, None)


@dataclass(frozen=True, slots=True)
class HarmedCell:
    """A cell that the output changed: its sheet and address in the input, or in the output."""

    harm: Harm
    sheet: str
    cell: str


@dataclass(frozen=True, slots=True)
class Collateral:
    """What an output changed outside the answer range.

    Attributes:
        counts: kind of change -> cells, in full.
        formulas_lost: cells that were overwritten, of which the input holds a formula and the
            output a constant.
        features: features that the input had, the gold kept and the output lost.
        style: cells that look other than in the input, where the gold left their looks alone.
        moved: how often rows or columns of the input were shifted.
        exposed: cells that hold something in the input outside the answer range.
        cells: the first cells that changed, those of the headline before the others.
    """

    counts: Mapping[Harm, int]
    formulas_lost: int
    features: int
    style: int
    moved: int
    exposed: int
    cells: tuple[HarmedCell, ...]

    @property
    def damage(self) -> int:
        """Cells that were overwritten or erased, and features that were lost."""
        return self.counts[Harm.OVERWRITTEN] + self.counts[Harm.ERASED] + self.features

    def __str__(self) -> str:
        first = next((f"{each.sheet}!{each.cell}" for each in self.cells), "")
        said = (
            f"outside the answer, {self.counts[Harm.OVERWRITTEN]:,} cells were overwritten and "
            f"{self.counts[Harm.ERASED]:,} erased, and {self.features:,} features are lost"
        )
        return f"{said} (first: {first})" if first and self.damage > self.features else said

    def to_json(self, mode: str) -> CollateralRecord:
        """The figures as they go on record.

        Args:
            mode: ``note`` or ``fail``.
        """
        cells: list[CollateralCellRecord] = [
            {"kind": each.harm.value, "sheet": each.sheet, "cell": each.cell} for each in self.cells
        ]
        return {
            "as": mode,
            "damage": self.damage,
            "overwritten": self.counts[Harm.OVERWRITTEN],
            "erased": self.counts[Harm.ERASED],
            "formula_to_constant": self.formulas_lost,
            "features": self.features,
            "added": self.counts[Harm.ADDED],
            "other_than_gold": self.counts[Harm.OTHER],
            "as_gold": self.counts[Harm.AS_GOLD],
            "style": self.style,
            "moved": self.moved,
            "exposed": self.exposed,
            "cells": cells,
        }


def find_collateral(
    before: Workbook,
    gold: Workbook,
    output: Workbook,
    gold_ranges: Sequence[CellRange],
    output_ranges: Sequence[CellRange | None],
) -> Collateral:
    """Compares what three workbooks hold outside the answer.

    A sheet that the output lost counts as a feature, and its cells do not count in addition.

    Args:
        before: the input workbook.
        gold: the gold workbook.
        output: the output workbook; it may be hostile.
        gold_ranges: rectangles of the answer in the gold.
        output_ranges: the same rectangles in the output; None for a sheet that it lacks.

    Raises:
        WorkbookError: a part is missing, broken or over a limit; its culprit is the package.
    """
    answer: dict[str, list[Window]] = {}
    for each in (*gold_ranges, *output_ranges):
        if each is not None:
            answer.setdefault(each.sheet, []).append(each.window)
    count = _Count()
    names = {name: match_sheet(name, output.sheet_names) for name in before.sheet_names}
    for name, found in names.items():
        kept = match_sheet(name, gold.sheet_names)
        if found is not None:
            windows = [*answer.get(found, ()), *(answer.get(kept, ()) if kept else ())]
            count.sheet(
                name,
                _contents(before, name),
                _contents(gold, kept) if kept else {},
                _contents(output, found),
                windows,
            )
            if kept and not count.shifted:
                count.style += _restyled(before, gold, output, (name, kept, found), windows)
    for name in output.sheet_names:
        if name not in names.values():
            kept = match_sheet(name, gold.sheet_names)
            expected = _contents(gold, kept) if kept else {}
            count.sheet(name, {}, expected, _contents(output, name), answer.get(name, []))
    losses = find_losses(before, gold, output, gold_ranges)
    features = sum(n for kind, n in losses.counts.items() if kind != FORMULA)
    return count.collateral(features)


def _contents(workbook: Workbook, sheet: str) -> dict[int, Content]:
    """Everything that the cells of a sheet hold, but for those that another formula fills."""
    read = workbook.sheet(sheet)
    contents = {
        key: Content(None, value)
        for key, value in read.values(WHOLE_SHEET).items()
        if value is not None and value != ""
    }
    for key in read.formula_keys(WHOLE_SHEET):
        contents[key] = Content(_plain(read.formula(key) or ""), None)
    for source in filling_cells(workbook, sheet):
        window = parse_window((source.array_range or "").replace("$", ""))
        own = cell_key(source.row, source.column)
        if window is not None:
            for key in [key for key in contents if key != own and _is_within(key, (window,))]:
                del contents[key]
    return contents


def _plain(formula: str) -> str:
    plain = "".join(formula.replace("$", "").split()).upper()
    return f"={plain[2:]}" if plain.startswith("=+") else plain


def _is_within(key: int, windows: Sequence[Window]) -> bool:
    row, column = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(window.holds(row, column) for window in windows)


class _Count:
    """Counts the changes of one workbook, sheet by sheet."""

    def __init__(self) -> None:
        self._agree: Agree = comparator(get_profile("standard"))
        self._counts: Counter[Harm] = Counter()
        self._cells: dict[Harm, list[HarmedCell]] = {harm: [] for harm in Harm}
        self._formulas_lost = self._moved = self._exposed = 0
        self.style = 0
        self.shifted = False
        """Whether rows or columns of the last sheet were shifted."""

    def sheet(
        self,
        name: str,
        before: Contents,
        gold: Contents,
        output: Contents,
        answer: Sequence[Window],
    ) -> None:
        """Counts the changes of one sheet.

        Args:
            name: its name in the input, or in the output if the input lacks it.
            before: what the input holds.
            gold: what the gold holds.
            output: what the output holds.
            answer: rectangles of the answer.
        """
        in_gold, in_output = Lines.of(before, gold, answer), Lines.of(before, output, answer)
        self.shifted = bool(in_gold.shifts or in_output.shifts)
        self._moved += in_output.shifts
        reached, of_input = set(), set()
        for key, held in before.items():
            there, expected = in_output.place(key), in_gold.place(key)
            reached.add(there)
            of_input.add(expected)
            if any(each is not None and _is_within(each, answer) for each in (there, expected)):
                continue
            self._exposed += 1
            found = _NOTHING if there is None else output.get(there, _NOTHING)
            if not self._same(held, found, moved=there != key):
                wanted = _NOTHING if expected is None else gold.get(expected, _NOTHING)
                self._note(name, key, self._harm(held, wanted, found, moved=expected != key))
                lost = held.formula is not None and found != _NOTHING and found.formula is None
                self._formulas_lost += lost and self._same(held, wanted, moved=expected != key)
        for key, found in output.items():
            if key not in reached and not _is_within(key, answer):
                # In a line that only the output has, the gold has something else at this address.
                wanted = _NOTHING if key in of_input else gold.get(key, _NOTHING)
                self._note(name, key, self._harm(_NOTHING, wanted, found, moved=False))

    def _harm(self, held: Content, wanted: Content, found: Content, *, moved: bool) -> Harm:
        if self._same(wanted, found, moved=moved):
            return Harm.AS_GOLD
        if not self._same(held, wanted, moved=moved):
            return Harm.OTHER
        if held == _NOTHING:
            return Harm.ADDED
        return Harm.ERASED if found == _NOTHING else Harm.OVERWRITTEN

    def _same(self, first: Content, second: Content, *, moved: bool) -> bool:
        if first.formula is None or second.formula is None:
            return first.formula is second.formula and self._agree(first.value, second.value)
        if first.formula == second.formula:
            return True
        return moved and formula_shape(first.formula) == formula_shape(second.formula)

    def _note(self, sheet: str, key: int, harm: Harm) -> None:
        self._counts[harm] += 1
        if harm is not Harm.AS_GOLD and len(self._cells[harm]) < MAX_CELLS:
            name = cell_name(key >> COLUMN_BITS, key & COLUMN_MASK)
            self._cells[harm].append(HarmedCell(harm, sheet, name))

    def collateral(self, features: int) -> Collateral:
        """The figures, with the number of features that were lost."""
        cells = [cell for harm in Harm for cell in self._cells[harm]]
        return Collateral(
            counts=self._counts,
            formulas_lost=self._formulas_lost,
            features=features,
            style=self.style,
            moved=self._moved,
            exposed=self._exposed,
            cells=tuple(cells[:MAX_CELLS]),
        )


# -- looks -----------------------------------------------------------------------------------------


def _restyled(
    before: Workbook,
    gold: Workbook,
    output: Workbook,
    names: tuple[str, str, str],
    answer: Sequence[Window],
) -> int:
    """How many cells of a sheet outside the answer look other than in the input and the gold."""
    first, second, third = (CellRange.of(name, WHOLE_SHEET) for name in names)
    found = StyleChecker(before, output, _STYLE).details(first, third, _itself, skip=())
    keys = [key for key in found if not _is_within(key, answer)]
    if not keys:
        return 0
    by_gold = StyleChecker(before, gold, _STYLE).details(first, second, _itself, skip=())
    return sum(key not in by_gold for key in keys)


def _itself(key: int) -> int:
    return key
