"""Compares one rectangle of the gold with the same rectangle of the output.

An answer range can be split into cells to change and cells to keep. The rule that decides by these
groups whether a task is solved is that of SpreadsheetBench 2: :func:`published_shares` is its
published form, which rounds and treats a group without cells as a failure; :func:`exact_shares`
does neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from operator import is_not, ne, or_

from judge.compare.cells.comparison import (
    CellGroup,
    Difference,
    DifferenceClass,
    Differences,
    GroupShares,
    GroupsVerdict,
    remark_on,
)
from judge.compare.cells.options import CheckOptions
from judge.compare.cells.sides import (
    NO_ANSWERS,
    Alignment,
    ConditionAnswers,
    ConditionQuestions,
    RangeSide,
    Side,
)
from judge.compare.cells.value import Agree, classify, comparator
from judge.compare.profiles import Profile
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key, cell_name, folded
from judge.workbook.cell import CellRange, CellValue, ErrorValue
from judge.workbook.position import parse_position

# -- rows in any order -----------------------------------------------------------------------------

_MAX_PAIRS = 250_000  # of rows; each is compared cell by cell

_Row = dict[int, CellValue]


def match_rows(
    expected: Mapping[int, CellValue],
    actual: Mapping[int, CellValue],
    window: Window,
    agree: Agree,
) -> dict[int, int]:
    """Pairs the rows of a rectangle: first equal rows, then rows that agree, then all others.

    Args:
        expected: values of the gold by key.
        actual: values of the output by key.
        window: the rectangle.
        agree: whether two values agree.

    Returns:
        Row of the gold -> row of the output, a permutation of all rows that are not blank on both
        sides. If there are more than 250,000 pairs of unequal rows, these rows keep their order.
    """
    gold_rows, output_rows = _rows(expected, window), _rows(actual, window)
    numbers = sorted(gold_rows.keys() | output_rows.keys())
    pairs: dict[int, int] = {}
    waiting: dict[frozenset[tuple[int, type, CellValue]], list[int]] = {}
    for row in reversed(numbers):
        waiting.setdefault(_fingerprint(output_rows.get(row, {})), []).append(row)
    for row in numbers:
        same = waiting.get(_fingerprint(gold_rows.get(row, {})))
        if same:
            pairs[row] = same.pop()
    taken = set(pairs.values())
    left = [row for row in numbers if row not in pairs]
    free = [row for row in numbers if row not in taken]
    if len(left) * len(free) <= _MAX_PAIRS:
        for row in left:
            match = next(
                (
                    candidate
                    for candidate in free
                    if _rows_agree(gold_rows.get(row, {}), output_rows.get(candidate, {}), agree)
                ),
                None,
            )
            if match is not None:
                pairs[row] = match
                free.remove(match)
    unpaired = (row for row in numbers if row not in pairs)
    return pairs | dict(zip(unpaired, free, strict=True))


def _rows(values: Mapping[int, CellValue], window: Window) -> dict[int, _Row]:
    rows: dict[int, _Row] = {}
    for key, value in values.items():
        row, column = key >> COLUMN_BITS, key & COLUMN_MASK
        if value is not None and window.holds(row, column):
            rows.setdefault(row, {})[column] = value
    return rows


def _fingerprint(row: _Row) -> frozenset[tuple[int, type, CellValue]]:
    return frozenset((column, type(value), value) for column, value in row.items())


def _rows_agree(expected: _Row, actual: _Row, agree: Agree) -> bool:
    return all(
        agree(expected.get(column), actual.get(column))
        for column in expected.keys() | actual.keys()
    )


# -- rectangles ------------------------------------------------------------------------------------


def compare_range(
    gold: RangeSide,
    output: RangeSide,
    profile: Profile,
    options: CheckOptions,
    *,
    style: tuple[str, ...],
    differences: Differences,
    conditions: ConditionAnswers = NO_ANSWERS,
    notes: list[str] | None = None,
) -> set[int]:
    """Compares one rectangle, and adds its differences.

    Args:
        gold: the gold's side.
        output: the output's side.
        profile: the rules.
        options: options of the task's checker.
        style: style attributes to compare in addition to the values.
        differences: receives the differences.
        conditions: the conditions of conditional formats that were evaluated.
        notes: receives notes on how conditional formats were compared.

    Returns:
        Keys of the gold's cells that differ.
    """
    comparison = _RangeComparison(gold, output, profile)
    differing = comparison.differing()
    styles: Mapping[int, str] = {}
    if style:
        # Most tasks compare only values, and never need to read a style sheet.
        from judge.compare.cells.style_check import compare_styles  # noqa: PLC0415

        styles, remarks = compare_styles(
            gold, output, comparison.alignment, style, skip=differing.keys(), conditions=conditions
        )
        if notes is not None:
            notes += remarks
    keys = sorted(differing.keys() | styles.keys())
    if ignored := _ignored(options.ignore, gold.cell_range):
        keys = [
            key
            for key in keys
            if not any(window.holds(*_row_and_column(key)) for window in ignored)
        ]
    for key in keys:
        kind = differing.get(key, DifferenceClass.STYLE)
        if differences.is_full:
            differences.count(kind)
        else:
            differences.add(comparison.difference(key, kind, styles.get(key, "")))
    return set(keys)


def ask_conditions(
    gold: RangeSide,
    output: RangeSide,
    profile: Profile,
    *,
    style: tuple[str, ...],
    questions: ConditionQuestions,
) -> None:
    """Collects the conditions of conditional formats that have to be evaluated for a rectangle.

    Args:
        gold: the gold's side.
        output: the output's side.
        profile: the rules.
        style: style attributes to compare in addition to the values.
        questions: receives the conditions; none if both sides have the same conditional formats.

    Raises:
        WorkbookError: there are too many conditional formats.
    """
    from judge.compare.cells.style_check import ask_about_rules, have_rules  # noqa: PLC0415

    if have_rules(gold, output, style):
        comparison = _RangeComparison(gold, output, profile)
        skip = comparison.differing().keys()
        ask_about_rules(gold, output, comparison.alignment, style, skip=skip, questions=questions)


class _RangeComparison:
    """Compares the values of one rectangle of the gold with those of the output."""

    def __init__(self, gold: RangeSide, output: RangeSide, profile: Profile) -> None:
        self._gold = gold
        self._output = output
        self._profile = profile
        self._agree: Agree = comparator(
            profile,
            expected_1904=gold.workbook.date_1904,
            actual_1904=output.workbook.date_1904,
        )
        self._expected = gold.values()
        self._actual = output.values()
        self._unknown = output.uncomputed()
        self._rows: Mapping[int, int] = {}
        if profile.unordered_rows:
            self._put_rows_in_order()
        if profile.formulas:
            self._unknown = {}
        elif self._unknown:
            self._forget_common_formulas()

    def _put_rows_in_order(self) -> None:
        """Moves the output's rows to the positions that they have in the gold."""
        self._rows = match_rows(self._expected, self._actual, self._gold.window, self._agree)
        back = {output_row: gold_row for gold_row, output_row in self._rows.items()}

        def moved(key: int) -> int:
            row, column = _row_and_column(key)
            return cell_key(back.get(row, row), column)

        self._actual = {moved(key): value for key, value in self._actual.items()}
        self._unknown = {moved(key): why for key, why in self._unknown.items()}

    def output_key(self, key: int) -> int:
        """Returns the key of the output's cell that is compared with a cell of the gold."""
        if not self._rows:
            return key
        row, column = _row_and_column(key)
        return cell_key(self._rows.get(row, row), column)

    @property
    def alignment(self) -> Alignment:
        """Which cells of the two sides are compared with each other."""
        return Alignment(self.output_key, self._rows)

    def _forget_common_formulas(self) -> None:
        # Neither value is known, but equal formulas have equal values.
        gold_unknown = self._gold.uncomputed()
        for key in [key for key in self._unknown if key in gold_unknown]:
            if self._gold.sheet.formula(key) == self._output.sheet.formula(self.output_key(key)):
                del self._unknown[key]

    def differing(self) -> dict[int, DifferenceClass]:
        """Returns the key of a gold cell -> class of the difference, for all cells that differ."""
        keys = set(
            differing_keys(self._expected, self._actual, self._agree, self._profile.ignore_extra)
        )
        if self._profile.formula_fallback:
            keys = self._by_formulas(keys, self._showing_errors())
        by_formula: set[int] = set()
        if self._profile.formulas:
            written = self._written()
            keys = self._by_formulas(keys, written)
            by_formula = keys & written
        kinds = {
            key: classify(self._expected.get(key), self._actual.get(key), self._profile)
            for key in keys - by_formula
        }
        kinds |= dict.fromkeys(by_formula, DifferenceClass.WRONG_FORMULA)
        return kinds | dict.fromkeys(self._unknown, DifferenceClass.NOT_CALCULATED)

    def _showing_errors(self) -> set[int]:
        return {
            key
            for side in (self._expected, self._actual)
            for key, value in side.items()
            if isinstance(value, ErrorValue)
        }

    def _written(self) -> set[int]:
        """Returns the keys of the gold's cells that hold a formula in the gold or in the output."""
        moved = {output: gold for gold, output in self._rows.items()}
        keys = set(self._gold.sheet.formula_keys(self._gold.window))
        for key in self._output.sheet.formula_keys(self._output.window):
            row, column = _row_and_column(key)
            keys.add(cell_key(moved.get(row, row), column))
        return keys

    def _by_formulas(self, keys: set[int], deciding: set[int]) -> set[int]:
        """Returns the keys that differ, comparing the ``deciding`` cells by their formulas."""
        for key in deciding:
            first = self._gold.sheet.formula(key)
            second = self._output.sheet.formula(self.output_key(key))
            if first is None and second is None:
                continue
            if first is not None and second is not None and _plain(first) == _plain(second):
                keys.discard(key)
            else:
                keys.add(key)
        return keys

    def difference(self, key: int, kind: DifferenceClass, detail: str) -> Difference:
        """Returns the difference to report for a cell."""
        output_key = self.output_key(key)
        expected, actual = self._expected.get(key), self._actual.get(key)
        if key in self._unknown:
            why, actual = self._unknown[key], None
        else:
            remark = remark_on(expected, actual, expected_1904=self._gold.workbook.date_1904)
            why = detail or remark
        if output_key != key:
            why = f"{why}; " if why else ""
            why += f"the output has it in {cell_name(*_row_and_column(output_key))}"
        return Difference(
            kind=kind,
            sheet=self._gold.cell_range.sheet,
            cell=cell_name(*_row_and_column(key)),
            expected=expected,
            actual=actual,
            expected_formula=self._gold.sheet.formula(key),
            actual_formula=self._output.sheet.formula(output_key),
            detail=why,
        )


