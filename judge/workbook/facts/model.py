"""What is known of the objects of a workbook. Pure data.

Attributes that a file leaves out have the default of the format (ECMA-376 part 1, 18.3 and 21.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Source:
    """What a chart takes its values from.

    Attributes:
        reference: the cells, as the file writes them (``Sheet1!$B$2:$B$5``); empty for literals.
        cached: what the chart keeps of them, as text; None for points that have no value.
        kind: name of the element: ``numRef``, ``strRef``, ``multiLvlStrRef``, ``numLit`` …
    """

    reference: str = ""
    cached: tuple[str | None, ...] = ()
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Trendline:
    """A trend line of a series.

    Attributes:
        kind: ``linear``, ``exp``, ``log``, ``movingAvg``, ``poly`` or ``power``.
        order: of a polynomial.
        period: of a moving average.
        equation, r_squared: whether they are shown.
        name: the name that was given to it.
    """

    kind: str
    order: int | None = None
    period: int | None = None
    equation: bool = False
    r_squared: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Labels:
    """Data labels of a chart or a series: what they show.

    Attributes:
        shows: of ``value``, ``category``, ``series``, ``percent``, ``legend_key``, ``bubble_size``.
        position: ``outEnd``, ``ctr`` …; None for the default.
    """

    shows: tuple[str, ...]
    position: str | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A data series.

    Attributes:
        name: the title of the series: its cell, or a literal text.
        values: the values; those of the y axis of a scatter chart.
        categories: the categories; the x values of a scatter chart.
        sizes: sizes of bubbles.
        trendlines: its trend lines.
        labels: its data labels; None without its own.
        colour: six hexadecimal digits, or the name of a theme colour; None if it is automatic.
        marker: ``none``, ``circle``, ``square`` …; None for the default.
        smooth: whether its line is smoothed; None if the file does not say.
        line: False if its line is not drawn.
        exploded: whether its slices are pulled apart.
    """

    name: Source | None
    values: Source | None
    categories: Source | None
    sizes: Source | None = None
    trendlines: tuple[Trendline, ...] = ()
    labels: Labels | None = None
    colour: str | None = None
    marker: str | None = None
    smooth: bool | None = None
    line: bool = True
    exploded: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """One of the kinds of drawing that a chart is made of; a combined chart has several.

    Attributes:
        kind: name of the element: ``barChart``, ``lineChart``, ``scatterChart`` …
        direction: ``col`` or ``bar`` for bars.
        grouping: ``clustered``, ``stacked``, ``percentStacked``, ``standard``; None without.
        style: ``lineMarker`` … of scatter charts, ``filled`` … of radar charts.
        series: its data series.
        labels: data labels of all its series.
        axes: identifiers of its axes.
        markers: whether lines have markers.
    """

    kind: str
    direction: str | None
    grouping: str | None
    style: str | None
    series: tuple[Series, ...]
    labels: Labels | None = None
    axes: tuple[str, ...] = ()
    markers: bool = False


