"""Compares values and positions as SpreadsheetBench 2's published evaluation does.

Rewritten from the behaviour of its ``evaluation.py``, and checked against recorded verdicts of its
functions. The evaluation does several things that a reader would not expect:

- Numbers agree within 1 % of the larger one; so do the years 2023 and 2024. Dates become whole
  days first, and then agree within 1 % of their serial number, which is more than a year.
- ``-``, ``N/A``, ``#DIV/0!`` and their like mean the same. None is 0, the empty string is not.
- Strings that Python reads as numbers are those numbers, rounded to two decimals; ``nan``
  differs from itself. Strings that begin with ``=`` are compared without dollar signs
  and case, even if they are not formulas.
- If one of two cells shows an error, only their formulas count, not their values or colours.
- A sheet that the input or the gold lacks holds no cell at all, whatever its range says. It is
  looked up by its name, or by the name in lower case without outer spaces.
- Colours of fonts are looked up in the theme that Office has by default, whatever theme the
  workbook has; indexed and automatic colours are black. Letter case of a colour counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from judge.compare.cells.comparison import (
    CellGroup,
    Comparison,
    Difference,
    DifferenceClass,
    Differences,
    GroupShares,
    remark_on,
)
from judge.compare.cells.range_check import MODIFICATION, REGRESSION, judge_groups, unequal_keys
from judge.compare.cells.sides import Side
from judge.compare.cells.value import classify, is_not_meaningful
from judge.compare.profiles import get_profile
from judge.compare.published.spreadsheetbench import (
    ScriptError,
    script_values,
    script_window,
    transformed,
)
from judge.errors import WorkbookError
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, Window, cell_key, cell_name
from judge.workbook.cell import CellRange, CellValue, ErrorValue

_TOLERANCE = 0.01  # relative, or absolute next to zero
_ERRORS = frozenset({"#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NULL!", "#N/A", "#NUM!"})


@dataclass(frozen=True, slots=True)
class ArrayText:
    """An array formula, which agrees only with an array formula of exactly the same text."""

    text: str


@dataclass(frozen=True, slots=True)
class TableFormula:
    """The formula of a data table; it never agrees with another content."""


Written = CellValue | ArrayText | TableFormula
"""The content of a cell if formulas are not replaced by their values."""


# -- values ---------------------------------------------------------------------------------------


def shows_error(value: Written) -> bool:
    """Returns whether a value, or text that reads the same, is one of Excel's seven old errors."""
    return (value.code if isinstance(value, ErrorValue) else value) in _ERRORS


def values_agree(expected: Written, actual: Written) -> bool:
    """Returns whether the script considers two values equal.

    Raises:
        ScriptError: the script crashes on one of them.
    """
    if isinstance(expected, TableFormula) or isinstance(actual, TableFormula):
        return False
    if isinstance(expected, ArrayText) or isinstance(actual, ArrayText):
        return expected == actual
    if is_not_meaningful(expected) and is_not_meaningful(actual):
        return True
    # Booleans are integers here, as in the script.
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return _numbers_agree(expected, actual)
    return _transformed_agree(transformed(expected), transformed(actual))


def _transformed_agree(first: CellValue, second: CellValue) -> bool:
    if first in {"", None} and second in {"", None}:
        return True
    if first is None or second is None:
        other = second if first is None else first
        return isinstance(other, int | float) and other == 0
    if type(first) is not type(second):
        return False
    if first == second:
        return True
    if isinstance(first, str) and isinstance(second, str):
        return first[:1] == second[:1] == "=" and _without_signs(first) == _without_signs(second)
    if isinstance(first, int | float) and isinstance(second, int | float):
        return _numbers_agree(first, second)
    return False


def _numbers_agree(first: float, second: float) -> bool:
    if first == second:
        return True
    try:
        apart = abs(first - second)
        if first == 0 or second == 0:
            return apart <= _TOLERANCE
        return apart / max(abs(first), abs(second)) <= _TOLERANCE
    except OverflowError:
        raise ScriptError("OverflowError: a whole number too large for a float") from None