def _plain(formula: str) -> str:
    """Returns a formula in upper case, without ``$`` or a leading ``+``; its value is the same."""
    plain = formula.replace("$", "").upper()
    return f"={plain[2:]}" if plain.startswith("=+") else plain


def differing_keys(
    expected: Mapping[int, CellValue],
    actual: Mapping[int, CellValue],
    agree: Agree,
    ignore_extra: bool = False,
) -> Iterator[int]:
    """Yields the unordered keys of cells that do not agree; cells blank on both sides agree."""
    for key in unequal_keys(expected, actual):
        value = expected[key]
        if not agree(value, actual.get(key)) and not (ignore_extra and value in {None, ""}):
            yield key
    if not ignore_extra and actual.keys() != expected.keys():
        for key in actual.keys() - expected.keys():
            if (value := actual[key]) is not None and not agree(None, value):
                yield key


def unequal_keys(expected: Mapping[int, object], actual: Mapping[int, object]) -> Iterable[int]:
    """Returns the keys of expected cells whose counterpart differs in type or value."""
    if expected is actual:
        return ()
    # Most cells are equal; built-in functions, which run in C, find those that are not.
    others = [*map(actual.get, expected)]
    unequal = map(ne, expected.values(), others)
    retyped = map(is_not, map(type, expected.values()), map(type, others))
    return compress(expected, map(or_, unequal, retyped))


