"""``compare_table`` as Spider2-V and OSWorld publish it, faults included.

Sources: xlang-ai/Spider2-V at c2a3a6c2, and OSWorld as copied in ljxpython/OSWorldUse at b5007a93,
run with openpyxl 3.1.5, pandas 2.0.3 and formulas 1.3.4. Where the functions raise, so does
:func:`judge_published`.

A sheet is read as a table of typed columns, as ``pandas.read_excel`` 2.0.3 does. The first row is
the heading. The type of each column follows from its cells: a column of numbers and blanks is
numeric, even if numbers are written as text or as TRUE. With any other string, its values stay
unchanged. The strings that count as blank are those of pandas.
"""

from __future__ import annotations

import datetime as dt
import enum
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.compare.published.spider2v import objects
from judge.compare.published.spider2v.conditions import look_of_sheet
from judge.compare.published.spider2v.looks import SheetLooks
from judge.compare.published.spider2v.objects import validations, validations_match
from judge.compare.published_error import PublishedError, Side, blaming, no_attribute
from judge.compare.rules.book import Book, Rule, SheetRef, nth, option_of
from judge.compare.rules.methods import matches, places_of, prepared_text, texts_alike, window_of
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key, cell_name, parse_cell
from judge.workbook.cell import CellValue, ErrorValue
from judge.workbook.tree import Element, number, whole