def formulas_agree(expected: Written, actual: Written) -> bool:
    """Returns whether the script considers two cells equal when their formulas count.

    Raises:
        ScriptError: the script crashes on one of them.
    """
    if isinstance(expected, str) and isinstance(actual, str) and expected[:1] == actual[:1] == "=":
        return _normalised(expected) == _normalised(actual)
    if expected in {None, ""} and actual in {None, ""}:
        return True
    return values_agree(expected, actual)


def _without_signs(formula: str) -> str:
    return formula.replace("$", "").upper()


def _normalised(formula: str) -> str:
    plain = _without_signs(formula)
    return f"={plain[2:]}" if plain.startswith("=+") else plain


def may_differ_from_itself(value: Written) -> bool:
    """Returns whether equal values may count as different: ``nan`` as text, a data table, an error.

    Two equal errors may come from different formulas.
    """
    if isinstance(value, str):
        return value[:1] == "#" or value.strip()[-3:].lower() == "nan"
    return isinstance(value, ErrorValue | TableFormula)


# -- positions ------------------------------------------------------------------------------------


def script_ranges(position: str) -> list[tuple[str | None, str]]:
    """Splits a position into parts (sheet, cells); a sheet of None is the gold's first sheet.

    Parts end at commas outside quotes. Each quote opens or closes a name, so that after a missing
    quote everything up to the next quote is a single part.

    Raises:
        ScriptError: the script crashes.
    """
    parts: list[tuple[str | None, str]] = []
    for part in _split(position):
        sheet, bang, cells = part.partition("!")
        if "!" in cells:
            raise ScriptError("ValueError: more than one bang")
        if not bang:
            parts.append((None, _unquoted(part)))
        else:
            parts.append((_unquoted(sheet), _unquoted(cells)))
    return parts


def _split(position: str) -> list[str]:
    parts, start, is_quoted = [], 0, False
    for at, character in enumerate(position):
        if character == "'":
            is_quoted = not is_quoted
        elif character == "," and not is_quoted:
            parts.append(position[start:at])
            start = at + 1
    parts.append(position[start:])
    return [part.strip() for part in parts if part.strip()]


def _unquoted(text: str) -> str:
    return text.strip("'").strip()


def script_sheet(name: str, tabs: Sequence[str]) -> str | None:
    """Returns the sheet that the script finds, chart sheets included; None if it finds none."""
    if name in tabs:
        return name
    folded_name = name.strip().lower()
    return next((tab for tab in tabs if tab.strip().lower() == folded_name), None)


# -- colours --------------------------------------------------------------------------------------

_THEME = (
    *("FFFFFF", "000000", "E7E6E6", "44546A", "4472C4"),
    *("ED7D31", "A5A5A5", "FFC000", "5B9BD5", "70AD47"),
)
_BLACK = "000000"


def script_colour(attributes: Mapping[str, str] | None) -> str:
    """Returns the six hex digits of the colour that the script sees.

    Args:
        attributes: attributes of the font's colour element; None if the font has no such element.

    Raises:
        ScriptError: openpyxl cannot read such a colour.
    """
    if attributes is None or "indexed" in attributes:
        return _BLACK
    try:
        tint = float(attributes.get("tint", 0))
        if "theme" in attributes:
            return _tinted(_of_theme(int(attributes["theme"])), tint)
    except ValueError as error:
        raise ScriptError(f"ValueError: {error}") from error
    # A colour is of type ``rgb`` by default; the type of automatic colours is not looked up.
    return _BLACK if "auto" in attributes else attributes.get("rgb", _BLACK)[-6:]


def _of_theme(index: int) -> str | None:
    return _THEME[index] if 0 <= index < len(_THEME) else None


