"""Collateral damage: what an output changed outside the answer range, cell by cell.

The input shows the previous contents, and the gold shows what had to change. Formulas are compared
by their text, ignoring ``$``, spaces, case and the values stored with them. Constants are compared
by the rules of the profile ``standard``, except that a number and the same number as text differ.
If rows or columns were inserted or deleted, lines are first matched by their content.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from judge.compare.cells.scope import FORMULA, find_losses
from judge.compare.cells.style_check import StyleChecker
from judge.compare.cells.value import Agree, comparator
from judge.compare.profiles import get_profile
from judge.core.records.cases import CollateralCellRecord, CollateralRecord
from judge.formulas.lexer import Kind, tokens
from judge.formulas.shift import formula_shape
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    WHOLE_SHEET,
    Window,
    cell_key,
    cell_name,
    folded,
    parse_window,
)
from judge.workbook.cell import STYLE_ATTRIBUTES, CellRange, CellValue, ErrorValue
from judge.workbook.features import FeatureKind
from judge.workbook.position import same_sheet
from judge.workbook.reader import Workbook, filling_cells


class Content(NamedTuple):
    """The content of a cell: a formula or a constant."""

    formula: str | None
    value: CellValue


Contents = Mapping[int, Content]
"""Key of a cell -> its content; blank cells are left out."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Positions of the rows and columns of one sheet in another sheet.

    Attributes:
        rows: row -> its row in the other sheet; None if no row was shifted.
        columns: column -> its column in the other sheet; None if no column was shifted.
        shifts: how often the offset changes from one line to the next.
    """

    rows: Mapping[int, int | None] | None = None
    columns: Mapping[int, int | None] | None = None
    shifts: int = 0

    @staticmethod
    def of(first: Contents, second: Contents, answer: Sequence[Window]) -> Lines:
        """Matches rows by their content, then columns.

        The answer's columns are ignored when rows are matched, and its rows when columns are
        matched, since their content is expected to change.
        """
        if first is second or first == second:
            return IN_PLACE
        rows, row_shifts = _placed(first, second, answer, by_row=True)
        shifted = first if rows is None else _moved(first, Lines(rows=rows))
        columns, column_shifts = _placed(shifted, second, answer, by_row=False)
        if columns is not None and rows is None:
            # Some rows become comparable only after the columns are matched.
            shifted = _moved(first, Lines(columns=columns))
            rows, row_shifts = _placed(shifted, second, answer, by_row=True)
        return Lines(rows, columns, row_shifts + column_shifts)

    def moved_key(self, key: int) -> int | None:
        """Returns the key of a cell in the other sheet; None if its line was deleted."""
        if self.rows is None and self.columns is None:
            return key
        row: int | None = key >> COLUMN_BITS
        column: int | None = key & COLUMN_MASK
        if self.rows is not None:
            row = self.rows.get(key >> COLUMN_BITS)
        if self.columns is not None:
            column = self.columns.get(key & COLUMN_MASK)
        return None if row is None or column is None else cell_key(row, column)


IN_PLACE = Lines()


def _moved(contents: Contents, lines: Lines) -> Contents:
    placed = ((lines.moved_key(key), content) for key, content in contents.items())
    return {key: content for key, content in placed if key is not None}


_Line = Mapping[int, tuple[type, object]]
"""Position in a line -> type and value of the content; for a formula, only its shape."""


def _placed(
    first: Contents, second: Contents, answer: Sequence[Window], *, by_row: bool
) -> tuple[Mapping[int, int | None] | None, int]:
    """Maps lines to lines, and counts shifts; returns None and 0 if no line was shifted."""
    one, two = (_lines(sheet, answer, by_row=by_row) for sheet in (first, second))
    for alike in (_in_common_positions, _in_common_contents):
        placed, shifts = _matched(*alike(one, two))
        if placed is not None:
            return placed, shifts
    return None, 0


def _lines(contents: Contents, answer: Sequence[Window], *, by_row: bool) -> Mapping[int, _Line]:
    """Returns line -> its content outside the answer; blank lines are left out."""
    lines: dict[int, dict[int, tuple[type, object]]] = {}
    for key in sorted(contents):
        row, column = key >> COLUMN_BITS, key & COLUMN_MASK
        line, across = (row, column) if by_row else (column, row)
        if any(
            (part.min_column if by_row else part.min_row)
            <= across
            <= (part.max_column if by_row else part.max_row)
            for part in answer
        ):
            continue
        cell = contents[key]
        content = cell.value if cell.formula is None else formula_shape(cell.formula)
        lines.setdefault(line, {})[across] = type(content), content
    return lines


_Signatures = dict[int, Hashable]


def _in_common_positions(
    first: Mapping[int, _Line], second: Mapping[int, _Line]
) -> tuple[_Signatures, _Signatures]:
    """Returns the lines' content at those positions where at least half of it agrees on both sides.

    This way, a helper column or an overwritten column does not make all rows different.
    """
    bags: tuple[dict[int, Counter[Hashable]], ...] = ({}, {})
    for bag, lines in zip(bags, (first, second), strict=True):
        for line in lines.values():
            for across, content in line.items():
                bag.setdefault(across, Counter())[content] += 1
    one, two = bags
    common = {
        across
        for across, content in one.items()
        if across in two
        and (content & two[across]).total() * 2 >= max(content.total(), two[across].total())
    }
    if not common:
        common = {*one, *two}

    def signed(lines: Mapping[int, _Line]) -> _Signatures:
        kept = (
            (n, tuple((across, content) for across, content in line.items() if across in common))
            for n, line in lines.items()
        )
        return {n: signature for n, signature in kept if signature}

    return signed(first), signed(second)


def _in_common_contents(
    first: Mapping[int, _Line], second: Mapping[int, _Line]
) -> tuple[_Signatures, _Signatures]:
    """Returns the lines' content that occurs on both sides, in any position."""
    one, two = (
        {content for line in lines.values() for content in line.values()}
        for lines in (first, second)
    )

    def signed(lines: Mapping[int, _Line]) -> _Signatures:
        common = one & two
        kept = (
            (n, tuple(content for content in line.values() if content in common))
            for n, line in lines.items()
        )
        return {n: signature for n, signature in kept if signature}

    return signed(first), signed(second)


