"""What the input had, the gold kept, and the output lost.

A feature counts by its content over the whole workbook, and only as much of it as both input and
gold have: what the gold itself changed, moved to another sheet or lost is not expected of anybody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    WHOLE_SHEET,
    Window,
    cell_name,
    folded,
    parse_window,
)
from judge.workbook.cell import CellRange
from judge.workbook.features.features import FeatureKind, Features, Held, read_features
from judge.workbook.formula_shift import formula_shape
from judge.workbook.reader import Workbook
from judge.workbook.resolve import match_sheet
from judge.workbook.sheets.sheet import Sheet

FORMULA = "formula"
"""The kind of a loss of formulas; all others are those of :class:`FeatureKind`."""

MOST_LOSSES = 50
"""How many losses are kept of a case; all are counted."""

_MOST_ARRAYS = 200
"""How many array formulas of several cells are known of an output's sheet."""

_SHOWN_CHARS = 60

_WORDS = {
    FeatureKind.SHEET: "is gone",
    FeatureKind.HIDDEN_SHEET: "is visible",
}


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the input had, the gold kept, and the output lost.

    Attributes:
        kind: ``formula``, or one of :class:`FeatureKind`.
        label: what it is, for people.
        sheet: the input's sheet; empty if it belongs to the workbook.
        place: the first cells of the input that had it; empty if it has none.
        kept: how much of it both input and gold have: cells of rules and formulas, or how many.
        left: how much of that the output has.
    """

    kind: str
    label: str
    sheet: str
    place: str
    kept: int
    left: int

    def __str__(self) -> str:
        where = "!".join(part for part in (self.sheet, self.place) if part)
        if self.kind in _WORDS:
            return f"{self.label} {_WORDS[FeatureKind(self.kind)]}".replace(" hidden is", " is")
        said = f"{where}: {self.label}" if where else self.label
        if self.kept == 1:
            return said
        return f"{said} ({self.left:,} of {self.kept:,} left)"


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of everything that an output should have kept.

    Attributes:
        counts: kind -> how many features of that kind were lost, in full.
        losses: the first of them.
    """

    counts: Mapping[str, int]
    losses: tuple[Loss, ...]

    @property
    def is_all(self) -> bool:
        """Whether nothing was lost."""
        return not self.losses


def find_losses(
    before: Workbook, gold: Workbook, output: Workbook, answer: Sequence[CellRange]
) -> Kept:
    """Compares what three workbooks hold besides values.

    Args:
        before: the input workbook.
        gold: the gold workbook.
        output: the output workbook; it may be hostile.
        answer: rectangles of the answer in the gold.

    Raises:
        WorkbookError: a part is missing, broken or over a limit; its culprit is the package.
    """
    if output is gold or output.data in {gold.data, before.data}:
        return Kept({}, ())
    first = _features(before)
    expected, found = _features(gold), _features(output)
    losses = [
        Loss(kind.value, held.label, held.sheet, held.place, kept, left)
        for (kind, content), held in first
        if (kept := _kept(kind, content, held, expected)) > (left := found.measure(kind, content))
        and not _on_lost_sheet(kind, held, expected, found)
    ]
    losses += _lost_formulas(before, gold, output, answer)
    return Kept(dict(Counter(each.kind for each in losses)), tuple(losses[:MOST_LOSSES]))


def _features(workbook: Workbook) -> Features:
    with workbook.package.blamed():
        return read_features(workbook.package, workbook.tabs, workbook.shared_strings)


def _kept(kind: FeatureKind, content: str, held: Held, expected: Features) -> int:
    return min(held.measure, expected.measure(kind, content))


def _on_lost_sheet(kind: FeatureKind, held: Held, expected: Features, found: Features) -> bool:
    """Whether a whole sheet was lost, which says more than what was on it."""
    sheet = folded(held.sheet)
    return (
        kind is not FeatureKind.SHEET
        and bool(sheet)
        and bool(expected.measure(FeatureKind.SHEET, sheet))
        and not found.measure(FeatureKind.SHEET, sheet)
    )


# -- formulas --------------------------------------------------------------------------------------


