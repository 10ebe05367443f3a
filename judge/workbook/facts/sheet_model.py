"""What is known of a sheet but its cells, and of the names of a workbook. Pure data.

Attributes that a file leaves out have the default of the format (ECMA-376 part 1, 18.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from judge.workbook.facts.chart_model import Chart
from judge.workbook.facts.pivot_model import Pivot


@dataclass(frozen=True, slots=True)
class FilterColumn:
    """The condition of one column of a filter.

    Attributes:
        column: counted from 0, within the range of the filter.
        kind: ``filters``, ``customFilters``, ``top10``, ``dynamicFilter``, ``colorFilter``,
            ``iconFilter``, or empty if the column has no condition.
        values: values that are shown; for custom filters the operator and the value.
        blanks: whether blank cells are shown.
        joined_by_and: whether both custom filters have to hold.
        terms: attributes of other kinds.
        hidden_button, show_button: how the button is shown.
    """

    column: int
    kind: str = ""
    values: tuple[tuple[str, ...], ...] = ()
    blanks: bool = False
    joined_by_and: bool = False
    terms: tuple[tuple[str, str], ...] = ()
    hidden_button: bool = False
    show_button: bool = True


@dataclass(frozen=True, slots=True)
class Sort:
    """How rows are sorted: the range, and (cells of the key, descending) one after the other."""

    place: str
    keys: tuple[tuple[str, bool], ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of a sheet or a table.

    Attributes:
        place: the cells that it covers, with the headings.
        columns: its conditions.
        sort: how its rows are sorted.
    """

    place: str
    columns: tuple[FilterColumn, ...] = ()
    sort: Sort | None = None


@dataclass(frozen=True, slots=True)
class TableFact:
    """A table of a sheet.

    Attributes:
        name: its name in formulas.
        place: its cells.
        columns: its headings.
        filter: its filter.
        style: name of its look.
        totals: whether it has a row of totals.
    """

    name: str
    place: str
    columns: tuple[str, ...]
    filter: Filter | None = None
    style: str | None = None
    totals: bool = False


@dataclass(frozen=True, slots=True)
class Pane:
    """How a sheet is divided.

    Attributes:
        frozen: whether parts are frozen, or only split.
        columns, rows: frozen columns and rows; for a split its place in twentieths of a point.
        top_left: upper left cell of what is scrolled.
    """

    frozen: bool
    columns: float
    rows: float
    top_left: str | None


@dataclass(frozen=True, slots=True)
class View:
    """How a sheet is shown.

    Attributes:
        zoom: in percent.
        pane: how it is divided; None if it is not.
        gridlines, headings: whether they are shown.
    """

    zoom: int = 100
    pane: Pane | None = None
    gridlines: bool = True
    headings: bool = True


@dataclass(frozen=True, slots=True)
class Validation:
    """A data validation.

    Attributes:
        places: the cells, rectangle by rectangle.
        kind: ``list``, ``whole`` …; None if anything is allowed.
        operator: ``between`` and others.
        formulas: its formulas.
        attributes: what else it says, as written.
        extension: whether it is in the extension part, where rules about other sheets are.
    """

    places: tuple[str, ...]
    kind: str | None
    operator: str
    formulas: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    extension: bool = False


@dataclass(frozen=True, slots=True)
class FormatRule:
    """A rule of a conditional format.

    Attributes:
        places: the cells, rectangle by rectangle.
        kind: ``expression``, ``cellIs``, ``colorScale`` …
        operator: of the condition; None without.
        formulas: its formulas.
        attributes: what else it says, as written.
        look: what it does to cells, attribute by attribute.
        extension: whether it is in the extension part.
    """

    places: tuple[str, ...]
    kind: str
    operator: str | None
    formulas: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...] = ()
    look: tuple[tuple[str, str], ...] = ()
    extension: bool = False


@dataclass(frozen=True, slots=True)
class LinkFact:
    """A hyperlink: its cells, the address or place in the workbook, and the tip."""

    place: str
    target: str
    tip: str | None = None


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A chart in a cell: ``line``, ``column`` or ``stacked``, its cell, and its data."""

    kind: str
    place: str
    reference: str


@dataclass(frozen=True, slots=True)
class Line:
    """Properties of a row, or of neighbouring columns.

    Attributes:
        first, last: numbers from 1; equal for a row.
        hidden: whether it is hidden.
        size: height in points or width in characters; None for the default.
        level: of the outline.
        collapsed: whether the group that ends here is collapsed.
    """

    first: int
    last: int
    hidden: bool = False
    size: float | None = None
    level: int = 0
    collapsed: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """A defined name: what it refers to, and the sheet that it belongs to, if any."""

    name: str
    refers_to: str
    sheet: str | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class SheetFacts:
    """Everything about a sheet but its cells.

    Attributes:
        name: its name.
        state: ``visible``, ``hidden`` or ``veryHidden``.
        kind: ``worksheet`` or ``chartsheet``.
        tab_colour: six hexadecimal digits, or the name of a theme colour.
        view: how it is shown.
        rows, columns: those with properties of their own.
        merges: merged cells.
        charts, pivots, tables, filter, sort, validations, formats, links, sparklines: its objects.
        problems: parts that could not be read, a line each.
    """

    name: str
    state: str
    kind: str
    tab_colour: str | None = None
    view: View = field(default_factory=View)
    rows: tuple[Line, ...] = ()
    columns: tuple[Line, ...] = ()
    merges: tuple[str, ...] = ()
    charts: tuple[Chart, ...] = ()
    pivots: tuple[Pivot, ...] = ()
    tables: tuple[TableFact, ...] = ()
    filter: Filter | None = None
    sort: Sort | None = None
    validations: tuple[Validation, ...] = ()
    formats: tuple[FormatRule, ...] = ()
    links: tuple[LinkFact, ...] = ()
    sparklines: tuple[Sparkline, ...] = ()
    problems: tuple[str, ...] = ()
