"""Finds faults other than wrong values: lost features, and constants instead of formulas.

The findings are added to the comparison as notes, or as differences if the options say so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from judge.compare.cells.comparison import Comparison, Difference, DifferenceClass
from judge.compare.cells.options import FAIL, NOTE, OFF, CheckOptions
from judge.compare.cells.requested_formula import (
    RequestedFormula,
    find_requested_formula,
    words_for_formula,
)
from judge.compare.cells.sides import ScopeSources
from judge.console import clipped
from judge.core.records.cases import FormulaAskedRecord, KeptRecord
from judge.errors import WorkbookError
from judge.formulas.shift import formula_shape
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
from judge.workbook.features import FeatureKind, Features, Quantity, read_features
from judge.workbook.position import match_sheet
from judge.workbook.reader import Workbook
from judge.workbook.sheets.sheet import Sheet

# -- what the input had, the gold kept, and the output lost ----------------------------------------
# Features are identified by their content, in the whole workbook. The output must have as much of a
# feature as input and gold have in common. What the gold itself changed, moved to another sheet or
# lost is not expected.

FORMULA = "formula"
"""Kind of a loss of formulas; all other kinds are those of :class:`FeatureKind`."""

MAX_LOSSES = 50
"""How many losses are kept per case; all are counted."""

_MAX_ARRAYS = 200
"""How many array formulas that fill several cells are read per sheet of an output."""

_MAX_FORMULA_CHARS = 60  # of a formula in a note
_MAX_NOTES = 5  # losses that are listed; the others are counted

_WORDS = {
    FeatureKind.SHEET: "is gone",
    FeatureKind.HIDDEN_SHEET: "is visible",
}


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that the input had, the gold kept, and the output lost.

    Attributes:
        kind: ``formula``, or one of :class:`FeatureKind`.
        label: description for people.
        sheet: the input's sheet; empty if the feature belongs to the whole workbook.
        place: the first cells that had it in the input but not in the output; empty if it is not a
            feature of cells.
        kept: how much of it both input and gold have: the number of cells with the rule or formula,
            or of features.
        left: how much of this the output still has.
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
        text = f"{where}: {self.label}" if where else self.label
        if self.kept == 1:
            return text
        return f"{text} ({self.left:,} of {self.kept:,} left)"


@dataclass(frozen=True, slots=True)
class Losses:
    """The losses of an output, compared with everything that it should have kept.

    Attributes:
        counts: kind -> how many features of that kind were lost (all are counted).
        losses: the first losses.
        redefined: for each name that the output defines differently, the definition in input and
            gold, and the one in the output. Such names do not count as losses.
    """

    counts: Mapping[str, int]
    losses: tuple[Loss, ...]
    redefined: tuple[tuple[str, str], ...] = ()

    @property
    def is_all(self) -> bool:
        """Whether nothing was lost."""
        return not self.losses


def find_losses(
    before: Workbook, gold: Workbook, output: Workbook, answer: Sequence[CellRange]
) -> Losses:
    """Compares what three workbooks hold in addition to values.

    Args:
        before: the input workbook.
        gold: the gold workbook.
        output: the output workbook; it may be hostile.
        answer: rectangles of the answer in the gold.

    Raises:
        WorkbookError: a part is missing, broken or over a limit; its culprit is the package.
    """
    if output is gold or output.data in {gold.data, before.data}:
        return Losses({}, ())
    first = _features(before)
    expected, actual = _features(gold), _features(output)
    lost_parts = _parts_of_lost_charts(first, expected, actual)
    losses = [
        Loss(
            kind.value,
            feature.label,
            *_lost_place(feature, expected.places(kind, content), actual.places(kind, content)),
            kept,
            left,
        )
        for (kind, content), feature in first
        if (kept := _kept(kind, content, feature, expected))
        > (left := actual.measure(kind, content))
        and not _on_lost_sheet(kind, feature, expected, actual)
        and not (kind is FeatureKind.CHART_PART and kept - lost_parts[content] <= left)
    ]
    losses += _lost_formulas(before, gold, output, answer)
    return Losses(
        dict(Counter(loss.kind for loss in losses)),
        tuple(losses[:MAX_LOSSES]),
        tuple(_redefined(first, expected, actual)),
    )


def _parts_of_lost_charts(first: Features, expected: Features, actual: Features) -> Counter[str]:
    """Label of a chart's part -> how many were lost because the whole chart was.

    If one of several charts of the same type was lost, it is unknown which one; it is taken to be
    the one with the most parts.
    """
    lost_parts: Counter[str] = Counter()
    for (kind, content), feature in first:
        if kind is FeatureKind.CHART:
            lost = _kept(kind, content, feature, expected) - actual.measure(kind, content)
            for label, count in first.chart_parts[content].items():
                lost_parts[label] += max(lost, 0) * count
    return lost_parts


def _redefined(first: Features, expected: Features, actual: Features) -> Iterator[tuple[str, str]]:
    for name, meanings in first.definitions.items():
        now = actual.definitions.get(name, Counter())
        kept = meanings & expected.definitions.get(name, Counter())
        yield from zip((kept - now).elements(), (now - meanings).elements(), strict=False)


def _features(workbook: Workbook) -> Features:
    with workbook.package.blamed():
        return read_features(workbook.package, workbook.tabs, workbook.shared_strings)


def _kept(kind: FeatureKind, content: str, feature: Quantity, expected: Features) -> int:
    return min(feature.measure, expected.measure(kind, content))


def _lost_place(
    feature: Quantity, in_gold: Sequence[tuple[str, str]], in_output: Sequence[tuple[str, str]]
) -> tuple[str, str]:
    """Finds the sheet and cells of the first lost feature; an equal one may remain."""
    left = Counter((folded(sheet), where) for sheet, where in in_output)
    kept = {(folded(sheet), where) for sheet, where in in_gold}
    for sheet, where in feature.places:
        cells = folded(sheet), where
        if left[cells] > 0:
            left[cells] -= 1
        elif cells in kept:
            return sheet, where
    return feature.sheet, feature.where


def _on_lost_sheet(
    kind: FeatureKind, feature: Quantity, expected: Features, lost: Features
) -> bool:
    """Whether the feature's whole sheet was lost; then only the sheet is reported."""
    sheet = folded(feature.sheet)
    return (
        kind is not FeatureKind.SHEET
        and bool(sheet)
        and bool(expected.measure(FeatureKind.SHEET, sheet))
        and not lost.measure(FeatureKind.SHEET, sheet)
    )


