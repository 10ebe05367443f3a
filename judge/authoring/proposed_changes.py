"""Finds the differences between a sheet of an input and its gold that rules can express.

The rules themselves decide what differs: a rule is proposed if the untouched input does not pass
it. So workbooks are read in the same way for proposing and for judging.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from judge.compare.cells.computing import NoEngines
from judge.compare.published_error import Side
from judge.compare.rules import objects as whole
from judge.compare.rules.book import Book, values_agree
from judge.compare.rules.looks import WholeLooks, differing_looks
from judge.compare.rules.options import CHART_PROPERTIES, PIVOT_PROPERTIES
from judge.compare.rules.standard import StandardJudge
from judge.core.submission import Origin
from judge.errors import WorkbookError
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    WHOLE_SHEET,
    Window,
    parse_cell,
    parse_window,
)
from judge.workbook.editing.parts import (
    SHEET_TAG,
    attribute,
    copy_package,
    with_attribute,
)
from judge.workbook.facts.sheets import SheetFacts, Validation
from judge.workbook.reader import Workbook, open_workbook
from judge.workbook.workbook_parts import Tab, main_part
from judge.workbook.xml_parts import is_on

_EMPTY_SHEET = (
    b'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    b"<sheetData/></worksheet>"
)


class Pair:
    """An input and its gold.

    Args:
        question: the input.
        gold: the gold.

    Raises:
        WorkbookError: one of the two cannot be read.
    """

    def __init__(self, question: Workbook, gold: Workbook) -> None:
        self.question = Book(question, Side.ANSWER)
        self.gold = Book(gold, Side.GOLD)

    @cached_property
    def _blank(self) -> Book:
        """The gold with emptied sheets; new sheets of the gold are compared with it."""
        parts: dict[str, bytes | None] = {}
        for tab in self.gold.workbook.tabs:
            if tab.is_worksheet:
                folder, _, name = tab.part.rpartition("/")
                parts[tab.part] = _EMPTY_SHEET
                parts[f"{folder}/_rels/{name}.rels"] = None
        data = copy_package(self.gold.workbook.data, parts)
        return Book(open_workbook(data), Side.ANSWER)

    @cached_property
    def _renamed(self) -> Book:
        """The input, with the new names of sheets that the gold only renames."""
        names = self.question.names, self.gold.names
        new = {
            before: after
            for before, after in zip(*names, strict=False)
            if len(names[0]) == len(names[1]) and before not in names[1] and after not in names[0]
        }
        if not new:
            return self.question
        workbook = self.question.workbook

        def rename(tag: re.Match[bytes]) -> bytes:
            name = attribute(tag[0], "name") or ""
            return with_attribute(tag[0], "name", new[name]) if name in new else tag[0]

        part = main_part(workbook.package)
        content = SHEET_TAG.sub(rename, workbook.package.read(part))
        return Book(open_workbook(copy_package(workbook.data, {part: content})), Side.ANSWER)

    def base(self, sheet: str) -> Book:
        """The book to compare a sheet of the gold with: the input, or one with blank sheets."""
        return self._renamed if self.knows(sheet) else self._blank

    def knows(self, sheet: str) -> bool:
        """Whether the input has a sheet of the gold, under the same name or another."""
        return self._renamed.tab(sheet) is not None

    def names_differ(self) -> bool:
        """Whether the sheets of the two books differ in their names or their order."""
        names = (
            [tab.name for tab in workbook.facts.tabs] for workbook in (self.question, self.gold)
        )
        return next(names) != next(names)


Rule = dict[str, object]

_DECIMALS = 4
_LOOKS = (
    *("fgcolor", "font_color", "font_bold", "font_italic", "font_underline", "font_name"),
    *("font_size", "number_format", "merge", "hyperlink"),
)
"""Style properties that are proposed; other properties repeat these or are invisible."""
_ORDER = (
    *("sheet_data", "chart", "pivot_table", "filter", "style", "freeze", "zoom"),
    *("data_validation", "row_props", "col_props", "sparkline"),
)


@dataclass(frozen=True, slots=True)
class Change:
    """A difference in a sheet.

    Attributes:
        kind: the type of the rule that checks it.
        props: the properties that differ, if the type of rule has properties.
        cells: keys of the cells that differ, if the type of rule is about cells.
    """

    kind: str
    props: tuple[str, ...] = ()
    cells: tuple[int, ...] = ()


def changes_of(pair: Pair, sheet: str) -> Iterator[Change]:
    """Yields the changes in a sheet of a gold, at most one for each type of rule.

    Raises:
        WorkbookError: a workbook is broken or over a limit.
    """
    return _SheetChanges(pair, sheet).all()


class _SheetChanges:
    """Finds the changes of one sheet of a pair."""

    def __init__(self, pair: Pair, sheet: str) -> None:
        self._sheet = sheet
        self._base = pair.base(sheet)
        self._is_known = pair.knows(sheet)
        self._gold = pair.gold
        self._judge = StandardJudge(self._base, self._gold, NoEngines(), Origin.FINISHED)

    def all(self) -> Iterator[Change]:
        for kind in _ORDER:
            change = _FINDERS[kind](self, kind)
            if change is not None:
                yield change

    @cached_property
    def _facts(self) -> tuple[SheetFacts, SheetFacts]:
        first, second = (self._facts_of(book) for book in (self._base, self._gold))
        return first, second

    def _facts_of(self, book: Book) -> SheetFacts:
        tab = book.tab(self._sheet)
        if tab is None:
            raise WorkbookError(f"there is no sheet {self._sheet!r}")
        return book.facts.sheet(tab)

    @cached_property
    def _pivots(self) -> tuple[Window, ...]:
        """The areas that the gold's pivot tables fill."""
        windows = (parse_window(pivot.place.replace("$", "")) for pivot in self._facts[1].pivots)
        return tuple(window for window in windows if window is not None)

    def _outside(self, keys: Sequence[int]) -> tuple[int, ...]:
        """The cells outside all pivot tables."""
        return tuple(
            sorted(
                key
                for key in keys
                if not any(
                    pivot.holds(key >> COLUMN_BITS, key & COLUMN_MASK) for pivot in self._pivots
                )
            )
        )

    def _fails(self, kind: str, **options: object) -> bool:
        """Whether the untouched input fails a rule."""
        return bool(self._judge.differences([pair_rule(kind, self._sheet, **options)]))

    # -- kinds -----------------------------------------------------------------------------------

    def values(self, kind: str) -> Change | None:
        """Cells whose value differs, or whose formula differs if it has no stored value."""
        first, second = (
            book.workbook.sheet(self._sheet).values(WHOLE_SHEET)
            for book in (self._base, self._gold)
        )
        formulas = [
            _formulas(book.workbook, self._sheet, values)
            for book, values in ((self._base, first), (self._gold, second))
        ]
        keys = first.keys() | second.keys() | formulas[0].keys() | formulas[1].keys()
        outside = self._outside(
            [
                key
                for key in keys
                if formulas[0].get(key) != formulas[1].get(key)
                or not values_agree(first.get(key), second.get(key), _DECIMALS)
            ]
        )
        return Change(kind, cells=outside) if outside else None

    def charts(self, kind: str) -> Change | None:
        if self._fails(kind, chart_props=[]):
            return Change(kind, _chart_props(self._facts[1]))
        return self._by_property(kind, "chart_props", CHART_PROPERTIES)

    def pivots(self, kind: str) -> Change | None:
        if self._fails(kind, pivot_props=[]):
            props = ("row_fields", "col_fields", "data_fields")
            filtered = any(
                pivot.pages or any(item.hidden for field in pivot.fields for item in field.items)
                for pivot in self._facts[1].pivots
            )
            return Change(kind, (*props, "filter") if filtered else props)
        return self._by_property(kind, "pivot_props", PIVOT_PROPERTIES)

    def _by_property(self, kind: str, option: str, properties: Sequence[str]) -> Change | None:
        props = tuple(name for name in properties if self._fails(kind, **{option: [name]}))
        return Change(kind, props) if props else None

    def plain(self, kind: str) -> Change | None:
        return Change(kind) if self._fails(kind) else None

    def looks(self, kind: str) -> Change | None:
        props: list[str] = []
        cells: set[int] = set()
        for name in _LOOKS:
            differing = differing_looks(
                WholeLooks(self._base, self._sheet),
                WholeLooks(self._gold, self._sheet),
                (name,),
                compute=NoEngines(),
                origin=Origin.FINISHED,
            )
            keys = self._outside([_key(cell) for cell in differing])
            if keys:
                props.append(name)
                cells.update(keys)
        return Change(kind, tuple(props), tuple(sorted(cells))) if props else None

    def zoom(self, kind: str) -> Change | None:
        first, second = (fact.view.zoom for fact in self._facts)
        return Change(kind) if self._is_known and first != second else None

    def validations(self, kind: str) -> Change | None:
        first, second = (
            {_compared(validation) for validation in facts.validations} for facts in self._facts
        )
        return Change(kind) if first != second else None

    def rows(self, kind: str) -> Change | None:
        """A change of rows: hidden rows, groups, or heights that were set."""
        tab = self._gold.tab(self._sheet)
        attributes = {} if tab is None else self._gold.facts.row_attributes(tab)

        def is_set(row: int) -> bool:
            written = attributes.get(row, {})
            return is_on(written.get("customHeight")) and not is_on(written.get("hidden"))

        return self._lines(kind, whole.rows, "height", is_set)

    def columns(self, kind: str) -> Change | None:
        """A change of columns: hidden columns, groups, or widths that were set."""
        widths = {
            column
            for line in self._facts[1].columns
            if line.size is not None and not line.hidden
            for column in range(line.first, min(line.last, 16_384) + 1)
        }
        return self._lines(kind, whole.columns, "width", widths.__contains__)

    def _lines(
        self,
        kind: str,
        read: Callable[[Book, Tab, str], Mapping[int, object]],
        size: str,
        is_set: Callable[[int], bool],
    ) -> Change | None:
        """The properties of rows or columns that differ; rounding differences do not count."""
        tabs = [(book, book.tab(self._sheet)) for book in (self._base, self._gold)]
        props = []
        for name in ("hidden", "outline_level", size):
            first, second = (read(book, tab, name) for book, tab in tabs if tab is not None)
            lines = [n for n in first.keys() | second.keys() if first.get(n) != second.get(n)]
            if name == size:
                lines = [
                    line
                    for line in lines
                    if is_set(line)
                    and self._is_known
                    and not _near(first.get(line), second.get(line))
                ]
            if lines:
                props.append(name)
        return Change(kind, tuple(props)) if props else None


