"""What differs between an input and its gold and no type of rule says. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from judge.workbook.facts.charts import Chart
from judge.workbook.facts.sheets import SheetFacts

_DRAWN = {"colorScale", "dataBar", "iconSet"}
_USUAL_GROUPINGS = {None, "clustered", "standard"}


def unsaid_of(before: SheetFacts, gold: SheetFacts) -> Iterator[str]:
    """What of a sheet differs beyond all rules, a line each.

    Args:
        before: the sheet of the input, or a blank one.
        gold: the sheet of the gold.
    """
    sheet = f"sheet {gold.name!r}"
    for what, first, second in (
        ("its state", before.state, gold.state),
        ("the colour of its tab", before.tab_colour, gold.tab_colour),
        ("whether grid lines show", before.view.gridlines, gold.view.gridlines),
        ("whether headings show", before.view.headings, gold.view.headings),
        ("its tables", before.tables, gold.tables),
        ("conditional formats that are drawn", _drawn(before), _drawn(gold)),
    ):
        if first != second:
            yield f"{sheet}: {what}"
    known = [_beyond(each) for each in before.charts]
    for chart in gold.charts:
        details = _beyond(chart)
        if details and details not in known:
            yield f"{sheet}: {', '.join(details)} of a chart"


def _drawn(facts: SheetFacts) -> set[object]:
    return {(each.places, each.kind) for each in facts.formats if each.kind in _DRAWN}


def _beyond(chart: Chart) -> tuple[str, ...]:
    """Details of a chart that rules do not compare."""
    found = []
    for plot in chart.plots:
        if plot.grouping not in _USUAL_GROUPINGS:
            found.append(f"grouping {plot.grouping}")
        if any(each.trendlines for each in plot.series):
            found.append("trend lines")
        labels = (plot.labels, *(each.labels for each in plot.series))
        if any(label is not None and label.shows for label in labels):
            found.append("data labels")
    if any(axis.minimum is not None or axis.maximum is not None for axis in chart.axes):
        found.append("limits of an axis")
    return tuple(dict.fromkeys(found))
