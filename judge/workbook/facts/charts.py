"""Charts of a sheet: their contents, and how they are read.

Attributes that a file leaves out have the default of the format. Sources: ECMA-376 part 1, chapter
21.2 (charts) and 20.5 (anchors).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from judge.errors import WorkbookError
from judge.workbook.package import Package
from judge.workbook.tree import MAX_ELEMENTS, Element, colour, identifier, number, read_tree, whole
from judge.workbook.xml_parts import CHART_NAMES, DRAWING_NAMES, is_on, relationships


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a chart's values.

    Attributes:
        reference: the cells, as the file writes them (``Sheet1!$B$2:$B$5``); empty for literals.
        cached: the values that the chart caches, as text; None for points without a value.
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
        order: the order of a polynomial.
        period: the period of a moving average.
        equation, r_squared: whether they are shown.
        name: its name, if a user gave it one.
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
        shows: some of ``value``, ``category``, ``series``, ``percent``, ``legend_key`` and
            ``bubble_size``.
        position: ``outEnd``, ``ctr`` …; None for the default.
    """

    shows: tuple[str, ...]
    position: str | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A data series.

    Attributes:
        name: the title of the series: its cell, or a literal text.
        values: the values; in a scatter chart, the y values.
        categories: the categories; in a scatter chart, the x values.
        sizes: sizes of bubbles.
        trendlines: its trend lines.
        labels: its own data labels; None if it uses those of the chart.
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
    """A plot of a chart, such as its bars or its lines; a combined chart has several.

    Attributes:
        kind: name of the element: ``barChart``, ``lineChart``, ``scatterChart`` …
        direction: ``col`` or ``bar`` for bars.
        grouping: ``clustered``, ``stacked``, ``percentStacked``, ``standard``; None if not given.
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
        reference: the cell that it is linked to; empty if there is none.
        runs: the text, cut into pieces with a single format.
        first_run: the first plain piece of the first paragraph; None if there is none.
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
        identifier: the id by which plots refer to it.
        position: ``b``, ``l``, ``r`` or ``t``.
        title: its title.
        deleted: whether it is not shown.
        minimum, maximum: the bounds of the scale, if they are set.
        logarithm: base of a logarithmic scale.
        number_format: format code of its numbers.
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
    """The position of an object on its sheet.

    Attributes:
        kind: ``twoCell``, ``oneCell`` or ``absolute``.
        edit_as: how a two-cell anchor moves with the cells; None if the file does not say.
        start: column and row of the upper left corner, from 0; None for an absolute anchor.
        end: column and row of the lower right corner, for two-cell anchors.
        offsets: how far the corners are inside their cells, in EMU: right and down for the upper
            left corner, then for the lower right one.
        extent: width and height in EMU; None for two-cell anchors.
        plain: whether the object itself has this anchor; False if it is in a group, or in
            alternate content for newer programs.
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
        title: its title; None if it has none.
        legend: ``r``, ``b``, ``l``, ``t`` or ``tr``; None if it has no legend.
        axes: its axes, in the order of the file.
        anchor: its position; None on a chart sheet.
        part: name of its part.
        pivot: the pivot table that it shows, as ``[file]sheet!name``; None if it shows none.
        automatic_title: whether a program may add a title if the chart has none.
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
        """The kinds of its plots in order, without repetition."""
        return tuple(dict.fromkeys(plot.kind for plot in self.plots))


_ANCHORS = {"absoluteAnchor": "absolute", "oneCellAnchor": "oneCell", "twoCellAnchor": "twoCell"}
_AXES = {"catAx", "valAx", "dateAx", "serAx"}
_SHOWN = {
    "showVal": "value",
    "showCatName": "category",
    "showSerName": "series",
    "showPercent": "percent",
    "showLegendKey": "legend_key",
    "showBubbleSize": "bubble_size",
}
_MAX_POINTS = 100_000


