"""What is known of a chart. Pure data.

Attributes that a file leaves out have the default of the format (ECMA-376 part 1, 21.2).
"""

from __future__ import annotations

from dataclasses import dataclass


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
        dropped_by_openpyxl: whether openpyxl 3.1.5 leaves it out when it reads the workbook.
    """

    plots: tuple[Plot, ...]
    title: Title | None
    legend: str | None
    axes: tuple[Axis, ...]
    anchor: Anchor | None
    part: str
    pivot: str | None = None
    automatic_title: bool = True
    dropped_by_openpyxl: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its plots, each once, in order."""
        return tuple(dict.fromkeys(plot.kind for plot in self.plots))
