"""Chart types by Excel's names, and charts' axes and titles."""

from __future__ import annotations

import pytest

from judge.compare.boards.cells import format_class
from judge.compare.boards.charts import chart_type, same_values
from judge.compare.boards.conditions import colour_index, same_group
from judge.workbook.facts.charts import Plot, Series


def plot(kind: str, *series: Series, **fields: object) -> Plot:
    given = {"direction": None, "grouping": None, "style": None, **fields}
    return Plot(kind, series=series or (SERIES,), **given)  # type: ignore[arg-type]


SERIES = Series(None, None, None)
MARKED = Series(None, None, None, marker="circle")
PLAIN = Series(None, None, None, marker="none")
POINTS = Series(None, None, None, marker="circle", line=False)
SMOOTH = Series(None, None, None, marker="none", smooth=True)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (plot("barChart", direction="col", grouping="clustered"), "column, clustered"),
        (plot("barChart", direction="bar"), "bar, clustered"),
        (plot("barChart", direction="bar", grouping="percentStacked"), "bar, 100 % stacked"),
        (plot("bar3DChart", direction="col", grouping="standard"), "column, 3-D"),
        (plot("lineChart", PLAIN, grouping="standard", markers=True), "line"),
        (plot("lineChart", markers=True), "line, with markers"),
        (plot("lineChart", MARKED, grouping="stacked"), "line, stacked, with markers"),
        (plot("scatterChart", POINTS, style="lineMarker"), "scatter, markers"),
        (plot("scatterChart", MARKED, style="lineMarker"), "scatter, lines and markers"),
        (plot("scatterChart", PLAIN, style="lineMarker"), "scatter, lines"),
        (plot("scatterChart", SMOOTH, style="lineMarker"), "scatter, smooth lines"),
        (plot("scatterChart", style="smoothMarker"), "scatter, smooth lines and markers"),
        (plot("pieChart"), "pie"),
        (plot("pie3DChart"), "pie, 3-D"),
        (plot("pieChart", Series(None, None, None, exploded=True)), "pie, exploded"),
        (plot("doughnutChart"), "doughnut"),
        (plot("areaChart", grouping="stacked"), "area, stacked"),
        (plot("radarChart", MARKED, style="marker"), "radar, with markers"),
        (plot("radarChart", PLAIN, style="filled"), "radar, filled"),
        (plot("bubbleChart"), "bubble"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_type_in_words(given: Plot, name: str) -> None:
    assert chart_type(given) == name


def test_values_of_series_agree_within_the_published_tolerance() -> None:
    assert same_values((1.0, 2.0), (1.000001, 2.0))
    assert not same_values((1.0, 2.0), (1.0001, 2.0))
    assert not same_values((1.0, 2.0), (1.0, 2.0, 3.0))
    assert same_values(("a", None), ("a", None))
    assert not same_values(("a", 1.0), ("b", 1.0))


def test_colours_by_name() -> None:
    assert colour_index("FF0000") == 3
    assert same_group("FF0000", "F00000")
    assert not same_group("FF0000", "00FF00")
    # A colour without a name does not agree with itself, as published.
    assert not same_group("C0C0C0", "C0C0C0")


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("General", "general"),
        ('"$"#,##0.00', "currency"),
        ("0.00%", "percentage"),
        ("m/d/yy", "date"),
        ("d-mmm", "time"),
        ("h:mm AM/PM", "time"),
        ("@", "text"),
        ("#,##0", "number"),
        ("0.00", "number"),
        ("0.000", "0.000"),
    ],
)
def test_classes_of_number_formats(code: str, name: str) -> None:
    assert format_class(code) == name