def read_charts(package: Package, drawing: str) -> list[Chart]:
    """The charts of a drawing, in the order of the file.

    Charts of the newer kinds (waterfall, treemap …) have another format; they have one plot of
    their kind, without references of series.

    Args:
        package: the workbook.
        drawing: name of the drawing's part.

    Raises:
        WorkbookError: a part is broken or over a limit.
    """
    root = read_tree(package, drawing, text=True, max_elements=MAX_ELEMENTS, names=DRAWING_NAMES)
    links = relationships(package, drawing)
    by_part: dict[str, Chart] = {}
    charts = []
    for anchor, frame in _frames(root):
        link = links.get(identifier(frame.attributes) or "")
        if link is None or link.external or link.target not in package:
            continue
        if link.target not in by_part:
            by_part[link.target] = read_chart(package, link.target, anchor)
        else:
            package.budget.take_cells(_size(by_part[link.target]))
        charts.append(replace(by_part[link.target], anchor=anchor))
    if _has_unread_freeform(root):
        return [replace(chart, dropped_by_openpyxl=True) for chart in charts]
    return charts


def _size(chart: Chart) -> int:
    """How many points and series a chart adds to the total each time that it occurs."""
    return sum(
        1
        + sum(
            len(source.cached)
            for source in (series.values, series.categories)
            if source is not None
        )
        for plot in chart.plots
        for series in plot.series
    )


def _frames(root: Element) -> Iterator[tuple[Anchor, Element]]:
    """The references to charts with their anchors, without fallbacks for older programs."""
    for holder in root.children:
        inner = holder
        if holder.name == "AlternateContent":
            choice = holder.child("Choice")
            inner = next(
                (child for child in ([] if choice is None else choice.children)), Element("")
            )
        if inner.name not in _ANCHORS:
            continue
        anchor = _anchor(inner)
        direct = inner.find("graphicFrame", "graphic", "graphicData", "chart")
        waiting = [inner]
        while waiting:
            here = waiting.pop()
            if here.name == "chart" and identifier(here.attributes) is not None:
                yield replace(anchor, plain=here is direct and inner is holder), here
            waiting.extend(child for child in reversed(here.children) if child.name != "Fallback")


def _anchor(element: Element) -> Anchor:
    corners = element.child("from"), element.child("to")
    extent = element.child("ext")
    size = None if extent is None else [whole(extent.attributes.get(axis)) for axis in ("cx", "cy")]
    return Anchor(
        kind=_ANCHORS[element.name],
        edit_as=element.attributes.get("editAs"),
        start=_corner(corners[0]),
        end=_corner(corners[1]),
        offsets=(*_offsets(corners[0]), *_offsets(corners[1])),
        extent=None if size is None else (size[0] or 0, size[1] or 0),
    )


def _offsets(element: Element | None) -> tuple[int, int]:
    if element is None:
        return 0, 0
    return whole(element.text_of("colOff")) or 0, whole(element.text_of("rowOff")) or 0


def _corner(element: Element | None) -> tuple[int, int] | None:
    if element is None:
        return None
    return whole(element.text_of("col")) or 0, whole(element.text_of("row")) or 0


def read_chart(package: Package, part: str, anchor: Anchor | None) -> Chart:
    """Reads one chart.

    Args:
        package: the workbook.
        part: name of the chart's part.
        anchor: its place.

    Raises:
        WorkbookError: the part is missing, broken or over a limit.
    """
    space = read_tree(package, part, text=True, max_elements=MAX_ELEMENTS, names=CHART_NAMES)
    chart = space.child("chart")
    area = None if chart is None else chart.child("plotArea")
    if chart is None or area is None:
        raise WorkbookError(f"{part} is not a chart")
    legend = chart.child("legend")
    plots = [_plot(child) for child in area.children if child.name.endswith("Chart")]
    region = area.child("plotAreaRegion")  # the newer kinds
    if region is not None:
        plots.extend(
            Plot(
                node.attributes.get("layoutId", "?"), None, None, None, (Series(None, None, None),)
            )
            for node in region.all("series")
        )
    position = None
    if legend is not None:
        position = legend.value("legendPos") or legend.attributes.get("pos") or "r"
    return Chart(
        plots=tuple(plots),
        title=_title(chart.child("title")),
        legend=position,
        axes=tuple(_axis(child) for child in area.children if child.name in _AXES),
        anchor=anchor,
        part=part,
        pivot=space.text_of("pivotSource", "name"),
        automatic_title=not _flag(chart, "autoTitleDeleted"),
        dropped_by_openpyxl=_is_dropped_by_openpyxl(space),
    )