def _matched(
    first: Mapping[int, Hashable], second: Mapping[int, Hashable]
) -> tuple[Mapping[int, int | None] | None, int]:
    """Maps lines to lines, and counts shifts; returns None and 0 if no line was shifted.

    Only lines that have the same order on both sides are matched. They have to be at least half of
    all lines, and more than the lines that did not move.
    """
    anchors = list(_anchors(first, second))
    in_place = sum(second.get(line) == content for line, content in first.items())
    apart = [there - here for here, there in anchors]
    if not any(apart) or len(anchors) * 2 < len(first) or len(anchors) <= in_place:
        return None, 0
    placed: dict[int, int | None] = {}
    last = max(first, default=0) + 1
    ends = [(0, 0), *anchors, (last, last + apart[-1])]
    for (here, there), (next_here, next_there) in pairwise(ends):
        gap, room = next_here - here, next_there - there
        placed[here] = there
        for step in range(1, gap):
            placed[here + step] = there + step if step < room else None
    del placed[0]
    return placed, sum(one != two for one, two in zip([0, *apart], apart, strict=False))


def _anchors(
    first: Mapping[int, Hashable], second: Mapping[int, Hashable]
) -> Iterator[tuple[int, int]]:
    """Yields pairs of equal lines: the first ones, the last ones, and unique ones."""
    here, there = sorted(first), sorted(second)
    start, most = 0, min(len(here), len(there))
    while start < most and first[here[start]] == second[there[start]]:
        start += 1
    left = 0
    while left < most - start and first[here[-1 - left]] == second[there[-1 - left]]:
        left += 1
    yield from zip(here[:start], there[:start], strict=True)
    yield from _unique_anchors(
        {line: first[line] for line in here[start : len(here) - left]},
        {line: second[line] for line in there[start : len(there) - left]},
    )
    yield from zip(here[len(here) - left :], there[len(there) - left :], strict=True)


def _unique_anchors(
    first: Mapping[int, Hashable], second: Mapping[int, Hashable]
) -> Iterator[tuple[int, int]]:
    """Yields the longest sequence of lines that are unique and in the same order on both sides."""
    once = {content for content, n in Counter(first.values()).items() if n == 1}
    here = {content: line for line, content in second.items()}
    counts = Counter(second.values())
    pairs = [
        (line, here[content])
        for line, content in sorted(first.items())
        if content in once and counts[content] == 1
    ]
    # The longest increasing subsequence, by patience sorting.
    tops: list[int] = []
    piles: list[int] = []
    below: list[int | None] = []
    for number, (_, there) in enumerate(pairs):
        at = bisect_left(tops, there)
        below.append(piles[at - 1] if at else None)
        tops[at : at + 1] = [there]
        piles[at : at + 1] = [number]
    chain = []
    at_pair = piles[-1] if piles else None
    while at_pair is not None:
        chain.append(pairs[at_pair])
        at_pair = below[at_pair]
    yield from reversed(chain)


