"""Facts about a whole workbook; each part is read when it is first needed.

The attributes of rows are read here as well; the cells of the rows are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from html import unescape

from judge.errors import WorkbookError
from judge.workbook.facts.charts import Chart, read_charts
from judge.workbook.facts.pivots import Pivot, PivotReader
from judge.workbook.facts.sheets import (
    Name,
    SheetFacts,
    TableFact,
    column_lines_of,
    filter_of,
    formats_of,
    links_of,
    merges_of,
    row_lines_of,
    sort_of,
    sparklines_of,
    tab_colour_of,
    table_of,
    validations_of,
    view_of,
)
from judge.workbook.number_formats import NumberFormats
from judge.workbook.package import Package
from judge.workbook.reader import Workbook
from judge.workbook.sheets.sheet_cells import RowListener
from judge.workbook.sheets.sheet_scan import NotPlainError, SheetScanner, scan_surroundings
from judge.workbook.styles.style_sheet import ConditionalStyle
from judge.workbook.tree import MAX_ELEMENTS, Element, TreeListener, read_tree, whole
from judge.workbook.workbook_parts import Tab, main_part
from judge.workbook.xml_parts import SHEET_NAMES, Relationship, is_on, relationships

_ATTRIBUTE = re.compile(rb' ([A-Za-z0-9:]++)="([^"<]*+)"')
_MAX_KNOWN = 100_000


def read_row_lines(
    package: Package, part: str, around: Callable[[], TreeListener] | None
) -> tuple[dict[int, Mapping[str, str]], Element | None]:
    """The attributes of rows other than number and extent, and the elements around the rows.

    Both are read in one pass, since a sheet may have a million rows.

    Args:
        package: the workbook.
        part: name of the worksheet's part.
        around: makes the listener that keeps the elements around the rows; None if these are
            already known.

    Returns:
        Row number -> its attributes without the number, shared by rows with equal attributes; and
        the worksheet without its rows, if ``around`` was given.

    Raises:
        WorkbookError: the worksheet is missing, broken or over a limit.
    """
    scan = _Rows(package, part, around)
    try:
        scan.scan_skipping()
    except NotPlainError:
        scan.scan_all()
    return scan.row_lines.rows, None if scan.tree is None else scan.tree.root


class _Rows(SheetScanner):
    """A pass over a worksheet that keeps no cell."""

    row_lines: _RowLines
    tree: TreeListener | None = None

    def __init__(
        self, package: Package, part: str, around: Callable[[], TreeListener] | None
    ) -> None:
        super().__init__(package, part, (), NumberFormats(), date_1904=False, blanks=False)
        self._around = around

    def listener(self) -> TreeListener | None:
        self.tree = None if self._around is None else self._around()
        return self.tree

    def row_listener(self) -> RowListener:
        self.row_lines = _RowLines(self._package)
        return self.row_lines


class _RowLines:
    """Collects the attributes of the rows of a worksheet."""

    def __init__(self, package: Package) -> None:
        self.rows: dict[int, Mapping[str, str]] = {}
        self._budget = package.budget
        self._known: dict[bytes, Mapping[str, str]] = {}

    def on_row(self, row: int, attributes: Mapping[str, str]) -> None:
        """Called with the number of a row and its attributes."""
        named = SHEET_NAMES.attributes(dict(attributes))
        written = {name: text for name, text in named.items() if name not in {"r", "spans"}}
        if _is_worth_mentioning(written):
            self._budget.take_cells(1)
            self.rows[row] = written

    def on_plain_row(self, row: int, attributes: bytes) -> None:
        """Called for a row whose tag was not parsed, with the text after the row's number."""
        if not attributes:
            return
        parsed = self._known.get(attributes)
        if parsed is None:
            parsed = {
                name.decode(): unescape(text.decode("utf-8", "replace"))
                for name, text in _ATTRIBUTE.findall(attributes)
                if name != b"spans"
            }
            parsed = parsed if _is_worth_mentioning(parsed) else {}
            if len(self._known) < _MAX_KNOWN:
                self._known[attributes] = parsed
        if parsed:
            self._budget.take_cells(1)
            self.rows[row] = parsed


def _is_worth_mentioning(attributes: Mapping[str, str]) -> bool:
    """Whether there is any attribute without a foreign namespace."""
    return any(":" not in name for name in attributes)


_LOOKS = ("fill", "font_color", "bold", "italic", "underline", "number_format")