_NOT_READ = {"extLst", "AlternateContent"}
_CATEGORIES = {"cat", "xVal"}
_SOURCES = {"numRef", "numLit", "strRef", "strLit", "multiLvlStrRef"}
_POINTS = {"numCache": "numRef", "strCache": "strRef"}
_LITERALS = {"numLit", "strLit"}
_HOLDERS = {"cat", "val", "xVal", "yVal", "bubbleSize", "plus", "minus"}


def _is_dropped_by_openpyxl(space: Element) -> bool:
    """Whether openpyxl raises a TypeError while it reads a chart's data, and leaves the chart out.

    It fails on text in a number cache (LibreOffice 7.4 writes dates there as text), on points
    without a number, and on categories without a source.

    Source: openpyxl 3.1.5, ``reader/drawings.py`` and ``chart/data_source.py``.
    """
    waiting = [space]
    while waiting:
        here = waiting.pop()
        if here.name in _CATEGORIES and not any(child.name in _SOURCES for child in here.children):
            return True
        for child in here.children:
            cached = _POINTS.get(child.name) == here.name
            if (cached or (child.name in _LITERALS and here.name in _HOLDERS)) and _is_odd(child):
                return True
            if child.name not in _NOT_READ:
                waiting.append(child)
    return False


def _is_odd(points: Element) -> bool:
    """Whether a cache or a literal has a count, point or number that Python cannot read."""
    numbers = points.name.startswith("num")
    expected = {"idx", "v", "formatCode"} if numbers else {"idx", "v"}
    counts = [count.attributes.get("val", "0") for count in points.all("ptCount")]
    for point in points.all("pt"):
        counts.append(point.attributes.get("idx", "" if numbers else "0"))
        if any(name not in expected and ":" not in name for name in point.attributes):
            return True
        if numbers and any(
            node.text and node.text != "#N/A" and not _converts(float, node.text)
            for node in point.all("v")
        ):
            return True
    return not all(_converts(int, count) for count in counts)