MAX_CELLS = 20
"""How many changed cells are kept per case; all are counted."""

_STYLE = tuple(name for name in STYLE_ATTRIBUTES if name != "hyperlink")


class Harm(enum.StrEnum):
    """How a cell outside the answer range differs from the input."""

    OVERWRITTEN = "overwritten"
    """Input and gold have the same content, the output has another."""
    ERASED = "erased"
    """Input and gold have the same content, and the cell is blank in the output."""
    ADDED = "added"
    """The cell is blank in input and gold, but not in the output."""
    OTHER = "other_than_gold"
    """The gold changed the cell, and the output changed it in another way."""
    AS_GOLD = "as_gold"
    """The output has the same content as the gold, so this is not damage."""


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
        counts: kind of change -> number of cells.
        formulas_lost: how many of the overwritten cells hold a formula in the input and a constant
            in the output.
        features: how many features the input had, the gold kept and the output lost, including
            names that now refer to something else and sheets that are now hidden.
        style: how many cells look different from the input, although the gold kept their look.
        moved: number of times that rows or columns of the input were shifted.
        exposed: how many cells outside the answer range hold something in the input.
        errors_left: how many cells of the output, including the answer, have a stored error value
            that the input does not have there.
        cells: the first cells that changed; overwritten and erased ones come first.
    """

    counts: Mapping[Harm, int]
    formulas_lost: int
    features: int
    style: int
    moved: int
    exposed: int
    errors_left: int
    cells: tuple[HarmedCell, ...]

    @property
    def damage(self) -> int:
        """How many cells were overwritten or erased, plus how many features were lost."""
        return self.counts[Harm.OVERWRITTEN] + self.counts[Harm.ERASED] + self.features

    def __str__(self) -> str:
        first = next((f"{cell.sheet}!{cell.cell}" for cell in self.cells), "")
        summary = (
            f"outside the answer, {self.counts[Harm.OVERWRITTEN]:,} cells were overwritten and "
            f"{self.counts[Harm.ERASED]:,} erased, and {self.features:,} features are lost"
        )
        return f"{summary} (first: {first})" if first and self.damage > self.features else summary

    def to_json(self, mode: str) -> CollateralRecord:
        """Returns the figures as they are written to records.

        Args:
            mode: ``note`` or ``fail``.
        """
        cells: list[CollateralCellRecord] = [
            {"kind": cell.harm.value, "sheet": cell.sheet, "cell": cell.cell} for cell in self.cells
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
            "errors_left": self.errors_left,
            "cells": cells,
        }


def find_collateral(
    before: Workbook,
    gold: Workbook,
    output: Workbook,
    gold_ranges: Sequence[CellRange],
    output_ranges: Sequence[CellRange | None],
) -> Collateral:
    """Compares the contents of three workbooks outside the answer.

    A sheet that the output lost counts as one feature; its cells are not counted as well.

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
    for area in (*gold_ranges, *output_ranges):
        if area is not None:
            answer.setdefault(area.sheet, []).append(area.window)
    names = {name: same_sheet(name, output.sheet_names) for name in before.sheet_names}
    sheets = [
        _SheetSides.of(
            before, gold, output, (name, same_sheet(name, gold.sheet_names), output_name), answer
        )
        for name, output_name in names.items()
        if output_name is not None
    ]
    sheets += [
        _SheetSides.of(
            before, gold, output, (None, same_sheet(name, gold.sheet_names), name), answer
        )
        for name in output.sheet_names
        if name not in names.values()
    ]
    count = _Count(
        in_gold=any(sides.in_gold.shifts for sides in sheets),
        in_output=any(sides.in_output.shifts for sides in sheets),
    )
    for sides in sheets:
        count.sheet(sides)
        count.errors_left += _new_errors(before, output, sides)
        if sides.before_name is not None and sides.gold_name is not None:
            count.style += _restyled(before, gold, output, sides)
    losses = find_losses(before, gold, output, gold_ranges)
    features = sum(n for kind, n in losses.counts.items() if kind != FORMULA)
    features += _hidden_now(before, gold, output)
    if FeatureKind.SHEET not in losses.counts:
        # The names of a sheet that is gone, or has another name now, cannot refer to it.
        shifted = any(sides.in_output.shifts for sides in sheets)
        features += sum(
            not _means_the_same(original, actual, shifted=shifted)
            for original, actual in losses.redefined
        )
    return count.collateral(features)