_FINDERS: Mapping[str, Callable[[_SheetChanges, str], Change | None]] = {
    "sheet_data": _SheetChanges.values,
    "chart": _SheetChanges.charts,
    "pivot_table": _SheetChanges.pivots,
    "filter": _SheetChanges.plain,
    "style": _SheetChanges.looks,
    "freeze": _SheetChanges.plain,
    "zoom": _SheetChanges.zoom,
    "data_validation": _SheetChanges.validations,
    "row_props": _SheetChanges.rows,
    "col_props": _SheetChanges.columns,
    "sparkline": _SheetChanges.plain,
}


def pair_rule(kind: str, sheet: str, **options: object) -> Rule:
    """A rule that compares a sheet of the output with the same sheet of the gold."""
    return {"type": kind, "sheet_idx0": f"RN{sheet}", "sheet_idx1": f"EN{sheet}", **options}


def _near(first: object, second: object) -> bool:
    """Whether two sizes differ so little that the programs that wrote them may explain it.

    Excel and LibreOffice measure in characters of different fonts, and differ by up to 4 %.
    """
    if not isinstance(first, int | float) or not isinstance(second, int | float):
        return False
    return abs(first - second) <= 0.05 * max(abs(first), abs(second))


def _formulas(workbook: Workbook, sheet: str, values: Mapping[int, object]) -> dict[int, str]:
    """The text of formulas without a stored value, by cell."""
    differing = {}
    content = workbook.sheet(sheet)
    for key in content.formula_keys(WHOLE_SHEET):
        if values.get(key) is None and (raw := content.raw_formula(key)) is not None:
            differing[key] = f"{raw.kind} {raw.shared or ''} {raw.text}"
    return differing


def _chart_props(facts: SheetFacts) -> tuple[str, ...]:
    """The properties in which new charts of the gold are compared, in addition to their data."""
    props = ["type"]
    if any(chart.title is not None and chart.title.text for chart in facts.charts):
        props.append("title")
    plots = [plot for chart in facts.charts for plot in chart.plots]
    if plots and all(plot.direction is not None for plot in plots):
        props.append("direction")
    titled = {axis.kind for chart in facts.charts for axis in chart.axes if axis.title is not None}
    if titled & {"catAx", "dateAx"}:
        props.append("xtitle")
    if "valAx" in titled:
        props.append("ytitle")
    series = [(one, plot) for plot in plots for one in plot.series]
    if any(one.name is not None for one, _ in series):
        props.append("series_names")
    if any(one.trendlines for one, _ in series):
        props.append("trendlines")
    if any(whole.shown_labels(one, plot) for one, plot in series):
        props.append("labels")
    return tuple(props)


def _compared(validation: Validation) -> Validation:
    return replace(validation, attributes=())


def _key(cell: str) -> int:
    row, column = parse_cell(cell) or (0, 0)
    return row << COLUMN_BITS | column
