"""Facts about a worksheet other than its cells, read from the elements around its rows.

Attributes that a file leaves out have the default of the format. Source: ECMA-376 part 1, chapter
18.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from judge.workbook.facts.charts import Chart
from judge.workbook.facts.pivots import Pivot
from judge.workbook.tree import Element, identifier, number, whole
from judge.workbook.xml_parts import Relationship, is_on


@dataclass(frozen=True, slots=True)
class FilterColumn:
    """The condition of one column of a filter.

    Attributes:
        column: counted from 0, within the range of the filter.
        kind: ``filters``, ``customFilters``, ``top10``, ``dynamicFilter``, ``colorFilter``,
            ``iconFilter``, or empty if the column has no condition.
        values: the values that are shown; for custom filters, pairs of operator and value.
        blanks: whether blank cells are shown.
        joined_by_and: whether both custom filters have to hold.
        terms: attributes of the other kinds of filters.
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
    """How rows are sorted: the range and, in order, each key's cells and whether it descends."""

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
        style: name of its table style.
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
        columns, rows: number of frozen columns and rows; for a split, its position in twentieths of
            a point.
        top_left: upper left cell of the part that scrolls.
    """

    frozen: bool
    columns: float
    rows: float
    top_left: str | None


@dataclass(frozen=True, slots=True)
class View:
    """How a sheet is shown.

    Attributes:
        zoom: the zoom in percent.
        pane: how it is divided; None if it is not divided.
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
        attributes: its other attributes, as written.
        extension: whether it is in the extension part, which holds rules about other sheets.
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
        operator: the operator of the condition; None if there is none.
        formulas: its formulas.
        attributes: its other attributes, as written.
        look: what it changes in the look of cells, attribute by attribute.
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
    """A hyperlink: its cells, its target (an address or a place in the workbook), and its tip."""

    place: str
    target: str
    tip: str | None = None


@dataclass(frozen=True, slots=True)
class Sparkline:
    """A chart in a cell: its kind (``line``, ``column`` or ``stacked``), its cell and its data."""

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
        level: the level of the outline.
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
    """Everything about a sheet except its cells.

    Attributes:
        name: its name.
        state: ``visible``, ``hidden`` or ``veryHidden``.
        kind: ``worksheet`` or ``chartsheet``.
        tab_colour: six hexadecimal digits, or the name of a theme colour.
        view: how it is shown.
        rows, columns: the rows and columns that have properties of their own.
        merges: merged cells.
        charts, pivots, tables, filter, sort, validations, formats, links, sparklines: its objects.
        problems: the parts that could not be read, one line for each.
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


_FILTER_KINDS = ("filters", "customFilters", "top10", "dynamicFilter", "colorFilter", "iconFilter")
_VALIDATION_OWN = {"type", "operator", "sqref"}
_RULE_OWN = {"type", "operator", "priority", "dxfId", "id"}
_MAX_PLACES = 100_000


def view_of(root: Element) -> View:
    """How a sheet is shown: its first view."""
    element = root.find("sheetViews", "sheetView")
    if element is None:
        return View()
    attributes = element.attributes
    return View(
        zoom=whole(attributes.get("zoomScale")) or 100,
        pane=_pane(element.child("pane")),
        gridlines=is_on(attributes.get("showGridLines"), default=True),
        headings=is_on(attributes.get("showRowColHeaders"), default=True),
    )


def _pane(element: Element | None) -> Pane | None:
    if element is None:
        return None
    attributes = element.attributes
    return Pane(
        frozen=attributes.get("state", "split") in {"frozen", "frozenSplit"},
        columns=number(attributes.get("xSplit")) or 0,
        rows=number(attributes.get("ySplit")) or 0,
        top_left=attributes.get("topLeftCell"),
    )


def tab_colour_of(root: Element) -> str | None:
    """The colour of a sheet's tab."""
    element = root.find("sheetPr", "tabColor")
    if element is None:
        return None
    digits = element.attributes.get("rgb")
    return digits[-6:].upper() if digits else f"theme {element.attributes.get('theme', '?')}"


_NOTHING_SAID = (False, None, 0, False)