def _hidden_now(before: Workbook, gold: Workbook, output: Workbook) -> int:
    """How many sheets the output hides that input and gold show."""
    was, expected, actual = (
        {folded(tab.name): tab.state == "visible" for tab in workbook.tabs}
        for workbook in (before, gold, output)
    )
    return sum(
        shown and expected.get(name, False) and not actual.get(name, True)
        for name, shown in was.items()
    )


def _means_the_same(first: str, second: str, *, shifted: bool) -> bool:
    """Whether two definitions of a name agree; where lines were shifted, addresses may differ."""
    if shifted and formula_shape(first) == formula_shape(second):
        return True
    return _plain(first).replace("'", "") == _plain(second).replace("'", "")


def _contents(workbook: Workbook, sheet: str) -> dict[int, Content]:
    """Returns the contents of a sheet's cells, except those that another cell's formula fills."""
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
    """A formula without ``$``, spaces or function prefixes, in upper case; quoted text is kept."""
    if '"' not in formula:
        plain = _bare(formula)
    else:
        plain = "".join(
            token.text if token.kind is Kind.TEXT else _bare(token.text)
            for token in tokens(formula)
        )
    return f"={plain[2:]}" if plain.startswith("=+") else plain


def _bare(text: str) -> str:
    return "".join(text.replace("$", "").split()).upper().replace("_XLFN.", "")


def _is_within(key: int, windows: Sequence[Window]) -> bool:
    row, column = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(window.holds(row, column) for window in windows)


@dataclass(frozen=True, slots=True)
class _SheetSides:
    """A sheet of the output, with its counterparts in input and gold.

    Attributes:
        before_name, gold_name: names of the counterparts; None if a workbook has none.
        output_name: name of the sheet in the output.
        before, gold, output: contents of the sheet in each workbook.
        in_gold, in_output: positions of the input's lines in the gold and in the output.
        answer: rectangles of the answer.
    """

    before_name: str | None
    gold_name: str | None
    output_name: str
    before: Contents
    gold: Contents
    output: Contents
    in_gold: Lines
    in_output: Lines
    answer: Sequence[Window]

    @classmethod
    def of(
        cls,
        before: Workbook,
        gold: Workbook,
        output: Workbook,
        names: tuple[str | None, str | None, str],
        answer: Mapping[str, Sequence[Window]],
    ) -> _SheetSides:
        """Reads the three sheets, and matches their lines.

        Args:
            before: the input.
            gold: the gold.
            output: the output.
            names: names of the sheet in the three workbooks.
            answer: rectangles of the answer, by the sheets of gold and output.
        """
        own, kept, output_name = names
        windows = list(
            dict.fromkeys([*answer.get(output_name, ()), *answer.get(kept or output_name, ())])
        )
        original = _contents(before, own) if own is not None else {}
        expected = _contents(gold, kept) if kept is not None else {}
        actual = _contents(output, output_name)
        in_gold, in_output = (
            Lines.of(original, expected, windows),
            Lines.of(original, actual, windows),
        )
        return cls(own, kept, output_name, original, expected, actual, in_gold, in_output, windows)

    def is_answer(self, key: int) -> bool:
        """Whether a cell of the input is part of the answer, in gold or output."""
        keys = self.in_gold.moved_key(key), self.in_output.moved_key(key)
        return any(
            other_key is not None and _is_within(other_key, self.answer) for other_key in keys
        )