# -- formulas --------------------------------------------------------------------------------------


def _lost_formulas(
    before: Workbook, gold: Workbook, output: Workbook, answer: Sequence[CellRange]
) -> list[Loss]:
    """Returns the formulas that input and gold share, cell by cell, but that the output lacks."""
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
    return [part.window for part in answer if part.sheet == sheet]


def _kept_formulas(before: Sheet, gold: Sheet, answer: Sequence[Window]) -> list[int]:
    """Returns the cells whose formula the gold left unchanged.

    In the answer range, formulas like those that the gold adds there belong to the answer, even if
    the input has some of them already.
    """
    keys = before.formula_keys(WHOLE_SHEET)
    if not keys:
        return []
    in_gold = gold.formula_keys(WHOLE_SHEET)
    same = {
        key for key in set(keys).intersection(in_gold) if before.formula(key) == gold.formula(key)
    }
    added = {
        _shape(gold.formula(key)) for key in in_gold if key not in same and _is_within(key, answer)
    }
    return [
        key
        for key in sorted(same)
        if not (added and _is_within(key, answer) and _shape(before.formula(key)) in added)
    ]


def _lost_on_sheet(
    first: Sheet, name: str, output: Workbook, sheet: str, kept: Sequence[int]
) -> list[Loss]:
    third = output.sheet(sheet)
    here = third.formula_keys(WHOLE_SHEET)
    lost_keys = set(kept).difference(here)
    if not lost_keys:
        return []
    # The output may have moved formulas: inserted or deleted rows are not a loss.
    missing = Counter(_shape(first.formula(key)) for key in kept)
    missing.subtract(_shape(third.formula(key)) for key in here)
    arrays = _arrays(output, sheet, here)
    values = third.values(WHOLE_SHEET)
    lost: dict[bool, list[int]] = {True: [], False: []}
    for key in sorted(lost_keys):
        shape = _shape(first.formula(key))
        if missing[shape] > 0 and not _is_within(key, arrays):
            missing[shape] -= 1
            lost[values.get(key) not in {None, ""}].append(key)
    return [
        _formula_loss(first.formula(keys[0]) or "", name, keys, len(kept), constants=constants)
        for constants, keys in lost.items()
        if keys
    ]