def _row_and_column(key: int) -> tuple[int, int]:
    return key >> COLUMN_BITS, key & COLUMN_MASK


def _ignored(ranges: Iterable[str], gold_range: CellRange) -> list[Window]:
    windows = []
    for text in ranges:
        for part in parse_position(text).parts:
            if part.sheet is None or folded(part.sheet) == folded(gold_range.sheet):
                max_row = gold_range.max_row if part.max_row is None else part.max_row
                max_column = gold_range.max_column if part.max_column is None else part.max_column
                windows.append(Window(part.min_row, part.min_column, max_row, max_column))
    return windows


MODIFICATION, REGRESSION = "modification", "regression"
"""Names of the groups: cells in which the gold differs from the input, and all others."""

KEPT_SHARE = 0.998
"""If at least this share of the cells to keep agrees, all of them count as kept.

Source: SpreadsheetBench 2, ``evaluation.py``.
"""

_DIGITS = 4  # as the published script rounds


def judge_groups(groups: Sequence[CellGroup], *, published: bool) -> GroupsVerdict:
    """Decides whether a task is solved: all cells to change, and nearly all cells to keep, agree.

    Args:
        groups: the two groups of the task.
        published: whether to judge like the published script, which rounds to four decimals and
            treats a group without cells as a share of 0, so that no output is accepted.
    """
    by_name = {group.name: group for group in groups}
    change, keep = by_name[MODIFICATION], by_name[REGRESSION]
    shares = published_shares(change, keep) if published else exact_shares(change, keep)
    notes = []
    if published:
        accepted = shares.modification == shares.regression == 1.0
        notes += [
            f"no cell of the range is to be {done}: the published rule counts that as a share of "
            "0, so it accepts no output"
            for group, done in ((change, "changed"), (keep, "kept"))
            if not group.cells
        ]
    else:
        accepted = shares.modification in {None, 1.0} and (
            shares.regression is None or shares.regression >= KEPT_SHARE
        )
    wrong = change.differing_cells + keep.differing_cells
    if accepted and wrong:
        notes.append(
            f"{wrong:,} of {change.cells + keep.cells:,} cells differ, which the rule of the task "
            "allows"
        )
    return GroupsVerdict(accepted, tuple(groups), shares, tuple(notes))


