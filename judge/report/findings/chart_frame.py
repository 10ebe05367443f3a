"""What is around the data of a chart: titles, legend, scales and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from judge.report.findings.chart_data import DrawnPlot
from judge.report.findings.drawing import Canvas, width_of
from judge.report.findings.scales import Scale, tick_label

_COLOURS = 8
MAX_SLICES = 24
_LEGEND = 120
_BESIDE = 6
"""Names in a legend above or below."""
_LINE = 16
END = 24
"""Room for half of the label at the end of a lying scale."""

DRAWN_KINDS = frozenset(
    {
        *("barChart", "lineChart", "areaChart", "pieChart", "doughnutChart"),
        *("scatterChart", "bubbleChart"),
    }
)
"""Kinds that are drawn, 3-D ones flat."""

ROUND = {"pieChart", "doughnutChart"}
POINTS = {"scatterChart", "bubbleChart"}


@dataclass(frozen=True, slots=True)
class Frame:
    """What is around the data of a chart.

    Attributes:
        title, x_title, y_title: titles; empty without.
        legend: ``r``, ``b``, ``l``, ``t`` or ``tr``; None without a legend.
        differing: which of ``title``, ``xtitle``, ``ytitle``, ``legend`` differ from the other
            workbook's chart.
        x_bounds, y_bounds: ends of the scales, if they are set.
    """

    title: str = ""
    x_title: str = ""
    y_title: str = ""
    legend: str | None = None
    differing: frozenset[str] = frozenset()
    x_bounds: tuple[float | None, float | None] = (None, None)
    y_bounds: tuple[float | None, float | None] = (None, None)


@dataclass(slots=True)
class Area:
    """The room that is left for the data."""

    left: float
    top: float
    right: float
    bottom: float


def marked(css: str, differs: bool) -> str:
    """The class of a shape, marked if what it shows differs."""
    return f"{css} bad" if differs else css


def colour(number: int) -> str:
    """The class of a series, or of a slice, by its place."""
    return f"s{number % _COLOURS}"


# -- legends --------------------------------------------------------------------------------------


def _entries(plots: Sequence[DrawnPlot]) -> list[tuple[str, bool]]:
    """Names in the legend, and whether they differ: series, or the slices of a pie."""
    if plots[0].kind in ROUND:
        first = plots[0].series[:1]
        return [(label, False) for series in first for label in series.labels[:MAX_SLICES]]
    return [(each.name, each.differs) for plot in plots for each in plot.series]


def draw_legend(canvas: Canvas, area: Area, plots: Sequence[DrawnPlot], frame: Frame) -> None:
    """Draws the names of the series, or of the slices of a pie, where the chart has them."""
    entries = _entries(plots)
    css = marked("cl", "legend" in frame.differing)
    if frame.legend in {"t", "b"}:
        y = area.top + 10 if frame.legend == "t" else area.bottom - 6
        listed = entries[:_BESIDE]
        most = (area.right - area.left) / max(1, len(listed))
        rooms = [min(most, 1.2 * width_of(name) + 30) for name, _ in listed]
        x = (area.left + area.right - sum(rooms)) / 2
        for number, ((name, differs), room) in enumerate(zip(listed, rooms, strict=True)):
            canvas.rect(colour(number), x, y - 8, 9, 9)
            canvas.text(marked(css, differs), x + 13, y, name, room=room - 14)
            x += room
        if frame.legend == "t":
            area.top += 20
        else:
            area.bottom -= 20
        return
    longest = max((width_of(name) for name, _ in entries), default=0.0)
    width = min(_LEGEND, 20 + longest)
    x = area.left if frame.legend == "l" else area.right - width
    most = int((area.bottom - area.top - 10) / _LINE)
    for number, (name, differs) in enumerate(entries[:most]):
        y = area.top + 14 + number * _LINE
        canvas.rect(colour(number), x, y - 8, 9, 9)
        canvas.text(marked(css, differs), x + 13, y, name, room=width - 14)
    if frame.legend == "l":
        area.left += width + 8
    else:
        area.right -= width + 8


# -- axes -----------------------------------------------------------------------------------------


def draw_axis_titles(canvas: Canvas, area: Area, frame: Frame, *, lying: bool) -> None:
    """Draws the titles of both axes; that of the upright one is written above it."""
    below, beside = ("ytitle", "xtitle") if lying else ("xtitle", "ytitle")
    texts = {"xtitle": frame.x_title, "ytitle": frame.y_title}
    if texts[beside]:
        css = marked("ca", beside in frame.differing)
        canvas.text(css, area.left, area.top + 10, texts[beside], room=area.right - area.left)
        area.top += 18
    if texts[below]:
        css = marked("ca mid", below in frame.differing)
        room = area.right - area.left
        canvas.text(css, area.left + room / 2, area.bottom - 3, texts[below], room=room)
        area.bottom -= 18


def draw_ticks(canvas: Canvas, area: Area, scale: Scale, *, lying: bool) -> None:
    """Draws rules and labels of a scale."""
    for tick in scale.ticks:
        at = scale.at(tick)
        if lying:
            canvas.line("rule", [(at, area.top), (at, area.bottom)])
            canvas.text("cv mid", at, area.bottom + 14, tick_label(tick))
        else:
            canvas.line("rule", [(area.left, at), (area.right, at)])
            canvas.text("cv end", area.left - 5, at + 4, tick_label(tick))


def draw_right_ticks(canvas: Canvas, area: Area, scale: Scale) -> None:
    """Draws the labels of a second scale."""
    for tick in scale.ticks:
        canvas.text("cv", area.right + 5, scale.at(tick) + 4, tick_label(tick))


def room_of(scale: Scale) -> float:
    """The room of the labels next to a scale; on a narrow screen, text is wider than usual."""
    return 10 + 1.2 * max((width_of(tick_label(tick)) for tick in scale.ticks), default=0.0)