def _arrays(workbook: Workbook, sheet: str, keys: Sequence[int]) -> list[Window]:
    """Returns the rectangles that array formulas fill; their other cells store no formula."""
    read = workbook.sheet(sheet)
    written = (read.raw_formula(key) for key in keys)
    windows = [
        window
        for raw in written
        if raw is not None and raw.kind == "array" and raw.reference
        if (window := parse_window(raw.reference)) is not None
    ]
    return [part for part in windows if part.min_row < part.max_row or _is_wide(part)][:_MAX_ARRAYS]


def _is_wide(window: Window) -> bool:
    return window.min_column < window.max_column


def _is_within(key: int, windows: Sequence[Window]) -> bool:
    row, column = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(window.holds(row, column) for window in windows)


def _formula_loss(
    formula: str, sheet: str, keys: Sequence[int], total: int, *, constants: bool
) -> Loss:
    problem = "formulas are constants" if constants else "formulas are gone"
    shown = clipped(formula, _MAX_FORMULA_CHARS)
    return Loss(
        kind=FORMULA,
        label=f"{problem}, such as {shown}",
        sheet=sheet,
        place=cell_name(keys[0] >> COLUMN_BITS, keys[0] & COLUMN_MASK),
        kept=total,
        left=total - len(keys),
    )


def _shape(formula: str | None) -> str:
    return formula_shape(formula or "")


# -- both together ---------------------------------------------------------------------------------

_Found = TypeVar("_Found", Losses, RequestedFormula)