def _lost_formulas(
    before: Workbook, gold: Workbook, output: Workbook, answer: Sequence[CellRange]
) -> list[Loss]:
    """Formulas that the gold has where the input has them, and that the output no longer has."""
    losses = []
    for name in before.sheet_names:
        if name not in gold.sheet_names:
            continue
        kept = _kept_formulas(before.sheet(name), gold.sheet(name), _windows(answer, name))
        sheet = match_sheet(name, output.sheet_names) if kept else None
        if sheet is not None:
            losses += _lost_on_sheet(before.sheet(name), name, output, sheet, kept)
    return losses


def _windows(answer: Sequence[CellRange], sheet: str) -> list[Window]:
    return [
        Window(each.min_row, each.min_column, each.max_row, each.max_column)
        for each in answer
        if each.sheet == sheet
    ]


def _kept_formulas(before: Sheet, gold: Sheet, answer: Sequence[Window]) -> list[int]:
    """Cells whose formula the gold left as it was.

    In the answer range, formulas of the kind that the gold adds there are the answer, even if the
    input has some of them already.
    """
    keys = before.formula_keys(WHOLE_SHEET)
    if not keys:
        return []
    in_gold = gold.formula_keys(WHOLE_SHEET)
    same = {
        key for key in set(keys).intersection(in_gold) if before.formula(key) == gold.formula(key)
    }
    asked = {
        _shape(gold.formula(key)) for key in in_gold if key not in same and _is_within(key, answer)
    }
    return [
        key
        for key in sorted(same)
        if not (asked and _is_within(key, answer) and _shape(before.formula(key)) in asked)
    ]


def _lost_on_sheet(
    first: Sheet, name: str, output: Workbook, sheet: str, kept: Sequence[int]
) -> list[Loss]:
    third = output.sheet(sheet)
    here = third.formula_keys(WHOLE_SHEET)
    gone = set(kept).difference(here)
    if not gone:
        return []
    # The output may have moved them: rows that it inserted or deleted are no loss.
    missing = Counter(_shape(first.formula(key)) for key in kept)
    missing.subtract(_shape(third.formula(key)) for key in here)
    arrays = _arrays(output, sheet, here)
    values = third.values(WHOLE_SHEET)
    lost: dict[bool, list[int]] = {True: [], False: []}
    for key in sorted(gone):
        shape = _shape(first.formula(key))
        if missing[shape] > 0 and not _is_within(key, arrays):
            missing[shape] -= 1
            lost[values.get(key) not in {None, ""}].append(key)
    return [
        _formula_loss(first.formula(found[0]) or "", name, found, len(kept), constants=constants)
        for constants, found in lost.items()
        if found
    ]


def _arrays(workbook: Workbook, sheet: str, keys: Sequence[int]) -> list[Window]:
    """The rectangles that array formulas fill; their other cells hold no formula of their own."""
    read = workbook.sheet(sheet)
    written = (read.raw_formula(key) for key in keys)
    found = [
        window
        for raw in written
        if raw is not None and raw.kind == "array" and raw.reference
        if (window := parse_window(raw.reference)) is not None
    ]
    return [each for each in found if each.min_row < each.max_row or _is_wide(each)][:_MOST_ARRAYS]


def _is_wide(window: Window) -> bool:
    return window.min_column < window.max_column


def _is_within(key: int, windows: Sequence[Window]) -> bool:
    row, column = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(each.holds(row, column) for each in windows)


def _formula_loss(
    formula: str, sheet: str, keys: Sequence[int], total: int, *, constants: bool
) -> Loss:
    what = "formulas are constants" if constants else "formulas are gone"
    shown = formula if len(formula) <= _SHOWN_CHARS else formula[: _SHOWN_CHARS - 1] + "…"
    return Loss(
        kind=FORMULA,
        label=f"{what}, such as {shown}",
        sheet=sheet,
        place=cell_name(keys[0] >> COLUMN_BITS, keys[0] & COLUMN_MASK),
        kept=total,
        left=total - len(keys),
    )


def _shape(formula: str | None) -> str:
    return formula_shape(formula or "")
