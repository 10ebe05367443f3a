"""Large answers stay usable; a report on 912 tasks stays small and opens immediately."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import expect

from judge.report.html import report_html
from tests.browser.conftest import Watched
from tests.browser.made_run import MadeCase, MadeTask, make_run, make_suite, workbook
from tests.conftest import Figures

pytestmark = [pytest.mark.browser, pytest.mark.slow]

ROWS = 20_000
WRONG_ROW = 15_000
TASKS = 912


def large_case() -> MadeCase:
    """20,000 answers, one of them wrong."""
    before = {f"A{row}": row for row in range(2, ROWS + 2)}
    gold = {**before, **{f"B{row}": row * 7 % 9973 for row in range(2, ROWS + 2)}}
    left = {**gold, f"B{WRONG_ROW}": -1}
    return MadeCase(workbook(before), workbook(gold), workbook(left))


def usual_case() -> MadeCase:
    """A table of 30 rows, every tenth answer wrong."""
    before = {f"{column}{row}": f"{column}-{row * 31}" for column in "ABCD" for row in range(1, 32)}
    gold = {**before, **{f"E{row}": row * 1.5 for row in range(2, 32)}}
    left = {**gold, **{f"E{row}": "?" for row in range(10, 32, 10)}}
    return MadeCase(workbook(before), workbook(gold), workbook(left))


@pytest.fixture(scope="module")
def full_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """912 tasks, every ninth of them with three cases, the last one with 20,000 rows."""
    root = tmp_path_factory.mktemp("full")
    usual = usual_case()
    right = replace(usual, output=usual.gold)
    tasks = [
        MadeTask(
            f"{number}-1",
            [right, usual, right] if number % 9 == 7 else [[right], [usual]][number % 2],
            position="'Data'!E2:E31",
            instruction=f"Task {number}: put one and a half times the row's number into column E.",
            solution="import openpyxl\n" + "value = 1\n" * 20,
        )
        for number in range(1, TASKS)
    ]
    tasks.append(MadeTask("large", [large_case()], position=f"'Data'!B2:B{ROWS + 1}"))
    make_suite(root / "suite", tasks)
    run = make_run(root / "results" / "full", root / "suite", tasks)
    path = root / "report.html"
    path.write_text(report_html(run), encoding="utf-8")
    return path


def test_912_tasks(watched: Watched, full_report: Path, figures: Figures) -> None:
    size = full_report.stat().st_size
    assert size < 6_000_000
    page = watched.page
    started = time.perf_counter()
    page.goto(full_report.as_uri())
    expect(page.locator("h1").first).to_be_visible()
    opened_s = time.perf_counter() - started
    started = time.perf_counter()
    page.get_by_role("link", name="Tasks", exact=True).click()
    expect(page.locator("#found")).to_have_text("912 of 912")
    listed_s = time.perf_counter() - started
    sizes = f"912 tasks: {size / 1e6:.1f} MB"
    figures(f"{sizes}, open in {opened_s:.2f} s, list in {listed_s:.2f} s")
    page.locator("[name=q]").fill("Task 907:")
    expect(page.locator("#found")).to_have_text("1 of 912")
    page.keyboard.press("Enter")
    expect(page.locator("#task h1")).to_have_text("Task 907-1")
    expect(page.locator(".pane[data-pane=output] .differs").first).to_be_visible()


def test_20000_rows(watched: Watched, full_report: Path) -> None:
    page = watched.page
    page.goto(f"{full_report.as_uri()}#/task/large")
    rows = page.locator(".pane[data-pane=output] .row")
    # The one difference is found and in sight from the start.
    expect(page.locator(".cellinfo")).to_contain_text(f"B{WRONG_ROW}")
    wrong = page.locator(".pane[data-pane=output] .differs")
    expect(wrong).to_be_in_viewport()
    scroll = page.locator(".pane[data-pane=gold] .scroll")
    for share, row in ((0, 1), (1, ROWS + 3), (0.5, ROWS // 2)):
        scroll.evaluate("(each, share) => { each.scrollTop = share * each.scrollHeight; }", share)
        # All three follow, and only what can be seen is drawn.
        expect(page.locator(f".pane[data-pane=input] .row[aria-rowindex='{row}']")).to_be_visible()
        assert rows.count() < 80
    page.keyboard.press("n")
    expect(wrong).to_be_in_viewport()