class _Count:
    """Counts the changes of one workbook, sheet by sheet.

    Args:
        in_gold: whether lines were shifted on a sheet of the gold.
        in_output: whether lines were shifted on a sheet of the output.
    """

    def __init__(self, *, in_gold: bool, in_output: bool) -> None:
        self._in_gold, self._in_output = in_gold, in_output
        self._agree: Agree = comparator(get_profile("standard"))
        self._counts: Counter[Harm] = Counter()
        self._cells: dict[Harm, list[HarmedCell]] = {harm: [] for harm in Harm}
        self._formulas_lost = self._moved = self._exposed = 0
        self.style = self.errors_left = 0

    def sheet(self, sides: _SheetSides) -> None:
        """Counts the changes of one sheet."""
        name = sides.before_name or sides.output_name
        self._moved += sides.in_output.shifts
        reached, of_input = set(), set()
        for key, original in sides.before.items():
            output_key, gold_key = sides.in_output.moved_key(key), sides.in_gold.moved_key(key)
            reached.add(output_key)
            of_input.add(gold_key)
            if sides.is_answer(key):
                continue
            self._exposed += 1
            actual = _NOTHING if output_key is None else sides.output.get(output_key, _NOTHING)
            if not self._same(original, actual, moved=self._in_output):
                expected = _NOTHING if gold_key is None else sides.gold.get(gold_key, _NOTHING)
                self._note(name, key, self._harm(original, expected, actual))
                lost = (
                    original.formula is not None and actual != _NOTHING and actual.formula is None
                )
                self._formulas_lost += lost and self._same(original, expected, moved=self._in_gold)
        for key, actual in sides.output.items():
            if key not in reached and not _is_within(key, sides.answer):
                # In a line that only the output has, the gold's cell at this address is a different
                # one.
                expected = _NOTHING if key in of_input else sides.gold.get(key, _NOTHING)
                self._note(name, key, self._harm(_NOTHING, expected, actual))

    def _harm(self, original: Content, expected: Content, actual: Content) -> Harm:
        if self._same(expected, actual, moved=self._in_gold or self._in_output):
            return Harm.AS_GOLD
        if not self._same(original, expected, moved=self._in_gold):
            return Harm.OTHER
        if original == _NOTHING:
            return Harm.ADDED
        return Harm.ERASED if actual == _NOTHING else Harm.OVERWRITTEN

    def _same(self, first: Content, second: Content, *, moved: bool) -> bool:
        """Whether two cells have the same content.

        Args:
            first: one of them.
            second: the other.
            moved: whether lines were shifted between the two, which changes addresses in
                references.
        """
        if first.formula is None or second.formula is None:
            # SUM ignores a number that became text, although it may agree as an answer.
            kept = isinstance(first.value, str) is isinstance(second.value, str) or None in (
                first.value,
                second.value,
            )
            return (
                kept and first.formula is second.formula and self._agree(first.value, second.value)
            )
        if first.formula == second.formula:
            return True
        return moved and formula_shape(first.formula) == formula_shape(second.formula)

    def _note(self, sheet: str, key: int, harm: Harm) -> None:
        self._counts[harm] += 1
        if harm is not Harm.AS_GOLD and len(self._cells[harm]) < MAX_CELLS:
            name = cell_name(key >> COLUMN_BITS, key & COLUMN_MASK)
            self._cells[harm].append(HarmedCell(harm, sheet, name))

    def collateral(self, features: int) -> Collateral:
        """Returns the figures, with the number of features that were lost."""
        cells = [cell for harm in Harm for cell in self._cells[harm]]
        return Collateral(
            counts=self._counts,
            formulas_lost=self._formulas_lost,
            features=features,
            style=self.style,
            moved=self._moved,
            exposed=self._exposed,
            errors_left=self.errors_left,
            cells=tuple(cells[:MAX_CELLS]),
        )


def _new_errors(before: Workbook, output: Workbook, sides: _SheetSides) -> int:
    """Counts cells of an output sheet with an error value that the input does not have there."""
    old: set[int | None] = set()
    if sides.before_name is not None:
        old = {sides.in_output.moved_key(key) for key in _errors(before, sides.before_name)}
    return len(_errors(output, sides.output_name) - old)


def _errors(workbook: Workbook, sheet: str) -> set[int]:
    values = workbook.sheet(sheet).values(WHOLE_SHEET)
    return {key for key, value in values.items() if isinstance(value, ErrorValue)}


# -- looks -----------------------------------------------------------------------------------------


def _restyled(before: Workbook, gold: Workbook, output: Workbook, sides: _SheetSides) -> int:
    """Counts cells of a sheet outside the answer that look different from both input and gold."""
    names = (sides.before_name or "", sides.gold_name or "", sides.output_name)
    first, second, third = (CellRange.of(name, WHOLE_SHEET) for name in names)

    def details(workbook: Workbook, area: CellRange, placed: Lines) -> dict[int, str]:
        # Deleted lines have no look; their cells are compared with themselves and never count.
        details = StyleChecker(before, workbook, _STYLE).details(
            first,
            area,
            lambda key: key if (there := placed.moved_key(key)) is None else there,
            skip=(),
        )
        return {key: detail for key, detail in details.items() if placed.moved_key(key) is not None}

    restyled = [key for key in details(output, third, sides.in_output) if not sides.is_answer(key)]
    if not restyled:
        return 0
    by_gold = details(gold, second, sides.in_gold)
    return sum(key not in by_gold for key in restyled)