@dataclass(frozen=True, slots=True)
class Scope:
    """Results of the options ``keep`` and ``formula_asked``.

    Attributes:
        keep: how lost features count: ``off``, ``note`` or ``fail``.
        formula_asked: how constants count if a formula is requested: ``off``, ``note`` or ``fail``.
        kept: the lost features; None if they were not, or could not be, examined.
        formula: whether the requested formula exists; None if that was not, or could not be,
            examined.
        problems: option -> why it could not be examined.
    """

    keep: str
    formula_asked: str
    kept: Losses | None
    formula: RequestedFormula | None
    problems: dict[str, str]

    def applied_to(self, comparison: Comparison, max_differences: int) -> Comparison:
        """Returns the comparison with the results as notes or, with ``fail``, as differences.

        Args:
            comparison: the comparison of the answer.
            max_differences: how many differences are kept.
        """
        notes = (*comparison.notes, *self._notes())
        differing = comparison.with_differences(list(self._differences()), max_differences)
        counts = dict(differing.difference_counts)
        if self.keep == FAIL and self.kept is not None and not self.kept.is_all:
            counts[DifferenceClass.LOST] = sum(self.kept.counts.values())
        return replace(differing, difference_counts=counts, notes=notes, scope=self)

    def _differences(self) -> Iterator[Difference]:
        if self.keep == FAIL and self.kept is not None:
            for loss in self.kept.losses:
                yield Difference(DifferenceClass.LOST, loss.sheet, "", detail=str(loss))
        if self.formula_asked == FAIL and self.formula is not None and self.formula.is_missing:
            yield Difference(DifferenceClass.NO_FORMULA, "", "", detail=str(self.formula))

    def _notes(self) -> Iterator[str]:
        if (problem := self.problems.get("keep")) is not None:
            yield f"what the input had was not compared with the output: {problem}"
        if (problem := self.problems.get("formula_asked")) is not None:
            yield f"formulas of the answer were not examined: {problem}"
        if self.keep == NOTE and self.kept is not None:
            losses = self.kept.losses
            yield from (f"lost: {loss}" for loss in losses[:_MAX_NOTES])
            if (more := sum(self.kept.counts.values()) - min(len(losses), _MAX_NOTES)) > 0:
                yield f"lost: {more:,} more"
        if self.formula_asked == NOTE and self.formula is not None and self.formula.is_missing:
            yield str(self.formula)

    def kept_to_json(self) -> KeptRecord:
        """Returns the losses as they are written to records."""
        record: KeptRecord = {"as": self.keep}
        if (problem := self.problems.get("keep")) is not None:
            record["problem"] = problem
        if self.kept is not None:
            record["lost"] = sum(self.kept.counts.values())
            record["counts"] = dict(self.kept.counts)
            record["losses"] = [
                {
                    "kind": loss.kind,
                    "what": loss.label,
                    "sheet": loss.sheet,
                    "place": loss.place,
                    "kept": loss.kept,
                    "left": loss.left,
                }
                for loss in self.kept.losses
            ]
        return record

    def formula_to_json(self) -> FormulaAskedRecord:
        """Returns the result about the requested formula as it is written to records."""
        record: FormulaAskedRecord = {"as": self.formula_asked}
        if (problem := self.problems.get("formula_asked")) is not None:
            record["problem"] = problem
        if (requested := self.formula) is not None:
            record["asked"] = requested.is_requested
            record["words"] = requested.words
            record["gold_formulas"] = requested.gold_formulas
            record["constants"] = requested.constants
        return record


def examine_scope(
    options: CheckOptions,
    sources: ScopeSources,
    gold: Workbook,
    output: Workbook,
    ranges: tuple[tuple[CellRange, ...], tuple[CellRange | None, ...]],
) -> Scope:
    """Searches for losses and missing formulas, if the options request it.

    A result that is only a note never changes the result of the comparison: if a part of a workbook
    cannot be read, the note says so.

    Args:
        options: the options of the task's checker.
        sources: the input and the question.
        gold: the gold workbook.
        output: the output workbook.
        ranges: rectangles of the answer in the gold, and in the output.

    Raises:
        WorkbookError: a workbook cannot be read, and the option makes it part of the verdict.
    """
    problems: dict[str, str] = {}
    before = sources.before
    kept = formula = None
    if options.keep != OFF and before is None:
        problems["keep"] = sources.problem
    elif options.keep != OFF and before is not None:
        input_workbook = before
        kept = _guarded(
            "keep",
            options.keep,
            problems,
            lambda: find_losses(input_workbook, gold, output, ranges[0]),
        )
    if options.formula_asked != OFF:
        words = "" if sources.question is None else words_for_formula(sources.question)
        if sources.question is not None and not words:
            formula = RequestedFormula("", is_requested=False)
        else:
            formula = _guarded(
                "formula_asked",
                options.formula_asked,
                problems,
                lambda: find_requested_formula(
                    words,
                    before=before,
                    gold=gold,
                    output=output,
                    gold_ranges=ranges[0],
                    output_ranges=ranges[1],
                ),
            )
    return Scope(options.keep, options.formula_asked, kept, formula, problems)


def _guarded(
    name: str, mode: str, problems: dict[str, str], look: Callable[[], _Found]
) -> _Found | None:
    try:
        return look()
    except WorkbookError as error:
        if mode == FAIL:
            raise
        problems[name] = error.message
        return None
