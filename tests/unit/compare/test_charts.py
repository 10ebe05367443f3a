"""How much of a gold's charts an output has."""

from __future__ import annotations

import pytest

from judge.compare.charts import compare_charts
from judge.workbook.reader import open_workbook
from tests.unit.compare.rules.judged import CORPUS
from tests.unit.compare.rules.made import charted


@pytest.mark.parametrize(
    ("gold", "output", "share", "lacking"),
    [
        ("ch_line", "ch_line", 1.0, []),
        ("ch_line", "ch_line_G9", 1.0, []),  # elsewhere on the sheet
        ("ch_line", "ch_line_t2", 0.75, ["title"]),
        ("ch_line", "ch_line_noleg", 0.75, ["legend"]),
        ("ch_line", "ch_bar", 0.75, ["kind"]),
        ("ch_line", "ch_line_C", 0.75, ["series"]),
        ("ch_xt", "ch_line", 0.8, ["titles of axes"]),
        ("ch_line", "base", 0.0, ["a chart"]),
        ("ch_line", "ch_two", 0.5, []),  # one too many
    ],
)
def test_the_share_of_a_chart(gold: str, output: str, share: float, lacking: list[str]) -> None:
    found = compare_charts(*(open_workbook(CORPUS / f"{name}.xlsx") for name in (gold, output)))
    assert found["share"] == share
    (fact,) = found["charts"]
    assert fact["lacking"] == lacking


def test_two_golds_and_one_chart() -> None:
    gold = open_workbook(CORPUS / "ch_two.xlsx")
    found = compare_charts(gold, open_workbook(CORPUS / "ch_line.xlsx"))
    assert (found["gold"], found["output"], found["share"]) == (2, 1, 0.5)
    assert sorted(fact["share"] for fact in found["charts"]) == [0.0, 1.0]


def test_no_charts_on_either_side() -> None:
    base = open_workbook(CORPUS / "base.xlsx")
    assert compare_charts(base, base)["share"] == 1.0
    one = open_workbook(charted("barChart S!$A$1"))
    assert compare_charts(base, one)["share"] == 0.0


def test_values_count_wherever_they_are() -> None:
    # the cell A1 holds 1, and B1 of the other workbook does not exist: the kept values differ
    one = open_workbook(charted("barChart S!$A$1"))
    other = open_workbook(charted("barChart S!$A$1:$A$1"))
    assert compare_charts(one, other)["share"] == 1.0
    assert compare_charts(one, open_workbook(charted("barChart S!$B$1")))["share"] == 0.5
