"""Compares the conditional formats of a rectangle: as text first, then by their effect.

Rules with the same text are equal, and nothing is computed for them. If their text differs, the
looks that the rules give each cell are compared. If it cannot be determined which rules hold, the
text decides, and a note says so. A side without rules does not match a side with rules, even if
none of the rules holds, because only the rules show that the task required them.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from judge.compare.cells.sides import Answers, ConditionKey, ConditionQuestions, Questions
from judge.compare.cells.value import text_as_number
from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key
from judge.workbook.cell import CellRange, CellValue, ErrorValue
from judge.workbook.number_formats import to_serial
from judge.workbook.reader import Workbook
from judge.workbook.sheets.sheet import Sheet
from judge.workbook.sheets.sheet_tail import ConditionalRule
from judge.workbook.styles.conditional import (
    AGGREGATES,
    UNDRAWN,
    RuleWork,
    Segment,
    StyledRule,
    effective_rules,
    same_effective_rules,
    same_rules,
    segments,
)
from judge.workbook.styles.style_sheet import (
    CellStyle,
    Fill,
    Palette,
    attribute_agrees,
    resolve_colour,
)
from judge.workbook.xml_parts import is_on, whole_number

# -- rules that look at all cells of their range ---------------------------------------------------
# Rules that look at all cells of their range: duplicates, top and bottom, averages, scales. Pure.
# Source: ECMA-376 part 1, 18.3.1.10, and the formulas in [MS-XLSB] for these kinds.

Holds = Callable[[int], bool]
"""Key of a cell -> whether a rule holds there."""


def as_number(value: CellValue) -> float | None:
    """Returns the number that a cell contributes to a rule; None for strings, blanks etc."""
    if isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta):
        return float(to_serial(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def aggregate(rule: ConditionalRule, values: Mapping[int, CellValue]) -> Holds | str:
    """Determines in which cells of its ranges a rule holds.

    Args:
        rule: a rule of the kinds ``duplicateValues``, ``uniqueValues``, ``top10`` or
            ``aboveAverage``.
        values: the values of its ranges by key.

    Returns:
        A function that tells whether the rule holds in a cell, or why that cannot be determined.
    """
    if rule.kind in {"duplicateValues", "uniqueValues"}:
        return _repeated(values, unique=rule.kind == "uniqueValues")
    numbers = {
        key: number for key, value in values.items() if (number := as_number(value)) is not None
    }
    holds = _ranked(rule, numbers) if rule.kind == "top10" else _averaged(rule, numbers)
    if isinstance(holds, str):
        return holds
    return lambda key: key in numbers and holds(numbers[key])


def _repeated(values: Mapping[int, CellValue], *, unique: bool) -> Holds:
    likeness = {key: _likeness(value) for key, value in values.items() if value not in {None, ""}}
    counts = Counter(likeness.values())
    return lambda key: key in likeness and (counts[likeness[key]] == 1) is unique


def _likeness(value: CellValue) -> object:
    """Returns a key that is the same for values that count as duplicates."""
    if isinstance(value, str):
        number = text_as_number(value)
        return value.casefold() if number is None else number
    if isinstance(value, bool | ErrorValue):
        return (type(value).__name__, value)
    return as_number(value)


def _ranked(rule: ConditionalRule, numbers: Mapping[int, float]) -> Callable[[float], bool] | str:
    terms = dict(rule.terms)
    rank = whole_number(terms.get("rank", "10"))
    if rank is None:
        return f"the rank {terms.get('rank', '')[:20]!r}"
    bottom = is_on(terms.get("bottom"))
    ranked = sorted(numbers.values(), reverse=not bottom)
    if not ranked:
        return lambda _: False
    count = rank
    if is_on(terms.get("percent")):
        count = max(1, len(ranked) * rank // 100)
    if count < 1:
        return lambda _: False
    last = ranked[min(count, len(ranked)) - 1]
    return (lambda number: number <= last) if bottom else (lambda number: number >= last)


def _averaged(rule: ConditionalRule, numbers: Mapping[int, float]) -> Callable[[float], bool] | str:
    terms = dict(rule.terms)
    deviations = whole_number(terms.get("stdDev", "0"))
    if deviations is None:
        return f"{terms.get('stdDev', '')[:20]!r} standard deviations"
    if not numbers:
        return lambda _: False
    mean = math.fsum(numbers.values()) / len(numbers)
    above = is_on(terms.get("aboveAverage"), default=True)
    if deviations:
        spread = math.fsum((value - mean) ** 2 for value in numbers.values()) / len(numbers)
        apart = deviations * math.sqrt(spread)
        if above:
            return lambda number: number - mean >= apart
        return lambda number: mean - number >= apart
    if is_on(terms.get("equalAverage")):
        return (lambda number: number >= mean) if above else (lambda number: number <= mean)
    return (lambda number: number > mean) if above else (lambda number: number < mean)


# -- colour scales --------------------------------------------------------------------------------


def scale(
    rule: ConditionalRule, values: Mapping[int, CellValue], palette: Palette
) -> Callable[[int], Fill | None] | str:
    """Determines the colours that a colour scale gives to the cells of its ranges.

    Args:
        rule: a rule of the kind ``colorScale``.
        values: the values of its ranges by key.
        palette: the colours that theme and index colours refer to.

    Returns:
        A function that gives the fill of a cell, or None if it has none; or why the colours cannot
        be determined.
    """
    numbers = {
        key: number for key, value in values.items() if (number := as_number(value)) is not None
    }
    points = [dict(attributes) for name, attributes in rule.drawn if name == "cfvo"]
    colours = [
        resolve_colour(dict(attributes), palette)
        for name, attributes in rule.drawn
        if name == "color"
    ]
    if len(points) != len(colours) or len(points) not in {2, 3} or None in colours:
        return "an incomplete colour scale"
    if not numbers:
        return lambda _: None
    ranked = sorted(numbers.values())
    thresholds = [_threshold(point, ranked) for point in points]
    stops = [threshold for threshold in thresholds if threshold is not None]
    if len(stops) < len(thresholds):
        return "a colour scale with bounds that have to be computed"
    fixed_colours = [colour for colour in colours if colour is not None]

    def fill(key: int) -> Fill | None:
        number = numbers.get(key)
        return None if number is None else Fill("solid", (_between(number, stops, fixed_colours),))

    return fill


def _threshold(point: Mapping[str, str], ranked: Sequence[float]) -> float | None:
    low, high = ranked[0], ranked[-1]
    kind = point.get("type", "")
    if kind in {"min", "max"}:
        return low if kind == "min" else high
    number = text_as_number(point.get("val", ""))
    if number is None or not math.isfinite(number) or kind not in {"num", "percent", "percentile"}:
        return None
    if kind == "num":
        return number
    share = min(max(number / 100, 0.0), 1.0)
    if kind == "percent":
        return low + (high - low) * share
    rank = share * (len(ranked) - 1)
    below = int(rank)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (ranked[above] - ranked[below]) * (rank - below)


def _between(number: float, stops: Sequence[float], colours: Sequence[str]) -> str:
    if number <= stops[0]:
        return colours[0]
    for index in range(1, len(stops)):
        if number <= stops[index]:
            first, last = stops[index - 1], stops[index]
            share = (number - first) / (last - first) if last > first else 1.0
            return _mixed(colours[index - 1], colours[index], share)
    return colours[-1]


def _mixed(first: str, last: str, share: float) -> str:
    channels = []
    for at in (0, 2, 4):
        low, high = int(first[at : at + 2], 16), int(last[at : at + 2], 16)
        channels.append(f"{round(low + (high - low) * share):02X}")
    return "".join(channels)


# -- what they show, cell by cell ------------------------------------------------------------------
# The effect of conditional formats, cell by cell, for rules that are written differently.
# All questions are collected first and answered later: :class:`RuleQuestions` collects the
# conditions and values that are needed, :class:`RuleEvaluator` derives the look of a cell from
# the answers.

MAX_EVALUATED = 200_000
"""How many conditions (cells times rules) are evaluated per comparison."""

MAX_VALUES = 500_000
"""Limit on cells times ranges, for a rule that depends on all cells of its ranges."""

ValuesOf = Callable[[CellRange], tuple[Mapping[int, CellValue], Mapping[int, str]]]
"""Returns the values of a range by key, including computed ones, and the reasons for cells whose
value is unknown."""

Overlay = dict[str, object]
"""Style attribute -> the value that conditional formats give it."""

_OFF_THE_SHEET = "a reference of a condition leaves the sheet"


def rule_range(sheet: str, rule: StyledRule) -> CellRange:
    """Returns the rectangle around all ranges of a rule."""
    windows = rule.rule.windows
    return CellRange(
        sheet,
        min(window.min_row for window in windows),
        min(window.min_column for window in windows),
        max(window.max_row for window in windows),
        max(window.max_column for window in windows),
    )


def _key(sheet: str, rule: StyledRule, row: int, column: int) -> ConditionKey | str:
    """Returns the condition to evaluate, or why it cannot be evaluated."""
    if rule.formula.reason:
        return rule.formula.reason
    text = rule.formula.at(row, column)
    return _OFF_THE_SHEET if text is None else (sheet, text)


class RuleQuestions:
    """Collects the conditions and values that are needed from a workbook.

    Args:
        sheet: the sheet of the rules.
        questions: receives the conditions and ranges.
    """

    def __init__(self, sheet: str, questions: Questions) -> None:
        self._sheet = sheet
        self._questions = questions

    def ask(self, rules: Sequence[StyledRule], row: int, column: int) -> None:
        """Adds everything on which the look of a cell depends."""
        for rule in rules:
            if rule.rule.kind in AGGREGATES:
                self._questions.ranges[rule_range(self._sheet, rule)] = None
            elif rule.rule.kind not in UNDRAWN:
                key = _key(self._sheet, rule, row, column)
                if not isinstance(key, str):
                    self._questions.ask(key)


class RuleEvaluator:
    """Determines how the rules of one sheet change the look of a cell.

    Args:
        sheet: the sheet of the rules.
        answers: the answers to the questions.
        values_of: returns the values of ranges.
        palette: the colours that theme and index colours refer to.
    """

    def __init__(self, sheet: str, answers: Answers, values_of: ValuesOf, palette: Palette) -> None:
        self._sheet = sheet
        self._answers = answers
        self._values_of = values_of
        self._palette = palette
        self._aggregates: dict[int, Holds | str] = {}
        self._scales: dict[int, Callable[[int], Fill | None] | str] = {}

    def overlay(
        self, rules: Sequence[StyledRule], row: int, column: int, names: Sequence[str]
    ) -> Overlay | str:
        """Returns how the rules change a cell: for each attribute, by the first rule that holds.

        Args:
            rules: the rules that apply to the cell, in their order.
            row: its row.
            column: its column.
            names: the attributes that are compared.

        Returns:
            The attributes that the rules set, or why they cannot be determined.
        """
        overlay: Overlay = {}
        for rule in rules:
            if rule.is_scale:
                fill = self._scaled(rule, cell_key(row, column))
                if isinstance(fill, str):
                    return fill
                if fill is not None and "fill" in names:
                    overlay.setdefault("fill", fill)
                continue
            truth = self._truth(rule, row, column)
            if isinstance(truth, str):
                return truth
            if not truth:
                continue
            for name in names:
                if (look := getattr(rule.look, name)) is not None:
                    overlay.setdefault(name, look)
            if rule.rule.stops:
                break
        return overlay

    def _truth(self, rule: StyledRule, row: int, column: int) -> bool | str:
        if rule.rule.kind in UNDRAWN:
            return False
        if rule.rule.kind in AGGREGATES:
            holds = self._aggregate(rule)
            return holds if isinstance(holds, str) else holds(cell_key(row, column))
        key = _key(self._sheet, rule, row, column)
        if isinstance(key, str):
            return key
        answers = self._answers
        truth = answers.truths.get(key)
        return answers.unknown.get(key, answers.otherwise) if truth is None else truth

    def _aggregate(self, rule: StyledRule) -> Holds | str:
        aggregated = self._aggregates.get(id(rule))
        if aggregated is None:
            values = self._values(rule)
            aggregated = values if isinstance(values, str) else aggregate(rule.rule, values)
            self._aggregates[id(rule)] = aggregated
        return aggregated

    def _scaled(self, rule: StyledRule, key: int) -> Fill | str | None:
        scaled = self._scales.get(id(rule))
        if scaled is None:
            values = self._values(rule)
            scaled = values if isinstance(values, str) else scale(rule.rule, values, self._palette)
            self._scales[id(rule)] = scaled
        return scaled if isinstance(scaled, str) else scaled(key)

    def _values(self, rule: StyledRule) -> Mapping[int, CellValue] | str:
        windows = rule.rule.windows
        try:
            values, unknown = self._values_of(rule_range(self._sheet, rule))
        except WorkbookError as error:
            return f"the ranges of a rule cannot be read: {error.message}"
        if max(len(values), len(unknown)) * len(windows) > MAX_VALUES:
            return "a rule looks at too many cells"
        if any(_within(key, windows) for key in unknown):
            return "a rule looks at formulas that were not computed"
        return {key: value for key, value in values.items() if _within(key, windows)}


def _within(key: int, windows: Sequence[Window]) -> bool:
    row, column = key >> COLUMN_BITS, key & COLUMN_MASK
    return any(window.holds(row, column) for window in windows)


# -- the comparison --------------------------------------------------------------------------------

OTHER_RULES = "other conditional formats"
"""The detail of a difference ends with this if only the text of the rules was compared."""

_ONE_SIDED = "one side has no such rule"
_TOO_MANY = f"there are more than {MAX_EVALUATED:,} conditions to evaluate"


@dataclass(frozen=True, slots=True)
class RuleSide:
    """One side of a comparison of conditional formats.

    Attributes:
        workbook: the workbook.
        sheet: name of the worksheet.
        answers: which of its conditions hold.
        values_of: returns the values of its ranges.
    """

    workbook: Workbook
    sheet: str
    answers: Answers
    values_of: ValuesOf


@dataclass(frozen=True, slots=True)
class _Unlike:
    """A rectangle in which the text of the rules differs.

    Attributes:
        segment: the rectangle.
        names: the attributes for which the text differs.
        other: the attributes for which the text differs even if the order of the rules is ignored.
        reason: why the rules are not evaluated; empty if they are.
    """

    segment: Segment
    names: tuple[str, ...]
    other: tuple[str, ...]
    reason: str


def has_rules(sheet: Sheet, workbook: Workbook, names: Sequence[str]) -> bool:
    """Whether a sheet has rules that set one of the attributes."""
    rules = sheet.tail.rules
    return bool(rules) and bool(effective_rules(rules, workbook.style_sheet, names, RuleWork()))


class RuleComparison:
    """The conditional formats of one rectangle on both sides.

    Args:
        gold: the gold's side.
        output: the output's side.
        window: the rectangle.
        names: attributes of :data:`judge.workbook.styles.conditional.CONDITIONAL_ATTRIBUTES`.
        moved_rows: row of the gold -> its row in the output, if rows were moved.
    """

    def __init__(
        self,
        gold: RuleSide,
        output: RuleSide,
        window: Window,
        names: Sequence[str],
        moved_rows: Mapping[int, int],
    ) -> None:
        self._gold = gold
        self._output = output
        self._window = window
        self._names = tuple(names)
        self._moved_rows = moved_rows
        self._styles: dict[int, Mapping[int, int]] = {}
        self._as_text: Counter[str] = Counter()
        self._as_shown = 0

    @property
    def notes(self) -> list[str]:
        """How rules with different text were compared; complete after :meth:`differing`."""
        where = f"{self._gold.sheet!r}"
        notes = []
        if self._as_shown:
            notes.append(
                f"conditional formats of {where} that are written differently were compared by "
                f"what they show in {self._as_shown:,} cells"
            )
        for reason, cells in self._as_text.items():
            notes.append(
                f"conditional formats of {where} were compared as text in {cells:,} cells: {reason}"
            )
        return notes + self._undrawn()

    def _undrawn(self) -> list[str]:
        drawn = [
            [
                (rule.kind, rule.windows, rule.terms, rule.drawn)
                for rule in side.workbook.sheet(side.sheet).tail.rules
                if rule.kind in UNDRAWN
            ]
            for side in (self._gold, self._output)
        ]
        if drawn[0] == drawn[1]:
            return []
        return [f"data bars and icon sets of {self._gold.sheet!r} differ; they are not compared"]

    # -- asking ----------------------------------------------------------------------------------

    def ask(self, questions: ConditionQuestions, *, skip: Collection[int]) -> None:
        """Collects the questions whose answers :meth:`differing` needs for the same ``skip``.

        Raises:
            WorkbookError: there are too many rules.
        """
        gold = RuleQuestions(self._gold.sheet, questions.gold)
        output = RuleQuestions(self._output.sheet, questions.output)
        for unlike in self._unlike():
            if unlike.reason:
                continue
            segment = unlike.segment
            for row, column in segment.window.cells():
                if cell_key(row, column) not in skip:
                    gold.ask(segment.gold, row, column)
                    output.ask(segment.output, row + segment.rows_down, column)

    def _unlike(self) -> Iterator[_Unlike]:
        """Yields the rectangles in which the text of the rules differs."""
        if self._gold.workbook is self._output.workbook and not self._moved_rows:
            return
        work = RuleWork()
        gold, output = self._styled(self._gold, work), self._styled(self._output, work)
        left = MAX_EVALUATED
        blamed = self._gold if len(gold) > len(output) else self._output
        with blamed.workbook.package.blamed():
            for segment in segments(self._window, gold, output, self._moved_rows, work):
                names = [name for name in self._names if not same_effective_rules(name, segment)]
                if not names:
                    continue
                work.take(segment.window.size)
                cost = segment.window.size * (len(segment.gold) + len(segment.output))
                reason = ""
                if not (gold and output):
                    reason = _ONE_SIDED
                elif cost > left:
                    reason = _TOO_MANY
                else:
                    left -= cost
                other = tuple(name for name in names if not same_rules(name, segment))
                yield _Unlike(segment, tuple(names), other, reason)

    def _styled(self, side: RuleSide, work: RuleWork) -> list[StyledRule]:
        with side.workbook.package.blamed():
            rules = [
                rule
                for rule in side.workbook.sheet(side.sheet).tail.rules
                if any(window.overlaps(self._window) for window in rule.windows)
            ]
            if not rules:
                return []
            return effective_rules(rules, side.workbook.style_sheet, self._names, work)

    # -- comparing -------------------------------------------------------------------------------

    def differing(self, *, skip: Collection[int]) -> Iterator[tuple[int, str]]:
        """Yields the cells that conditional formats make look different.

        Args:
            skip: keys of cells that are not compared.

        Yields:
            Key of the gold's cell, and a description of the difference.

        Raises:
            WorkbookError: there are too many rules.
        """
        gold = self._evaluator(self._gold)
        output = self._evaluator(self._output)
        for unlike in self._unlike():
            segment, down = unlike.segment, unlike.segment.rows_down
            for row, column in segment.window.cells():
                key = cell_key(row, column)
                if key in skip:
                    continue
                if unlike.reason:
                    yield from self._by_text(key, unlike, unlike.reason)
                    continue
                first = gold.overlay(segment.gold, row, column, unlike.names)
                second = output.overlay(segment.output, row + down, column, unlike.names)
                if isinstance(first, str) or isinstance(second, str):
                    reason = first if isinstance(first, str) else str(second)
                    yield from self._by_text(key, unlike, reason)
                    continue
                self._as_shown += 1
                shown = self._look(self._gold, key, first)
                actual = self._look(self._output, cell_key(row + down, column), second)
                for name in unlike.names:
                    if not attribute_agrees(name, shown, actual):
                        yield key, _look_difference(name, shown, actual)

    def _by_text(self, key: int, unlike: _Unlike, reason: str) -> Iterator[tuple[int, str]]:
        if reason != _ONE_SIDED:
            self._as_text[reason] += 1
        for name in unlike.other:
            yield key, f"{name.replace('_', ' ')}: {OTHER_RULES}"

    @staticmethod
    def _evaluator(side: RuleSide) -> RuleEvaluator:
        return RuleEvaluator(
            side.sheet, side.answers, side.values_of, side.workbook.style_sheet.palette
        )

    def _look(self, side: RuleSide, key: int, overlay: Overlay) -> CellStyle:
        """Returns the style of a cell after its conditional formats are applied."""
        if id(side) not in self._styles:
            self._styles[id(side)] = side.workbook.sheet(side.sheet).styles(self._window)
        own = side.workbook.style(self._styles[id(side)].get(key, 0))
        return replace(own, **overlay) if overlay else own  # type: ignore[arg-type]


def _look_difference(name: str, shown: CellStyle, actual: CellStyle) -> str:
    return (
        f"{name.replace('_', ' ')}: with conditional formats expected {getattr(shown, name)}, "
        f"found {getattr(actual, name)}"
    )