def _converts(kind: type[int | float], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _has_unread_freeform(drawing: Element) -> bool:
    """Whether openpyxl raises a TypeError on a freeform shape, and drops the whole drawing.

    Excel names the points where connectors may end (``connsiteX0``), and openpyxl reads these names
    as whole numbers. It does not read shapes in groups.

    Source: openpyxl 3.1.5, ``reader/drawings.py`` and ``drawing/geometry.py``.
    """
    for anchor in drawing.children:
        if anchor.name not in _ANCHORS:
            continue
        for shape in (child for child in anchor.children if child.name in {"sp", "cxnSp"}):
            geometry = shape.find("spPr", "a:custGeom")
            if geometry is not None and not _is_numeric(geometry):
                return True
    return False


def _is_numeric(freeform: Element) -> bool:
    sites, paths = freeform.child("a:cxnLst"), freeform.child("a:pathLst")
    ends = [] if sites is None else sites.all("a:cxn")
    positions = [end.child("a:pos") or Element("a:pos") for end in ends]
    floats = [end.attributes.get("ang", "") for end in ends]
    for path in () if paths is None else paths.all("a:path"):
        floats += [path.attributes.get("w", ""), path.attributes.get("h", "")]
    return (
        paths is not None
        and all(
            _converts(int, point.attributes.get(name, "")) for point in positions for name in "xy"
        )
        and all(_converts(float, number) for number in floats)
    )


def _plot(element: Element) -> Plot:
    kind = element.name
    direction = element.value("barDir")
    if kind in {"barChart", "bar3DChart"} and direction is None:
        direction = "col"
    return Plot(
        kind=kind,
        direction=direction,
        grouping=element.value("grouping"),
        style=element.value("scatterStyle") or element.value("radarStyle"),
        series=tuple(_series(node) for node in element.all("ser")),
        labels=_labels(element.child("dLbls")),
        axes=tuple(node.attributes.get("val", "") for node in element.all("axId")),
        markers=_flag(element, "marker"),
    )


def _series(element: Element) -> Series:
    marker = element.child("marker")
    return Series(
        name=_source(element.child("tx")),
        values=_source(element.child("val") or element.child("yVal")),
        categories=_source(element.child("cat") or element.child("xVal")),
        sizes=_source(element.child("bubbleSize")),
        trendlines=tuple(_trendline(node) for node in element.all("trendline")),
        labels=_labels(element.child("dLbls")),
        colour=colour(element.child("spPr")),
        marker=None if marker is None else marker.value("symbol"),
        smooth=_flag(element, "smooth") if element.child("smooth") is not None else None,
        line=element.find("spPr", "ln", "noFill") is None,
        exploded=(whole(element.value("explosion")) or 0) > 0,
    )


def _source(element: Element | None) -> Source | None:
    """Reads the source of values: a reference with its cache, or literals."""
    if element is None:
        return None
    literal = element.child("v")
    if literal is not None:
        return Source("", (literal.text,))
    for holder in element.children:
        formula = holder.text_of("f")
        cache = next((child for child in holder.children if child.name.endswith("Cache")), None)
        if holder.name in {"numLit", "strLit"}:
            cache = holder
        if formula is not None or cache is not None:
            return Source(formula or "", _points(cache), holder.name)
    return Source()


def _points(cache: Element | None) -> tuple[str | None, ...]:
    if cache is None:
        return ()
    levels = cache.all("lvl")
    points = (levels[0] if levels else cache).all("pt")  # the innermost level is the first
    count = whole(cache.value("ptCount")) or 0
    values: dict[int, str] = {}
    for order, point in enumerate(points[:_MAX_POINTS]):
        index = whole(point.attributes.get("idx"))
        values[order if index is None else index] = point.text_of("v") or ""
    length = min(max(count, max(values, default=-1) + 1), _MAX_POINTS, 2 * len(points) + 1000)
    return tuple(values.get(index) for index in range(length))


def _trendline(element: Element) -> Trendline:
    return Trendline(
        kind=element.value("trendlineType") or "linear",
        order=whole(element.value("order")),
        period=whole(element.value("period")),
        equation=_flag(element, "dispEq"),
        r_squared=_flag(element, "dispRSqr"),
        name=element.text_of("name") or "",
    )


def _labels(element: Element | None) -> Labels | None:
    if element is None or _flag(element, "delete"):
        return None
    shows = tuple(name for tag, name in _SHOWN.items() if _flag(element, tag))
    return Labels(shows, element.value("dLblPos"))


def _flag(element: Element, name: str) -> bool:
    child = element.child(name)
    return child is not None and is_on(child.attributes.get("val"), default=True)


def _title(element: Element | None) -> Title | None:
    if element is None:
        return None
    linked = element.find("tx", "strRef")
    if linked is not None:
        cached = _points(linked.child("strCache"))
        return Title(" ".join(text for text in cached if text), linked.text_of("f") or "")
    rich = element.find("tx", "rich")
    if rich is None:
        return Title("")
    lines, runs = [], []
    for paragraph in rich.all("p"):
        pieces = [
            (child.text_of("t") or "") if child.name in {"r", "fld"} else "\n"
            for child in paragraph.children
            if child.name in {"r", "fld", "br"}
        ]
        lines.append("".join(pieces))
        runs.extend(pieces)
    first = rich.find("p", "r")
    first_run = None if first is None else first.text_of("t")
    return Title("\n".join(lines), runs=tuple(runs), first_run=first_run)


def _axis(element: Element) -> Axis:
    scaling = element.child("scaling") or Element("scaling")
    codes = element.child("numFmt")
    return Axis(
        kind=element.name,
        identifier=element.value("axId") or "",
        position=element.value("axPos") or "",
        title=_title(element.child("title")),
        deleted=_flag(element, "delete"),
        minimum=number(scaling.value("min")),
        maximum=number(scaling.value("max")),
        logarithm=number(scaling.value("logBase")),
        number_format=None if codes is None else codes.attributes.get("formatCode"),
        gridlines=element.child("majorGridlines") is not None,
    )