def _tinted(colour: str | None, tint: float) -> str:
    if colour is None:
        return _BLACK
    if not tint:
        return colour
    shades = []
    for at in (0, 2, 4):
        shade = int(colour[at : at + 2], 16)
        tinted = int(shade + (255 - shade) * tint) if tint > 0 else int(shade * (1 + tint))
        shades.append(min(255, max(0, tinted)))
    return "".join(f"{shade:02X}" for shade in shades)


# -- the verdict on an output, its gold and its input ----------------------------------------------

PROFILE_NAME = "ssb2-official"

_MAX_COLOURED = 4_000_000
"""How many cells of a range are listed if two workbooks differ in their first font."""


@dataclass(frozen=True, slots=True)
class Mode:
    """The properties of cells that are compared.

    Attributes:
        formulas: whether formulas are compared instead of values; colours do not count then.
        colours: whether font colours are compared in addition to the values.
    """

    formulas: bool = False
    colours: bool = False


def check_ssb2(
    position: str,
    *,
    gold: Side,
    output: Side,
    before: Side,
    mode: Mode,
    by_groups: bool,
    max_differences: int,
) -> Comparison:
    """Compares two workbooks as the published functions do.

    Args:
        position: the answer position as the suite has it.
        gold: the gold workbook.
        output: the output workbook.
        before: the input workbook.
        mode: the properties that are compared.
        by_groups: whether the task's rule decides, instead of every cell.
        max_differences: how many differences are listed at most; all are counted.

    Returns:
        The comparison. If the script crashes, nothing is accepted and both shares are 0.

    Raises:
        WorkbookError: cells that the script reads cannot be read here.
    """
    count = _Count(mode, Differences(max_differences))
    try:
        for sheet, cells in script_ranges(position):
            name = gold.workbook.tabs[0].name if sheet is None else sheet
            count.add_range(name, cells, gold, output, before)
    except ScriptError as error:
        return Comparison(
            equal=False,
            profile=PROFILE_NAME,
            ranges=(),
            cells=0,
            differing_cells=0,
            difference_counts={},
            differences=(),
            notes=(f"the published script crashes, which counts as not accepted: {error}",),
            official_equal=False,
            shares=GroupShares(0.0, 0.0),
        )
    finding = judge_groups(count.groups, published=True)
    equal = finding.accepted if by_groups else not count.differences.cells
    return Comparison(
        equal=equal,
        profile=PROFILE_NAME,
        ranges=tuple(count.ranges),
        cells=sum(window.size for window in count.ranges),
        differing_cells=count.differences.cells,
        difference_counts=count.differences.counts,
        differences=count.differences.kept,
        notes=(*count.notes, *(finding.notes if by_groups else ())),
        official_equal=equal,
        groups=count.groups,
        shares=finding.shares,
    )