def row_lines_of(rows: Mapping[int, Mapping[str, str]]) -> tuple[Line, ...]:
    """Rows whose height, outline or visibility is not the default."""
    by_attributes: dict[int, tuple[bool, float | None, int, bool]] = {}
    row_facts = []
    for row, attributes in rows.items():
        # Rows with equal attributes share one mapping, so each mapping is checked only once.
        parsed = by_attributes.get(id(attributes))
        if parsed is None:
            parsed = by_attributes[id(attributes)] = _line_attributes(attributes, "ht")
        if parsed != _NOTHING_SAID:
            row_facts.append(Line(row, row, *parsed))
    return tuple(row_facts)


def column_lines_of(root: Element) -> tuple[Line, ...]:
    """Columns whose width, outline or visibility is not the default."""
    columns = []
    for holder in root.all("cols"):
        for node in holder.all("col"):
            first = whole(node.attributes.get("min")) or 0
            last = whole(node.attributes.get("max")) or first
            columns.append(_line(first, last, node.attributes, "width"))
    return tuple(columns)


def _line(first: int, last: int, attributes: Mapping[str, str], size: str) -> Line:
    return Line(first, last, *_line_attributes(attributes, size))


def _line_attributes(
    attributes: Mapping[str, str], size: str
) -> tuple[bool, float | None, int, bool]:
    """Attributes of a row or a column: hidden, size, level, collapsed."""
    return (
        is_on(attributes.get("hidden")),
        number(attributes.get(size)),
        whole(attributes.get("outlineLevel")) or 0,
        is_on(attributes.get("collapsed")),
    )


def merges_of(root: Element) -> tuple[str, ...]:
    """Merged cells."""
    holder = root.child("mergeCells")
    return tuple(
        node.attributes.get("ref", "") for node in ([] if holder is None else holder.children)
    )


# -- filters --------------------------------------------------------------------------------------


def filter_of(element: Element | None) -> Filter | None:
    """Reads a filter from its element."""
    if element is None:
        return None
    return Filter(
        place=element.attributes.get("ref", ""),
        columns=tuple(_filter_column(node) for node in element.all("filterColumn")),
        sort=sort_of(element.child("sortState")),
    )


def _filter_column(element: Element) -> FilterColumn:
    attributes = element.attributes
    condition = next((child for child in element.children if child.name in _FILTER_KINDS), None)
    values: tuple[tuple[str, ...], ...] = ()
    terms: tuple[tuple[str, str], ...] = ()
    blanks = joined = False
    if condition is not None:
        condition_attributes = condition.attributes
        blanks = condition.name == "filters" and is_on(condition_attributes.get("blank"))
        joined = condition.name == "customFilters" and is_on(condition_attributes.get("and"))
        if condition.name == "customFilters":
            values = tuple(
                (node.attributes.get("operator", "equal"), node.attributes.get("val", ""))
                for node in condition.all("customFilter")
            )
        elif condition.name == "filters":
            values = tuple((node.attributes.get("val", ""),) for node in condition.all("filter"))
            values += tuple(
                tuple(f"{name}={text}" for name, text in node.attributes.items())
                for node in condition.all("dateGroupItem")
            )
        else:
            terms = tuple(sorted(condition_attributes.items()))
    return FilterColumn(
        column=whole(attributes.get("colId")) or 0,
        kind="" if condition is None else condition.name,
        values=values,
        blanks=blanks,
        joined_by_and=joined,
        terms=terms,
        hidden_button=is_on(attributes.get("hiddenButton")),
        show_button=is_on(attributes.get("showButton"), default=True),
    )


def sort_of(element: Element | None) -> Sort | None:
    """How rows are sorted."""
    if element is None:
        return None
    keys = tuple(
        (node.attributes.get("ref", ""), is_on(node.attributes.get("descending")))
        for node in element.all("sortCondition")
    )
    return Sort(element.attributes.get("ref", ""), keys)


def table_of(root: Element) -> TableFact:
    """Reads a table from its part."""
    holder = root.child("tableColumns")
    style = root.child("tableStyleInfo")
    return TableFact(
        name=root.attributes.get("displayName") or root.attributes.get("name", ""),
        place=root.attributes.get("ref", ""),
        columns=tuple(
            node.attributes.get("name", "") for node in ([] if holder is None else holder.children)
        ),
        filter=filter_of(root.child("autoFilter")),
        style=None if style is None else style.attributes.get("name"),
        totals=(whole(root.attributes.get("totalsRowCount")) or 0) > 0,
    )