class BookFacts:
    """Facts about a workbook.

    A chart, a pivot table or a table that cannot be read does not affect the others: it is listed
    in :attr:`SheetFacts.problems`. A broken worksheet or an exceeded limit is an error.

    Args:
        workbook: the workbook; its limits apply.
    """

    def __init__(self, workbook: Workbook) -> None:
        self.workbook = workbook
        self._package = workbook.package
        self._trees: dict[str, Element] = {}
        self._rows: dict[str, Mapping[int, Mapping[str, str]]] = {}
        self._links: dict[str, Mapping[str, Relationship]] = {}
        self._charts: dict[str, tuple[list[Chart], list[str]]] = {}
        self._pivots: dict[str, tuple[list[Pivot], list[str]]] = {}
        self._pivot_reader = PivotReader(self._package)

    # -- parts of a sheet ------------------------------------------------------------------------

    @property
    def tabs(self) -> tuple[Tab, ...]:
        """All sheets in workbook order, chart sheets included."""
        return self.workbook.tabs

    def tab(self, name: str) -> Tab | None:
        """The first sheet with the given name; None if there is none."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> Mapping[str, Tab]:
        return {tab.name: tab for tab in self.tabs}

    def tree(self, tab: Tab) -> Element:
        """XML around the rows of a worksheet, or the whole part of a chart sheet.

        Raises:
            WorkbookError: the part is missing, broken or over a limit.
        """
        cached = self._trees.get(tab.part)
        if cached is None:
            with self._package.blamed():
                if tab.is_worksheet:
                    cached = scan_surroundings(self._package, tab.part, self._listener_of(tab)).root
                else:
                    cached = read_tree(
                        self._package, tab.part, text=True, max_elements=MAX_ELEMENTS
                    )
            self._trees[tab.part] = cached
        return cached

    def row_attributes(self, tab: Tab) -> Mapping[int, Mapping[str, str]]:
        """Row number -> its attributes other than the number, as written.

        Raises:
            WorkbookError: the part is missing, broken or over a limit.
        """
        if tab.part not in self._rows:
            with self._package.blamed():
                if not tab.is_worksheet:
                    return {}
                around = None if tab.part in self._trees else self._listener_of(tab)
                self._rows[tab.part], tree = read_row_lines(self._package, tab.part, around)
                if tree is not None:
                    self._trees[tab.part] = tree
        return self._rows[tab.part]

    def _listener_of(self, tab: Tab) -> Callable[[], TreeListener]:
        return lambda: TreeListener(self._package, tab.part, MAX_ELEMENTS)

    def links(self, tab: Tab) -> Mapping[str, Relationship]:
        """The relationships of a sheet's part to other parts.

        Raises:
            WorkbookError: the relationships cannot be read.
        """
        if tab.part not in self._links:
            with self._package.blamed():
                self._links[tab.part] = relationships(self._package, tab.part)
        return self._links[tab.part]

    def charts(self, tab: Tab) -> tuple[Chart, ...]:
        """The charts of a sheet that can be read.

        Raises:
            WorkbookError: a limit of the workbook was reached.
        """
        return tuple(self._read_charts(tab)[0])

    def pivots(self, tab: Tab) -> tuple[Pivot, ...]:
        """The pivot tables of a sheet that can be read.

        Raises:
            WorkbookError: a limit of the workbook was reached.
        """
        return tuple(self._read_pivots(tab)[0])

    def tables(self, tab: Tab) -> tuple[TableFact, ...]:
        """The tables of a sheet that can be read.

        Raises:
            WorkbookError: a limit of the workbook was reached.
        """
        return tuple(self._read_tables(tab)[0])

    def unread(self, tab: Tab) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Why charts and pivot tables of a sheet cannot be read, one line for each problem.

        Raises:
            WorkbookError: a limit of the workbook was reached.
        """
        return tuple(self._read_charts(tab)[1]), tuple(self._read_pivots(tab)[1])

    def _targets(self, tab: Tab, kind: str) -> Iterator[str]:
        seen = set()
        for link in self.links(tab).values():
            if link.kind == kind and not link.external and link.target not in seen:
                seen.add(link.target)
                if link.target in self._package:
                    yield link.target

    def _read_charts(self, tab: Tab) -> tuple[list[Chart], list[str]]:
        if tab.part not in self._charts:
            charts: list[Chart] = []
            problems: list[str] = []
            for drawing in self._targets(tab, "drawing"):
                try:
                    with self._package.blamed():
                        charts.extend(read_charts(self._package, drawing))
                except WorkbookError as error:
                    problems.append(self._problem(error))
            self._charts[tab.part] = charts, problems
        return self._charts[tab.part]

    def _read_pivots(self, tab: Tab) -> tuple[list[Pivot], list[str]]:
        if tab.part not in self._pivots:
            pivots: list[Pivot] = []
            problems: list[str] = []
            for part in self._targets(tab, "pivotTable"):
                try:
                    with self._package.blamed():
                        pivots.append(self._pivot_reader.read(part))
                except WorkbookError as error:
                    problems.append(self._problem(error))
            self._pivots[tab.part] = pivots, problems
        return self._pivots[tab.part]

    def _read_tables(self, tab: Tab) -> tuple[list[TableFact], list[str]]:
        tables: list[TableFact] = []
        problems: list[str] = []
        for part in self._targets(tab, "table"):
            try:
                with self._package.blamed():
                    tables.append(
                        table_of(read_tree(self._package, part, max_elements=MAX_ELEMENTS))
                    )
            except WorkbookError as error:
                problems.append(self._problem(error))
        return tables, problems

    def _problem(self, error: WorkbookError) -> str:
        """The message of an error in one part; raises instead if a limit is exceeded."""
        self._package.budget.check()
        return error.message

    # -- whole sheets ----------------------------------------------------------------------------

    def sheet(self, tab: Tab) -> SheetFacts:
        """Everything about a sheet except its cells.

        Raises:
            WorkbookError: the sheet is broken, or a limit of the workbook was reached.
        """
        rows = self.row_attributes(tab)  # first, since the same pass reads what is around the rows
        root = self.tree(tab)
        charts, problems = self._read_charts(tab)
        pivots, other = self._read_pivots(tab)
        tables, unread = self._read_tables(tab)
        problems = [*problems, *other, *unread]
        facts = SheetFacts(
            name=tab.name,
            state=tab.state,
            kind="worksheet" if tab.is_worksheet else "chartsheet",
            tab_colour=tab_colour_of(root),
            view=view_of(root),
            charts=tuple(charts),
            pivots=tuple(pivots),
            tables=tuple(tables),
            problems=tuple(problems),
        )
        if not tab.is_worksheet:
            return facts
        return replace(
            facts,
            rows=row_lines_of(rows),
            columns=column_lines_of(root),
            merges=merges_of(root),
            filter=filter_of(root.child("autoFilter")),
            sort=sort_of(root.child("sortState")),
            validations=validations_of(root),
            formats=formats_of(root, self.looks),
            links=links_of(root, self.links(tab)),
            sparklines=sparklines_of(root),
        )

    def sheets(self) -> Iterator[SheetFacts]:
        """All sheets in workbook order.

        Raises:
            WorkbookError: a sheet is broken, or a limit of the workbook was reached.
        """
        return map(self.sheet, self.tabs)

    @cached_property
    def looks(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """What each conditional look of the workbook changes, by index."""
        return tuple(map(_look, self.workbook.style_sheet.conditional))

    @cached_property
    def _main(self) -> Element:
        with self._package.blamed():
            return read_tree(
                self._package, main_part(self._package), text=True, max_elements=MAX_ELEMENTS
            )

    @property
    def iterates(self) -> bool:
        """Whether circular references are allowed, which are then computed repeatedly.

        Raises:
            WorkbookError: the main part is broken or over a limit.
        """
        calculation = self._main.child("calcPr")
        return calculation is not None and is_on(calculation.attributes.get("iterate"))

    @cached_property
    def names(self) -> tuple[Name, ...]:
        """Defined names, in the order of the file.

        Raises:
            WorkbookError: the main part is broken or over a limit.
        """
        root = self._main
        holder = root.child("definedNames")
        listed = root.child("sheets")
        sheets = (
            [] if listed is None else [child.attributes.get("name") for child in listed.children]
        )
        names = []
        for node in [] if holder is None else holder.all("definedName"):
            index = whole(node.attributes.get("localSheetId"))
            sheet = sheets[index] if index is not None and 0 <= index < len(sheets) else None
            hidden = is_on(node.attributes.get("hidden"))
            names.append(Name(node.attributes.get("name", ""), node.text, sheet, hidden))
        return tuple(names)


def _look(style: ConditionalStyle) -> tuple[tuple[str, str], ...]:
    values = ((name, getattr(style, name)) for name in _LOOKS)
    return tuple((name, str(value)) for name, value in values if value is not None)