@dataclass(slots=True)
class _Count:
    """The cells of all ranges, which are counted during the comparison."""

    mode: Mode
    differences: Differences
    ranges: list[CellRange] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    change: list[int] = field(default_factory=lambda: [0, 0])
    keep: list[int] = field(default_factory=lambda: [0, 0])

    @property
    def groups(self) -> tuple[CellGroup, CellGroup]:
        return CellGroup(MODIFICATION, *self.change), CellGroup(REGRESSION, *self.keep)

    def add_range(self, sheet: str, cells: str, gold: Side, output: Side, before: Side) -> None:
        """Compares one range, and counts its cells."""
        expected_name, old_name, actual_name = (
            script_sheet(sheet, [tab.name for tab in side.workbook.tabs])
            for side in (gold, before, output)
        )
        if expected_name is None or old_name is None:
            lacking = "gold" if expected_name is None else "input"
            self.notes.append(
                f"the {lacking} has no sheet {sheet!r} as the published script looks for it, so "
                "none of its cells counts"
            )
            return
        window = script_window(cells)
        if window is None:
            self.notes.append("a range holds no cell as the published script reads it")
            return
        placed = CellRange.of(expected_name, window)
        expected = _RangeCells(gold, expected_name, window, self.mode)
        changing = _differing(_RangeCells(before, old_name, window, self.mode), expected)
        if actual_name is None:
            self.differences.add_missing_sheet(placed, output.workbook.sheet_names)
            wrong_change, wrong = len(changing), placed.size
        else:
            actual = _RangeCells(output, actual_name, window, self.mode)
            differing = _differing(expected, actual)
            self._add_differences(expected, actual, differing)
            wrong_change, wrong = len(changing & differing), len(differing)
        self.ranges.append(placed)
        self.change[0] += len(changing)
        self.change[1] += wrong_change
        self.keep[0] += placed.size - len(changing)
        self.keep[1] += wrong - wrong_change

    def _add_differences(
        self, expected: _RangeCells, actual: _RangeCells, differing: set[int]
    ) -> None:
        for key in sorted(differing):
            first, second = expected.values.get(key), actual.values.get(key)
            is_style = self.mode.colours and not expected.formulas_decide(actual, key)
            kind = classify(first, second, get_profile(PROFILE_NAME))
            if self.mode.formulas and (expected.has_formula(key) or actual.has_formula(key)):
                kind = DifferenceClass.WRONG_FORMULA
            elif is_style and values_agree(first, second):
                kind = DifferenceClass.STYLE
            if self.differences.is_full:
                self.differences.count(kind)
                continue
            detail = remark_on(first, second, expected_1904=expected.workbook.date_1904)
            if kind is DifferenceClass.STYLE:
                detail = f"font color: expected {expected.colour(key)}, found {actual.colour(key)}"
            self.differences.add(
                Difference(
                    kind=kind,
                    sheet=expected.sheet,
                    cell=cell_name(key >> COLUMN_BITS, key & COLUMN_MASK),
                    expected=first,
                    actual=second,
                    expected_formula=expected.formula(key),
                    actual_formula=actual.formula(key),
                    detail=detail,
                )
            )