# -- rules ----------------------------------------------------------------------------------------


def validations_of(root: Element) -> tuple[Validation, ...]:
    """Data validations; those in the extension part come last."""
    return tuple(
        _validation(node, extension=node.child("xm:sqref") is not None)
        for node in root.walk()
        if node.name in {"dataValidation", "x14:dataValidation"}
    )


def _validation(element: Element, *, extension: bool) -> Validation:
    attributes = element.attributes
    return Validation(
        places=_places(element),
        kind=None if attributes.get("type") == "none" else attributes.get("type"),
        operator=attributes.get("operator", "between"),
        formulas=_formulas(element, ("formula1", "formula2")),
        attributes=tuple(
            sorted(
                (name, text)
                for name, text in attributes.items()
                if name not in _VALIDATION_OWN and ":" not in name
            )
        ),
        extension=extension,
    )


def _places(element: Element) -> tuple[str, ...]:
    written = element.attributes.get("sqref")
    if written is None:
        written = element.text_of("xm:sqref") or ""
    return tuple(islice(written.split(), _MAX_PLACES))


def _formulas(element: Element, names: tuple[str, ...]) -> tuple[str, ...]:
    """The formulas of a rule; in the extension part, each is nested one element deeper."""
    validations = []
    for child in element.children:
        if child.name.rpartition(":")[2] in names:
            inner = child.child("xm:f")
            validations.append(child.text if inner is None else inner.text)
    return tuple(validations)


def formats_of(
    root: Element, looks: tuple[tuple[tuple[str, str], ...], ...]
) -> tuple[FormatRule, ...]:
    """Rules of conditional formats, those of the extension part last.

    Args:
        root: the worksheet without its rows.
        looks: what each conditional look of the workbook changes, by index.
    """
    formats = []
    for holder in root.walk():
        if holder.name not in {"conditionalFormatting", "x14:conditionalFormatting"}:
            continue
        areas = _places(holder)
        for rule in holder.all(holder.name.replace("conditionalFormatting", "cfRule")):
            attributes = rule.attributes
            index = whole(attributes.get("dxfId"))
            look = looks[index] if index is not None and 0 <= index < len(looks) else ()
            formats.append(
                FormatRule(
                    places=areas,
                    kind=attributes.get("type", ""),
                    operator=attributes.get("operator"),
                    formulas=_formulas(rule, ("formula", "f")),
                    attributes=tuple(
                        sorted(
                            (name, text)
                            for name, text in attributes.items()
                            if name not in _RULE_OWN
                        )
                    )
                    + _drawn(rule),
                    look=look,
                    extension=holder.child("xm:sqref") is not None,
                )
            )
    return tuple(formats)


def _drawn(rule: Element) -> tuple[tuple[str, str], ...]:
    """How colour scales, data bars and icon sets are drawn."""
    drawings = []
    for scale in rule.children:
        if scale.name.removeprefix("x14:") in {"colorScale", "dataBar", "iconSet"}:
            for node in (scale, *islice(scale.children, 16)):
                settings = ", ".join(f"{name}={text}" for name, text in node.attributes.items())
                drawings.append((node.name.removeprefix("x14:"), settings))
    return tuple(drawings)


def links_of(root: Element, targets: Mapping[str, Relationship]) -> tuple[LinkFact, ...]:
    """Hyperlinks."""
    holder = root.child("hyperlinks")
    links = []
    for node in [] if holder is None else holder.all("hyperlink"):
        link = targets.get(identifier(node.attributes) or "")
        location = node.attributes.get("location")
        target = ("" if link is None else link.target) or location or ""
        links.append(
            LinkFact(node.attributes.get("ref", ""), target, node.attributes.get("tooltip"))
        )
    return tuple(links)


def sparklines_of(root: Element) -> tuple[Sparkline, ...]:
    """Sparklines, in the order of the file."""
    sparklines: list[Sparkline] = []
    for group in root.walk():
        if group.name != "x14:sparklineGroup":
            continue
        kind = group.attributes.get("type", "line")
        sparklines.extend(
            Sparkline(
                kind, (node.text_of("xm:sqref") or "").strip(), (node.text_of("xm:f") or "").strip()
            )
            for node in group.walk()
            if node.name == "x14:sparkline"
        )
    return tuple(sparklines)
