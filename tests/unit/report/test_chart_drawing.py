"""Charts as shapes: scales, stacks, gaps, two scales, and pies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from judge.report.html.chart_data import DrawnPlot, DrawnSeries, drawable, scale_of, tick_label
from judge.report.html.chart_drawing import DRAWN_KINDS, HEIGHT, WIDTH, Frame, draw_chart

LABELS = ("a", "b", "c")


def series(*values: float | None, name: str = "one") -> DrawnSeries:
    return DrawnSeries(name, LABELS, values, points=len(values))


def plot(kind: str, *drawn: DrawnSeries, grouping: str | None = None, **more: Any) -> DrawnPlot:
    return DrawnPlot(kind, more.pop("direction", "col"), grouping, drawn, **more)


def shapes(plots: list[DrawnPlot], frame: Frame | None = None) -> list[list[Any]]:
    found: list[list[Any]] = draw_chart(plots, frame or Frame()).to_json("?")["shapes"]
    return found


def of(found: list[list[Any]], kind: str, css: str) -> list[list[Any]]:
    return [each[2:] for each in found if each[0] == kind and each[1] == css]


@pytest.mark.parametrize(
    ("values", "low", "high", "step"),
    [
        ([3, 97], 0, 100, 20),
        ([-0.4, 0.2], -0.4, 0.2, 0.2),
        ([5, 5], 0, 5, 1),
        ([0, 0], 0, 1, 0.2),
        ([], 0, 1, 0.2),
        ([1e150, -1e150], -1e150, 1e150, 5e149),
        ([1e-9], 0, 1e-9, 2e-10),
    ],
)
def test_scales_hold_their_values(
    values: list[float], low: float, high: float, step: float
) -> None:
    scale = scale_of(values, 0, 100)
    assert [scale.low, scale.high] == pytest.approx([low, high])
    assert scale.ticks[1] - scale.ticks[0] == pytest.approx(step)
    assert len(scale.ticks) <= 12
    assert (scale.at(scale.low), scale.at(scale.high)) == (0, 100)


def test_ends_that_a_file_sets_count_if_they_make_sense() -> None:
    assert scale_of([5], 0, 1, bounds=(2.0, 8.0)).high == 8
    assert scale_of([5], 0, 1, bounds=(9.0, 2.0)).high == 5
    assert scale_of([5], 0, 1, bounds=(None, 1e308)).high == 5
    assert [drawable(each) for each in (True, "1", 10**400, float("nan"), 2)] == [None] * 4 + [2.0]


@pytest.mark.parametrize(
    ("value", "label"),
    [(0, "0"), (1234.5, "1,234"), (0.25, "0.25"), (2.5e6, "2.5M"), (1e20, "1e+20"), (-5, "-5")],
)
def test_labels_are_short(value: float, label: str) -> None:
    assert tick_label(value) == label


def test_bars_of_two_series_are_next_to_each_other() -> None:
    found = shapes([plot("barChart", series(1, 2, 3), series(3, 2, 1), grouping="clustered")])
    first, second = of(found, "r", "s0"), of(found, "r", "s1")
    assert [each[3] for each in first] == pytest.approx([each[3] for each in reversed(second)])
    assert all(one[0] + one[2] <= other[0] + 0.2 for one, other in zip(first, second, strict=True))
    assert first[2][3] == pytest.approx(3 * first[0][3], rel=0.01)


@pytest.mark.parametrize(("grouping", "top"), [("stacked", 4), ("percentStacked", 100)])
def test_stacked_bars_end_at_their_sum(grouping: str, top: float) -> None:
    found = shapes([plot("barChart", series(1, 2, 0), series(3, 2, 4), grouping=grouping)])
    heights = [
        sum(each[place][3] for each in (of(found, "r", "s0"), of(found, "r", "s1")))
        for place in range(2)
    ]
    assert heights[0] == pytest.approx(heights[1], abs=0.3)
    labels = [each[2] for each in of(found, "t", "cv end")]
    assert labels[-1] == str(top)


def test_lying_bars_begin_below() -> None:
    found = shapes([plot("barChart", series(1, 2, 3), direction="bar")])
    bars = of(found, "r", "s0")
    assert bars[0][1] > bars[1][1] > bars[2][1]
    assert bars[2][2] == pytest.approx(3 * bars[0][2], rel=0.01)


def test_a_line_has_a_gap_where_there_is_no_value() -> None:
    found = shapes([plot("lineChart", series(1, None, 3, 4))])
    assert [each[0].count("L") for each in of(found, "p", "line s0")] == [0, 1]


def test_a_second_scale_has_labels_of_its_own() -> None:
    bars = plot("barChart", series(1, 2, 3), axes=("1", "2"))
    line = plot("lineChart", series(100, 250, 300, name="two"), axes=("3", "4"))
    found = shapes([bars, line])
    assert [each[2] for each in of(found, "t", "cv")][-1] == "300"
    assert [each[2] for each in of(found, "t", "cv end")][-1] == "3"
    # The line is in front of the bars, in a colour of its own.
    assert found.index(next(each for each in found if each[1] == "line s1")) > max(
        place for place, each in enumerate(found) if each[1] == "s0"
    )


def test_a_pie_has_a_slice_for_each_value_and_names_them() -> None:
    found = shapes([plot("pieChart", series(1, 1, 2))], Frame(legend="r"))
    assert [len(of(found, "p", f"slice s{place}")) for place in range(4)] == [1, 1, 1, 0]
    assert [each[2] for each in of(found, "t", "cl")] == ["a", "b", "c"]


@pytest.mark.parametrize("kind", sorted(DRAWN_KINDS))
@pytest.mark.parametrize("legend", ["r", "l", "t", "b", "tr", "nowhere", None])
def test_every_kind_stays_within_its_drawing(kind: str, legend: str | None) -> None:
    many = DrawnSeries("n" * 99, ("l" * 99,) * 60, (1e150, -1.0, None, 0.0) * 15, points=60)
    for drawn in ((many,) * 12, (series(),), (series(None),), ()):
        frame = Frame("t" * 200, "x" * 200, "y" * 200, legend)
        found = draw_chart([plot(kind, *drawn)], frame).to_json("\u202e")
        json.dumps(found, allow_nan=False)
        assert found["label"] == "U+202E"
        for tag, css, *rest in found["shapes"]:
            if tag in {"r", "c"}:
                assert -20 <= rest[0] <= WIDTH, (css, rest)
                assert -20 <= rest[1] <= HEIGHT + 20, (css, rest)