BLANK_TEXTS = frozenset(
    {
        "",
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
    }
)
_TRUE, _FALSE = {"True", "TRUE", "true"}, {"False", "FALSE", "false"}
_NUMBER = re.compile(r"[ \t\n\v\f\r]*[+-]?(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?\s*")
_INFINITY = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_NAN = math.nan
_INT64 = 1 << 63
_FIRST_DAY, _LAST_DAY = dt.datetime(1677, 9, 22), dt.datetime(2262, 4, 11)  # noqa: DTZ001


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its type as pandas names it, and its values; NaN for a blank cell."""

    kind: str
    values: Sequence[object]


@dataclass(frozen=True, slots=True)
class Frame:
    """A table: headings, columns, and the number of rows below the heading.

    ``columns`` is empty for a sheet without cells, which pandas distinguishes from a heading
    without rows.
    """

    headings: tuple[object, ...]
    columns: tuple[Column, ...]
    rows: int


def read_frame(values: Mapping[int, CellValue]) -> Frame:
    """The table of a sheet.

    Args:
        values: stored values by key, cells that merged ranges cover included.
    """
    cells = {key: _converted(value) for key, value in values.items()}
    filled = {key: value for key, value in cells.items() if value != ""}
    if not filled:
        return Frame((), (), 0)
    last_row = max(filled) >> COLUMN_BITS
    width = max(key & COLUMN_MASK for key in filled)
    by_column: list[dict[int, object]] = [{} for _ in range(width)]
    for key, value in filled.items():
        by_column[(key & COLUMN_MASK) - 1][key >> COLUMN_BITS] = value
    headings = _headings([column.get(1, "") for column in by_column])
    rows = last_row - 1
    if rows == 0:
        return Frame(headings, tuple(Column("object", ()) for _ in by_column), 0)
    columns = tuple(
        _column([column.get(row, "") for row in range(2, last_row + 1)]) for column in by_column
    )
    return Frame(headings, columns, rows)


def size_of(values: Mapping[int, CellValue]) -> int:
    """Returns the number of cells that the table of a sheet would have."""
    filled = [key for key, value in values.items() if value is not None]
    if not filled:
        return 0
    return (max(filled) >> COLUMN_BITS) * max(key & COLUMN_MASK for key in filled)


def _converted(value: CellValue) -> object:
    if value is None:
        return ""
    if isinstance(value, ErrorValue):
        return _NAN
    if isinstance(value, float):
        if math.isfinite(value) and value == int(value):
            return int(value)
        return value
    return value


def _headings(row: list[object]) -> tuple[object, ...]:
    """Names the columns: a blank heading gets a name, and a repeated name gets a number."""
    names = [f"Unnamed: {index}" if name == "" else name for index, name in enumerate(row)]
    unnamed = [index for index, name in enumerate(row) if name == ""]
    counts: dict[object, int] = {}
    taken = set(names)
    order = [index for index in range(len(row)) if row[index] != ""] + unnamed
    for index in order:
        old = name = names[index]
        count = counts.get(name, 0)
        while count > 0:
            counts[old] = count + 1
            name = f"{old}.{count}"
            count = count + 1 if name in taken else counts.get(name, 0)
        taken.add(name)
        names[index] = name
        counts[name] = count + 1
    return tuple(names)


def _column(cells: list[object]) -> Column:
    numeric = _numeric(cells)
    if numeric is not None:
        return numeric
    values = [_NAN if isinstance(cell, str) and cell in BLANK_TEXTS else cell for cell in cells]
    truths = [_truth(value) for value in values]
    if None not in truths:
        return Column("bool", truths)
    present = [value for value in values if not _is_nan(value)]
    if present and all(isinstance(value, dt.datetime) for value in present):
        if all(_FIRST_DAY <= value <= _LAST_DAY for value in present):  # type: ignore[operator]
            return Column("datetime64[ns]", values)
    elif present and all(isinstance(value, dt.timedelta) for value in present):
        return Column("timedelta64[ns]", values)
    return Column("object", values)


def _truth(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return True if value in _TRUE else False if value in _FALSE else None
    return None


def _numeric(cells: list[object]) -> Column | None:
    """A column of numbers (numeric text, truth values and blanks included); None for any other."""
    numbers: list[float | int] = []
    is_bool = False
    for cell in cells:
        read = _as_number(cell)
        if read is None:
            return None
        is_bool = is_bool or isinstance(cell, bool)
        numbers.append(read)
    whole = [number for number, cell in zip(numbers, cells, strict=True) if _is_whole(number, cell)]
    unsigned = any(number >= _INT64 for number in whole)
    beyond = any(number >= 2 * _INT64 or number < -_INT64 for number in whole)
    signed = any(number < 0 for number in whole)
    if beyond or (signed and unsigned) or any(isinstance(value, float) for value in numbers):
        return Column("float64", [float(number) for number in numbers])
    if is_bool and not whole:
        return Column("bool", [bool(number) for number in numbers])
    return Column("uint64" if unsigned else "int64", numbers)


def _is_whole(number: float, cell: object) -> bool:
    return isinstance(number, int) and not isinstance(cell, bool)


def _as_number(cell: object) -> float | int | None:
    """A cell as a number, NaN for a blank one; None if it is anything else."""
    if isinstance(cell, bool):
        return int(cell)
    if isinstance(cell, int | float):
        return cell
    if isinstance(cell, str):
        return _NAN if cell in BLANK_TEXTS else _number_of_text(cell)
    return None


def _number_of_text(text: str) -> float | int | None:
    match = _NUMBER.fullmatch(text) if len(text) < 400 else None
    if match is not None:
        if match[1] is None and match[2] is None and match[3] is None:
            whole = int(text)
            return whole if -_INT64 <= whole < 2 * _INT64 else None
        return float(text)
    match = _INFINITY.fullmatch(text)
    if match is not None:
        return -math.inf if match[1] == "-" else math.inf
    return None


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value  # noqa: PLR0124


# -- comparing ------------------------------------------------------------------------------------


def rounded(frame: Frame, decimals: object) -> Frame:
    """The table with its numeric columns rounded as NumPy rounds.

    Raises:
        PublishedError: ``decimals`` is not a whole number.
    """
    if not isinstance(decimals, int):
        raise PublishedError("TypeError", "decimals must be an integer, a dict-like or a Series")
    columns = tuple(
        Column(column.kind, [round_half_even(value, decimals) for value in column.values])  # type: ignore[arg-type]
        if column.kind == "float64" or (decimals < 0 and column.kind in {"int64", "uint64"})
        else column
        for column in frame.columns
    )
    return Frame(frame.headings, columns, frame.rows)


def round_half_even(value: float, decimals: int) -> float:
    """A number rounded to some decimals: scaled, rounded to even, scaled back."""
    if not math.isfinite(value) or abs(decimals) > 300:
        return value
    power = 10.0 ** abs(decimals)
    scaled = value * power if decimals >= 0 else value / power
    if not math.isfinite(scaled):
        return math.copysign(math.inf, value)
    nearest = float(round(scaled)) if abs(scaled) < 2**52 else scaled
    return nearest / power if decimals >= 0 else nearest * power


def frames_equal(first: Frame, second: Frame) -> bool:
    """``DataFrame.equals``: headings, number of rows, types of columns, values."""
    return (
        first.rows == second.rows
        and len(first.columns) == len(second.columns)
        and len(first.headings) == len(second.headings)
        and all(map(same_value, first.headings, second.headings))
        and all(map(_same_column, first.columns, second.columns))
    )


def _same_column(first: Column, second: Column) -> bool:
    return first.kind == second.kind and all(map(same_value, first.values, second.values))


def same_value(first: object, second: object) -> bool:
    """Returns whether two values of tables are equal; two blanks are equal."""
    return bool(first == second) or (_is_nan(first) and _is_nan(second))


class Evaluator(enum.StrEnum):
    """The suite whose published functions are emulated."""

    SPIDER2V = "spider2v"
    OSWORLD = "osworld"

    @property
    def suite(self) -> str:
        """The suite that publishes it."""
        return {"spider2v": "Spider2-V", "osworld": "OSWorld"}[self.value]


@dataclass(frozen=True, slots=True)
class Failed:
    """The first rule that does not hold: its index, and the rule."""

    index: int
    rule: Rule


def judge_published(
    answer: Book, gold: Book | None, rules: Sequence[Rule], evaluator: Evaluator
) -> Failed | None:
    """The published verdict on a workbook.

    Args:
        answer: the workbook to judge.
        gold: the gold; None if the task has no gold.
        rules: the rule list.
        evaluator: the suite whose functions are emulated.

    Returns:
        The first rule that fails; None if all hold.

    Raises:
        PublishedError: the published function raises.
        WorkbookError: a workbook is broken or over a limit.
    """
    run = _Run(answer, gold, osworld=evaluator is Evaluator.OSWORLD)
    for index, rule in enumerate(rules):
        try:
            holds = run.holds(rule)
        except PublishedError as error:
            error.index = index
            raise
        if not holds:
            return Failed(index, rule)
    return None


class _Run:
    """A call of the published function, with its state."""

    def __init__(self, answer: Book, gold: Book | None, *, osworld: bool) -> None:
        self._answer = answer
        self._gold = gold
        self._osworld = osworld
        self._last: bool | None = None
        """The variable of the published loop, which keeps its value if the type of a match is
        unknown."""
        self._frames: dict[tuple[Side, str], Frame] = {}

    def holds(self, rule: Rule) -> bool:
        kind = rule.get("type") if isinstance(rule, Mapping) else None
        check = _CHECKS.get(kind) if isinstance(kind, str) else None
        if check is None:
            raise PublishedError(
                "NotImplementedError", f"Unimplemented sheet check: {kind}", Side.RULES
            )
        outcome = check(self, rule)
        self._last = outcome
        return outcome

    # -- sheets ----------------------------------------------------------------------------------

    def _sheet(self, rule: Rule, option: str) -> SheetRef:
        """The book and the sheet that a rule names."""
        index = option_of(rule, option)
        answer, gold = self._answer, self._gold
        if isinstance(index, int):
            beyond = self._osworld and index >= len(answer.names)
            return SheetRef(answer, "" if beyond else nth(answer.names, index))
        if not isinstance(index, str):
            raise no_attribute(type(index).__name__, "startswith")
        prefix, rest = index[:2], index[2:]
        if prefix in {"RI", "EI"}:
            book = answer if prefix == "RI" else gold
            try:
                return SheetRef(book, "" if book is None else nth(book.names, int(rest)))
            except ValueError:
                return SheetRef(book, "")
        if prefix in {"RN", "EN"}:
            return SheetRef(answer if prefix == "RN" else gold, rest)
        raise PublishedError("ValueError", "Unrecognized sheet index", Side.RULES)

    def _pair(self, rule: Rule) -> Iterator[SheetRef]:
        yield self._sheet(rule, "sheet_idx0")
        yield self._sheet(rule, "sheet_idx1")

    def _loaded(self, ref: SheetRef) -> Book | None:
        """The workbook of a sheet; None if the published function finds no sheet."""
        if ref.book is None:
            raise PublishedError("NotImplementedError", "Not supported workbook format", Side.RULES)
        return ref.book if ref.name in ref.book.names else None

    def _both(
        self, rule: Rule, make: Callable[[Book, str], object], missing: str
    ) -> tuple[object, object] | None:
        """Returns the compared parts of both sheets; None if the part of the first is missing."""
        first = self._sheet(rule, "sheet_idx0")
        book = self._loaded(first)
        if book is None:
            return None
        second = self._sheet(rule, "sheet_idx1")
        with blaming(book.side):
            facts = make(book, first.name)
        other = self._loaded(second)
        if other is None:
            side = Side.RULES if second.book is None else second.book.side
            error = no_attribute("NoneType", missing)
            error.side = side
            raise error
        with blaming(other.side):
            return facts, make(other, second.name)

    def _dictionaries(self, rule: Rule, make: Callable[[Book, str], object]) -> bool:
        """Returns whether the objects of both sheets are equal; a missing sheet has none."""
        facts = []
        for ref in self._pair(rule):
            if ref.book is None:
                error = PublishedError("TypeError", "'NoneType' object is not subscriptable")
                error.side = Side.RULES
                raise error
            with blaming(ref.book.side):
                facts.append(make(ref.book, ref.name))
        return bool(facts[0] == facts[1])

    # -- rules -----------------------------------------------------------------------------------

    def sheet_name(self, _: Rule) -> bool:
        return self._gold is not None and self._answer.names == self._gold.names

    def sheet_data(self, rule: Rule) -> bool:
        both = self._both(rule, self._frame, "round")
        if both is None:
            return False
        decimals = rule.get("precision", 4)
        with blaming(Side.RULES):
            first, second = (rounded(frame, decimals) for frame in both)  # type: ignore[arg-type]
        return frames_equal(first, second)

    def _frame(self, book: Book, name: str) -> Frame:
        frame = self._frames.get((book.side, name))
        if frame is None:
            values = book.workbook.stored_values(name)
            with book.workbook.package.blamed():
                book.workbook.package.budget.take_cells(size_of(values))
            frame = self._frames[book.side, name] = read_frame(values)
        return frame

    def sheet_print(self, rule: Rule) -> bool:
        lines = self._lines(self._sheet(rule, "sheet_idx0"))
        if lines is None:
            return False
        others = self._lines(self._sheet(rule, "sheet_idx1"))
        if rule.get("ignore_case", False):
            if others is None:
                raise PublishedError("TypeError", "'NoneType' object is not iterable", Side.GOLD)
            return [line.lower() for line in lines] == [text.lower() for text in others]
        return lines == others

    def _lines(self, ref: SheetRef) -> list[str] | None:
        """Returns the printed lines of a sheet, stripped, up to the last filled line."""
        if ref.book is None:
            raise PublishedError("NotImplementedError", "Not supported workbook format", Side.RULES)
        # The output is printed by a later step of the task; the gold's text is a file of the suite.
        book = ref.book
        is_answer = book.side is Side.ANSWER
        written = book.lines(ref.name) if is_answer else book.prints.get(ref.name)
        if written is None:
            return None
        lines = [line.strip() for line in written]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def sheet_fuzzy(self, rule: Rule) -> bool:
        first, second = self._pair(rule)
        holds = True
        for entry in option_of(rule, "rules"):
            written = option_of(entry, "range")
            for part in places_of(written):
                with blaming(Side.RULES):
                    window = window_of(part)
                for row in range(window.min_row, window.max_row + 1):
                    for column in range(window.min_column, window.max_column + 1):
                        self._answer.workbook.package.budget.take_cells(1)
                        texts = [self._text(ref, row, column) for ref in (first, second)]
                        self._last = self._alike(entry, *texts)
                        holds = holds and self._last
        return holds

    def _text(self, ref: SheetRef, row: int, column: int) -> str:
        if ref.book is None:
            raise PublishedError("TypeError", "no workbook", Side.RULES)
        with blaming(ref.book.side):
            value = ref.book.texts.read(ref.name, cell_name(row, column), osworld=self._osworld)
        return str(value)

    def _alike(self, rule: Rule, first: str, second: str) -> bool:
        option_of(rule, "type")
        alike = texts_alike(rule, prepared_text(rule, first), prepared_text(rule, second))
        if alike is not None:
            return alike
        if self._last is None:
            raise PublishedError(
                "UnboundLocalError",
                "cannot access local variable 'metric' where it is not associated with a value",
                Side.RULES,
            )
        return self._last

    def sparkline(self, rule: Rule) -> bool:
        return self._dictionaries(rule, objects.sparklines)

    def chart(self, rule: Rule) -> bool:
        property_names = rule.get("chart_props", ())
        return self._dictionaries(
            rule, lambda book, name: objects.charts(book, name, property_names)
        )

    def pivot_table(self, rule: Rule) -> bool:
        property_names = rule.get("pivot_props", ())
        return self._dictionaries(
            rule, lambda book, name: objects.pivots(book, name, property_names)
        )

    def row_props(self, rule: Rule) -> bool:
        property_names = rule.get("props", ())
        return self._dictionaries(rule, lambda book, name: objects.rows(book, name, property_names))

    def col_props(self, rule: Rule) -> bool:
        property_names = rule.get("props", ())
        return self._dictionaries(
            rule, lambda book, name: objects.columns(book, name, property_names)
        )

    def filter(self, rule: Rule) -> bool:
        return self._dictionaries(rule, objects.filters)

    def style(self, rule: Rule) -> bool:
        property_names = tuple(rule.get("props", ()))
        facts = []
        for ref in self._pair(rule):
            if ref.book is None:
                raise PublishedError(
                    "TypeError", "'NoneType' object is not subscriptable", Side.RULES
                )
            with blaming(ref.book.side):
                facts.append(self._looks(ref.book, ref.name, property_names))
        return facts[0] == facts[1]

    def _looks(self, book: Book, name: str, property_names: tuple[str, ...]) -> tuple[object, ...]:
        """The formatting of a sheet: its size, default properties, and cells that have others."""
        if book.tab(name) is None:
            return (0, 0), (), {}
        looks = SheetLooks(book, name, osworld=self._osworld)
        rows, columns = looks.size
        usual = looks.row_of(property_names, cell_key(0, 0)) if rows and columns else ()
        looks_by_key = {
            key: look
            for key in (looks.states if rows and columns else ())
            if (look := looks.row_of(property_names, key)) != usual
        }
        stored = len(looks.states)
        for key, look in look_of_sheet(
            looks, book, name, property_names, osworld=self._osworld
        ).items():
            if look != usual or key >> 15 > rows or (key & 0x7FFF) > columns:
                looks_by_key[key] = look
            else:
                looks_by_key.pop(key, None)
        # If every cell is in the file, the look of others does not matter.
        return (rows, columns), usual if stored < rows * columns else (), looks_by_key

    def freeze(self, rule: Rule) -> bool:
        missing = "sheet_view" if self._osworld else "freeze_panes"
        both = self._both(rule, self._pane, missing)
        return both is not None and both[0] == both[1]

    def _pane(self, book: Book, name: str) -> object:
        pane = _view(book, name).child("pane")
        if not self._osworld:
            return None if pane is None else pane.attributes.get("topLeftCell")
        if pane is None:
            return ("none",)
        attributes = pane.attributes
        split = [int(number(attributes.get(attribute)) or 0) for attribute in ("xSplit", "ySplit")]
        if attributes.get("state", "split").lower() in {"frozen", "frozensplit"}:
            return ("frozen", *split)
        return ("other", *split, attributes.get("topLeftCell"))

    def zoom(self, rule: Rule) -> bool:
        ref = self._sheet(rule, "sheet_idx")
        book = self._loaded(ref)
        if book is None:
            return False
        with blaming(book.side):
            zoom = whole(_view(book, ref.name).attributes.get("zoomScale")) or 100.0
            return matches(zoom, rule)

    def data_validation(self, rule: Rule) -> bool:
        ref = self._sheet(rule, "sheet_idx")
        book = self._loaded(ref)
        if book is None:
            return False
        tab = book.tab(ref.name)
        with blaming(book.side):
            elements = [] if tab is None else validations(book, tab)
            return validations_match(elements, option_of(rule, "dv_props"))

    def check_cell(self, rule: Rule) -> bool:
        if not self._osworld:
            return self._check_cell(rule)
        try:
            return self._check_cell(rule)
        except PublishedError:
            return False

    def _check_cell(self, rule: Rule) -> bool:
        ref = self._sheet(rule, "sheet_idx")
        book = self._loaded(ref)
        if book is None:
            return False
        coordinate = option_of(rule, "coordinate")
        cell = parse_cell(coordinate) if isinstance(coordinate, str) else None
        if cell is None:
            raise PublishedError("ValueError", f"{coordinate} is not a cell", Side.RULES)
        looks = SheetLooks(book, ref.name, osworld=self._osworld)
        state = looks.state(cell_key(*cell))
        book.touch(ref.name, *cell)
        holds = True
        for name, method in option_of(rule, "props").items():
            with blaming(book.side):
                try:
                    if name == "value":
                        value = book.texts.read(ref.name, coordinate, osworld=self._osworld)
                    else:
                        value = looks.property(name, state)
                except PublishedError:
                    if not self._osworld:
                        raise
                    value = None
                holds = holds and matches(value, method)
        return holds


_CHECKS: Mapping[str, Callable[[_Run, Rule], bool]] = {
    "sheet_name": _Run.sheet_name,
    "sheet_data": _Run.sheet_data,
    "sheet_print": _Run.sheet_print,
    "sheet_fuzzy": _Run.sheet_fuzzy,
    "sparkline": _Run.sparkline,
    "chart": _Run.chart,
    "style": _Run.style,
    "freeze": _Run.freeze,
    "zoom": _Run.zoom,
    "data_validation": _Run.data_validation,
    "row_props": _Run.row_props,
    "col_props": _Run.col_props,
    "filter": _Run.filter,
    "pivot_table": _Run.pivot_table,
    "check_cell": _Run.check_cell,
}
RULE_TYPES = tuple(_CHECKS)


def _view(book: Book, name: str) -> Element:
    tab = book.tab(name)
    view = None if tab is None else book.facts.tree(tab).find("sheetViews", "sheetView")
    return view or Element("sheetView")