def published_shares(change: CellGroup, keep: CellGroup) -> GroupShares:
    """Returns the two shares as the published script computes them, from 0 to 1.

    Args:
        change: the cells to change.
        keep: the cells to keep.
    """
    kept = _rounded(keep)
    return GroupShares(_rounded(change), 1.0 if kept >= KEPT_SHARE else kept)


def exact_shares(change: CellGroup, keep: CellGroup) -> GroupShares:
    """Returns the shares of the cells that agree; None for a group without cells.

    Args:
        change: the cells to change.
        keep: the cells to keep.
    """
    return GroupShares(_share(change), _share(keep))


def _share(group: CellGroup) -> float | None:
    return (group.cells - group.differing_cells) / group.cells if group.cells else None


def _rounded(group: CellGroup) -> float:
    return round(_share(group) or 0.0, _DIGITS)


def group_cells(
    before: Side,
    gold: Side,
    ranges: Sequence[CellRange],
    differing: Sequence[set[int] | None],
    profile: Profile,
    options: CheckOptions,
    style: tuple[str, ...],
) -> tuple[CellGroup, CellGroup]:
    """Splits the cells of an answer range into those to change and those to keep.

    Gold and input are compared by the rules for output and gold, except that rows have to be in
    order and that extra values count. A sheet that the input lacks counts as blank, so all content
    of the gold's sheet had to be added.

    Args:
        before: the input.
        gold: the gold.
        ranges: rectangles of the gold.
        differing: for each rectangle, keys of the cells in which the output differs, or
            None if all cells differ.
        profile: the rules for comparing gold and input.
        options: options of the task's checker.
        style: style attributes that are compared in addition to the values.

    Raises:
        WorkbookError: a sheet cannot be read.
    """
    rules = replace(profile, unordered_rows=False, ignore_extra=False)
    to_change = wrong_changes = cells = wrong = 0
    for window, wrong_keys in zip(ranges, differing, strict=True):
        new = gold.area(window)
        placed = before.counterpart(window)
        if placed is None:
            agree = comparator(rules, actual_1904=gold.workbook.date_1904)
            changing = {*differing_keys({}, new.values(), agree), *new.uncomputed()}
        else:
            old = before.area(placed)
            changing = compare_range(
                old, new, rules, options, style=style, differences=Differences(0)
            )
        cells += window.size
        wrong += window.size if wrong_keys is None else len(wrong_keys)
        to_change += len(changing)
        wrong_changes += len(changing if wrong_keys is None else changing & wrong_keys)
    return (
        CellGroup(MODIFICATION, to_change, wrong_changes),
        CellGroup(REGRESSION, cells - to_change, wrong - wrong_changes),
    )