class _RangeCells:
    """Returns the cells of one rectangle as openpyxl gives them to the script.

    Args:
        side: the workbook.
        sheet: the name of a sheet in that workbook.
        window: the rectangle.
        mode: what is compared.

    Raises:
        ScriptError: the sheet is a chart sheet, on which the script crashes.
    """

    def __init__(self, side: Side, sheet: str, window: Window, mode: Mode) -> None:
        if sheet not in side.workbook.sheet_names:
            raise ScriptError(f"TypeError: {sheet!r} is a chart sheet")
        self.workbook, self.sheet, self.window, self.mode = side.workbook, sheet, window, mode
        placed = CellRange.of(sheet, window)
        self._sheet = side.workbook.sheet(sheet)
        if mode.colours:
            self._sheet.load([window], blanks=True)
        self.values: Mapping[int, CellValue] = script_values(side.area(placed))
        self.cells: Mapping[int, Written] = self._written() if mode.formulas else self.values

    def _written(self) -> dict[int, Written]:
        formulas = {key: self.written(key) for key in self._sheet.formula_keys(self.window)}
        return {**self.values, **formulas}

    def written(self, key: int) -> Written:
        """Returns the content of a cell whose formula is not replaced by its value."""
        raw = self._sheet.raw_formula(key)
        if raw is None:
            return self.values.get(key)
        if raw.kind == "dataTable":
            return TableFormula()
        text = self._sheet.formula(key) or ""
        return ArrayText(text) if raw.kind == "array" else text

    def formulas_decide(self, other: _RangeCells, key: int) -> bool:
        """Returns whether one of two cells shows an error, so that only their formulas count."""
        return shows_error(self.values.get(key)) or shows_error(other.values.get(key))

    def has_formula(self, key: int) -> bool:
        """Returns whether a cell holds a formula."""
        return self._sheet.raw_formula(key) is not None

    def formula(self, key: int) -> str | None:
        """Returns the formula of a cell in a readable form."""
        return self._sheet.formula(key)

    # -- colours ---------------------------------------------------------------------------------

    @cached_property
    def usual_colour(self) -> str:
        """The colour of the first font, which all cells outside :attr:`coloured` have."""
        return script_colour(self.workbook.font_colours.first)

    @cached_property
    def coloured(self) -> Mapping[int, str]:
        """Colours of cells that do not have the first font, whose colour all other cells have."""
        colours: dict[int, str] = {}
        coloured: dict[int, str] = {}
        # A stored cell has the font of its format; a cell that is not stored has the first font.
        for key, style in {
            **dict.fromkeys(self.values, 0),
            **self._sheet.styles(self.window),
        }.items():
            if style not in colours:
                colours[style] = self._colour_of(style)
            coloured[key] = colours[style]
        for key in self._covered(coloured):
            coloured.pop(key, None)
        return coloured

    def _covered(self, stored: Mapping[int, str]) -> Iterator[int]:
        """Cells covered by merged ranges, which openpyxl creates again without their format.

        Raises:
            WorkbookError: merged ranges overlap too often.
        """
        window, work = self.window, 0
        for merge in self._sheet.tail.merges:
            rows = range(max(merge.min_row, window.min_row), min(merge.max_row, window.max_row) + 1)
            columns = range(
                max(merge.min_column, window.min_column),
                min(merge.max_column, window.max_column) + 1,
            )
            size = len(rows) * len(columns)
            work += min(size, len(stored)) + 1
            if work > self.workbook.package.budget.limits.cells:
                with self.workbook.package.blamed():
                    raise WorkbookError("the merged ranges of a worksheet overlap too often")
            keys: Iterable[int] = (cell_key(row, column) for row in rows for column in columns)
            if size > len(stored):
                keys = [key for key in stored if merge.holds(key >> COLUMN_BITS, key & COLUMN_MASK)]
            first = cell_key(*merge.first)
            yield from (key for key in keys if key != first)

    def _colour_of(self, style: int) -> str:
        try:
            return script_colour(self.workbook.font_colours.of_format(style))
        except IndexError:
            raise ScriptError("IndexError: a cell names a font that does not exist") from None

    def colour(self, key: int) -> str:
        """Returns the colour of one cell."""
        return self.coloured.get(key, self.usual_colour)


def _differing(first: _RangeCells, second: _RangeCells) -> set[int]:
    """Returns the keys of the cells that the script considers different.

    Raises:
        ScriptError: the script crashes on one of them.
    """
    expected, actual = first.cells, second.cells
    candidates = {*unequal_keys(expected, actual), *(actual.keys() - expected.keys())}
    for cells in (expected, actual):
        candidates.update(key for key, value in cells.items() if may_differ_from_itself(value))
    differing: set[int] = set()
    decided: set[int] = set()
    for key in candidates:
        old, new = expected.get(key), actual.get(key)
        if first.mode.formulas:
            agree = formulas_agree(old, new)
        elif first.formulas_decide(second, key):
            # No colour counts then.
            decided.add(key)
            agree = formulas_agree(first.written(key), second.written(key))
        else:
            agree = values_agree(old, new)
        if not agree:
            differing.add(key)
    if first.mode.colours and not first.mode.formulas:
        differing |= _differing_colours(first, second) - decided
    return differing


def _differing_colours(first: _RangeCells, second: _RangeCells) -> set[int]:
    expected, actual = first.coloured, second.coloured
    usual = first.usual_colour, second.usual_colour
    keys: Iterable[int] = expected.keys() | actual.keys()
    if usual[0] != usual[1]:
        window = first.window
        rows = range(window.min_row, window.max_row + 1)
        columns = range(window.min_column, window.max_column + 1)
        if len(rows) * len(columns) > _MAX_COLOURED:
            raise ScriptError(f"a range has more than {_MAX_COLOURED:,} cells")
        keys = [cell_key(row, column) for row in rows for column in columns]
    return {key for key in keys if expected.get(key, usual[0]) != actual.get(key, usual[1])}
