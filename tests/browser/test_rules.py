"""Pages of rules about whole workbooks: charts, pivot tables, colour swatches, hostile texts."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from judge.report.html import report_html
from tests.browser.conftest import Watched
from tests.unit.report.rule_run import charts, few_rules, make_rule_run, pivot_table, rule

pytestmark = pytest.mark.browser

SCRIPT = "<script>window.taken = true</script>"
IMAGE = "<img src=x onerror='window.taken = true'>"
HIDDEN = "safe\u202egpj.exe"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with one task for each kind of part, and one task whose texts attempt attacks."""
    root = tmp_path_factory.mktemp("rules")
    few = few_rules()
    chosen = {name: few[name] for name in ("charts", "looks", "values", "filter")}
    asked = rule("pivot_table", pivot_props=["row_fields", "data_fields"])
    chosen["pivots"] = (asked, pivot_table(function="max", field=f"Town{IMAGE}"), pivot_table())
    chosen["hostile"] = (
        rule("chart", chart_props=["title", IMAGE]),
        charts(title=f"{SCRIPT}{HIDDEN}"),
        charts(title="T"),
    )
    run = make_rule_run(root, chosen)
    path = root / "report.html"
    path.write_text(report_html(run), encoding="utf-8")
    return path


def opened(watched: Watched, report: Path, task: str) -> Page:
    watched.page.goto(f"{report.as_uri()}#/task/{task}")
    # The page of the task before is still shown for a moment, and has rules as well.
    expect(watched.page.locator("#task h1")).to_have_text(f"Task {task}")
    expect(watched.page.locator(".rules")).to_be_visible()
    return watched.page


def test_rules_in_words_with_charts_side_by_side(watched: Watched, report: Path) -> None:
    page = opened(watched, report, "charts")
    rules = page.locator(".rules > ol > li")
    expect(rules).to_have_count(2)
    expect(rules.nth(0)).to_contain_text("holds")
    expect(rules.nth(1)).to_contain_text("The first sheet has the charts of the gold's first sheet")
    expect(page.locator(".published")).to_contain_text("published evaluator raises")
    first = page.locator(".pairing").first
    gold = first.get_by_role("img", name="column chart, stacked, Sales; series: sales, costs")
    output = first.get_by_role("img", name="bar chart, stacked, Sale; series: sales, costs")
    for drawn in (gold, output):
        expect(drawn).to_be_visible()
        assert drawn.locator("rect").count() == 12
    expect(output.locator("text.bad")).to_have_text("Sale")
    row = first.get_by_role("row").filter(has=page.get_by_role("rowheader", name="direction"))
    expect(row.first.locator("mark")).to_have_text(["columns", "bars"])
    # What agrees is a key press away.
    summary = first.locator("summary")
    summary.focus()
    page.keyboard.press("Enter")
    expect(first.get_by_role("rowheader", name="series 1: values")).to_be_visible()
    # Side by side where there is room, one below the other where there is not.
    for width, beside in ((1280, True), (390, False)):
        page.set_viewport_size({"width": width, "height": 900})
        boxes = [each.bounding_box() for each in (gold, output)]
        assert boxes[0] is not None
        assert boxes[1] is not None
        assert (boxes[0]["y"] == boxes[1]["y"]) is beside
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_swatches_fields_tables_and_grids(watched: Watched, report: Path) -> None:
    page = opened(watched, report, "looks")
    swatches = page.locator(".swatch")
    assert swatches.evaluate_all(
        "all => all.map((each) => [getComputedStyle(each).backgroundColor, each.textContent])"
    ) == [["rgb(192, 0, 0)", "Total"], ["rgb(255, 255, 255)", "Total"]]
    expect(page.locator(".lookwords").first).to_have_text("fill #C00000, ink #FFFFFF, bold")
    page = opened(watched, report, "pivots")
    sides = page.locator(".side")
    expect(sides.nth(0).locator(".area li")).to_have_text(
        ["Values", "Town differs", "average of Sum differs"], use_inner_text=True
    )
    expect(sides.nth(1).locator("mark").nth(1)).to_have_text("max of Sum")
    expect(sides.nth(1).locator("mark").nth(0)).to_have_text(f"Town{IMAGE}")
    page = opened(watched, report, "filter")
    expect(page.get_by_role("row", name="column B none top10; val 1 differs")).to_be_visible()
    page = opened(watched, report, "values")
    grid = page.locator(".rules .grid")
    expect(grid).to_be_visible()
    expect(page.locator(".cellinfo strong")).to_have_text("B2")
    expect(grid.locator(".pane[data-pane=output] .differs")).to_have_count(1)


def test_hostile_texts_stay_text(watched: Watched, report: Path) -> None:
    for task in ("hostile", "pivots"):
        page = opened(watched, report, task)
        page.locator("#task details").evaluate_all("all => all.forEach((each) => each.open = true)")
        assert page.evaluate("window.taken") is None
        assert page.locator("main img, main script, iframe, object, foreignObject").count() == 0
    page = opened(watched, report, "hostile")
    title = page.locator(".pairing").first.locator("text.ct").nth(1)
    expect(title).to_have_text(f"{SCRIPT}safeU+202Egpj.exe")
    expect(page.locator(".rule-words").nth(1)).to_contain_text(IMAGE)
    assert {url.partition("#")[0] for url in watched.requests} == {report.as_uri()}