@dataclass(frozen=True, slots=True)
class Title:
    """A title of a chart or an axis.

    Attributes:
        text: the whole text as it is shown; empty for a title that the program makes itself.
        reference: the cell that it is linked to; empty without one.
        runs: the text in pieces of one format each.
        first_run: the first plain piece of the first paragraph; None if it has none.
    """

    text: str
    reference: str = ""
    runs: tuple[str, ...] = ()
    first_run: str | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of a chart.

    Attributes:
        kind: ``catAx``, ``valAx``, ``dateAx`` or ``serAx``.
        identifier: what plots refer to.
        position: ``b``, ``l``, ``r`` or ``t``.
        title: its title.
        deleted: whether it is not shown.
        minimum, maximum: of the scale, if they are set.
        logarithm: base of a logarithmic scale.
        number_format: code of the numbers along it.
        gridlines: whether it has major grid lines.
    """

    kind: str
    identifier: str
    position: str
    title: Title | None = None
    deleted: bool = False
    minimum: float | None = None
    maximum: float | None = None
    logarithm: float | None = None
    number_format: str | None = None
    gridlines: bool = False


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where an object is on its sheet.

    Attributes:
        kind: ``twoCell``, ``oneCell`` or ``absolute``.
        edit_as: how a two-cell anchor moves with the cells; None if the file does not say.
        start: column and row of the upper left corner, from 0; None for an absolute place.
        end: those of the lower right corner, for two-cell anchors.
        offsets: how far the corners are inside their cells, in EMU: right and down for the upper
            left corner, then for the lower right one.
        extent: width and height in EMU; None for two-cell anchors.
        plain: whether the object is directly at the place, and not part of a group or of what only
            newer programs show.
    """

    kind: str
    edit_as: str | None = None
    start: tuple[int, int] | None = None
    end: tuple[int, int] | None = None
    offsets: tuple[int, int, int, int] = (0, 0, 0, 0)
    extent: tuple[int, int] | None = None
    plain: bool = True


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart.

    Attributes:
        plots: what it draws, in the order of the file.
        title: its title; None without.
        legend: ``r``, ``b``, ``l``, ``t`` or ``tr``; None without a legend.
        axes: its axes, in the order of the file.
        anchor: its place; None on a chart sheet.
        part: name of its part.
        pivot: the pivot table that it shows, as ``[file]sheet!name``; None without.
        automatic_title: whether a chart without a title may be given one by the program.
    """

    plots: tuple[Plot, ...]
    title: Title | None
    legend: str | None
    axes: tuple[Axis, ...]
    anchor: Anchor | None
    part: str
    pivot: str | None = None
    automatic_title: bool = True

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its plots, each once, in order."""
        return tuple(dict.fromkeys(plot.kind for plot in self.plots))


@dataclass(frozen=True, slots=True)
class PivotItem:
    """An item of a pivot field.

    Attributes:
        index: of the shared item in the cache; None for totals.
        hidden: whether it is filtered out; None if the file does not say.
        value: the item as text; None if the cache does not have it.
    """

    index: int | None
    hidden: bool | None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class PivotField:
    """A column of the source of a pivot table.

    Attributes:
        name: its heading; empty if the cache does not have it.
        axis: ``axisRow``, ``axisCol``, ``axisPage`` or None.
        items: its items, in the order in which they are shown.
    """

    name: str
    axis: str | None
    items: tuple[PivotItem, ...]


@dataclass(frozen=True, slots=True)
class PivotData:
    """A field of values.

    Attributes:
        field: index of the column of the source.
        column: heading of that column.
        name: the name that it is shown with.
        function: ``sum``, ``count``, ``average`` …
        shown_as: ``normal``, ``percentOfTotal`` …
    """

    field: int
    column: str
    name: str
    function: str = "sum"
    shown_as: str = "normal"


@dataclass(frozen=True, slots=True)
class Pivot:
    """A pivot table.

    Attributes:
        name: its name.
        place: the cells that it fills.
        source_type: ``worksheet``, ``external`` …
        source_sheet: sheet of the source; None if the file does not say.
        source_range: cells of the source; None for a table or a name.
        source_name: table or name that is the source.
        fields: the columns of the source.
        rows, columns: indices of the fields on the axes; -2 stands for the values.
        pages: indices of the fields that filter the whole table.
        data: what is summarised.
        location: what the definition says about its place, as written.
        attributes: what else it says (layout, totals), as written.
    """

    name: str
    place: str
    source_type: str
    source_sheet: str | None
    source_range: str | None
    source_name: str | None
    fields: tuple[PivotField, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    pages: tuple[int, ...]
    data: tuple[PivotData, ...]
    location: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()

    def names_of(self, indices: tuple[int, ...]) -> tuple[str, ...]:
        """Headings of fields by index; ``Values`` for -2."""
        return tuple(
            "Values"
            if index == -2
            else self.fields[index].name
            if 0 <= index < len(self.fields)
            else f"field {index}"
            for index in indices
        )


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
