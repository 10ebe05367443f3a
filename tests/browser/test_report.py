"""The HTML report in a real browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from judge.report.html import report_html
from judge.report.html.render import json_form
from judge.report.load import load_run
from judge.report.report import report_data
from judge.suspects.model import (
    Audit,
    Certainty,
    RunVerdict,
    SeenCell,
    SeenContent,
    Suspect,
    write_suspects,
)
from tests.browser.conftest import Axe, Watched
from tests.browser.numbers import check_numbers, loose_numbers

pytestmark = pytest.mark.browser

HEADINGS = {"Subsets of the paper\u2019s Table 3"}


def overflow(page: Page) -> int:
    width: int = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return width


def shown_ids(page: Page) -> list[str]:
    return [
        text.split()[0]
        for text in page.locator("#tasklist tr:visible td:first-child").all_inner_texts()
    ]


def expect_shown(page: Page, ids: Sequence[str]) -> None:
    """Waits until the list shows these tasks, in this order, and no others."""
    cells = page.locator("#tasklist tr:visible td:first-child")
    patterns = [re.compile(rf"^\s*{re.escape(task_id)}(\s|$)") for task_id in ids]
    expect(cells).to_have_text(patterns, use_inner_text=True)


def test_opens_from_disk_and_asks_for_nothing(watched: Watched, report_file: Path) -> None:
    watched.page.goto(report_file.as_uri())
    expect(watched.page.locator("h1").first).to_have_text("few")
    watched.page.goto(f"{report_file.as_uri()}#/task/10-2")
    expect(watched.page.locator(".grid")).to_be_visible()
    assert {url.partition("#")[0] for url in watched.requests} == {report_file.as_uri()}


def test_an_instruction_is_written_in_the_direction_of_its_language(
    watched: Watched, report_file: Path
) -> None:
    watched.page.goto(f"{report_file.as_uri()}#/task/10-2")
    starts_in_left_half = """(text) => {
        const shown = document.querySelector("p.instruction");
        shown.textContent = text;
        const range = document.createRange();
        range.setStart(shown.firstChild, 0);
        range.setEnd(shown.firstChild, 1);
        const [letter, all] = [range.getBoundingClientRect(), shown.getBoundingClientRect()];
        return letter.left + letter.right < all.left + all.right;
    }"""
    expect(watched.page.locator("p.instruction").first).to_be_visible()
    assert watched.page.evaluate(starts_in_left_half, "Put the total into B2.")
    assert not watched.page.evaluate(starts_in_left_half, "\u0636\u0639 B2")


def test_the_page_of_a_task_says_what_is_wrong_with_its_gold(
    watched: Watched, run_folder: Path, tmp_path: Path
) -> None:
    graded = shutil.copytree(run_folder, tmp_path / "graded")
    run = json.loads((graded / "run.json").read_text())
    grades = {"10-2": "ambiguous"}
    certified = {"name": "Suite", "digest": "0" * 64, "applied": False, "corrected": []}
    run["suite"]["certified"] = {**certified, "grades": grades}
    (graded / "run.json").write_text(json.dumps(run))
    file = graded / "report.html"
    file.write_text(report_html(graded), encoding="utf-8")
    watched.page.goto(f"{file.as_uri()}#/task/10-2")
    expect(watched.page.locator("#task .note")).to_contain_text("The gold is ambiguous: readers")
    other = next(task for task in shown_tasks(graded) if task != "10-2")
    watched.page.goto(f"{file.as_uri()}#/task/{other}")
    expect(watched.page.locator("#task h1")).to_have_text(f"Task {other}")
    expect(watched.page.get_by_text("The gold is")).to_have_count(0)


def shown_tasks(folder: Path) -> list[str]:
    return [task["task_id"] for task in json_form(report_data(folder))["tasks"]]


def test_every_number_of_the_summary_is_the_jsons(
    watched: Watched, report_file: Path, run_folder: Path
) -> None:
    watched.page.goto(report_file.as_uri())
    document = json_form(report_data(run_folder))
    assert check_numbers(watched.page, document) > 150
    # What else holds digits are names: of the run's parts, of rules and of the paper's table.
    labels = {group["label"] for each in document["breakdowns"] for group in each["groups"]}
    rules = " ".join(each["rule"] for each in document["breakdowns"])
    for text in loose_numbers(watched.page):
        known = text in labels or text in rules or text in {"95th percentile", *HEADINGS}
        assert known, text


def test_every_number_of_list_and_task_pages_is_the_jsons(
    watched: Watched, report_file: Path, run_folder: Path
) -> None:
    document = json_form(report_data(run_folder))
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/tasks")
    assert check_numbers(page, document) == len(document["tasks"])
    for task in document["tasks"]:
        for case in task["cases"]:
            page.goto(f"{report_file.as_uri()}#/task/{task['task_id']}?case={case['case']}")
            expect(page.locator("#task h1")).to_have_text(f"Task {task['task_id']}")
            expect(page.locator("#task [aria-selected=true]")).to_contain_text(
                f"Case {case['case']}"
            )
            page.locator("#task details").evaluate_all(
                "all => all.forEach((each) => each.open = true)"
            )
            assert check_numbers(page, document) >= 14


@pytest.mark.parametrize(
    ("preset", "ids"),
    [
        ("All", ["10-1", "10-2", "10-3", "10-4", "10-5", "10-6", "10-7", "10-8"]),
        ("Failed", ["10-2", "10-3", "10-4", "10-5", "10-6", "10-7"]),
        ("WA with number as text", ["10-3"]),
        ("NC", ["10-4"]),
    ],
)
def test_filters(watched: Watched, report_file: Path, preset: str, ids: list[str]) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/tasks")
    page.get_by_role("button", name=preset, exact=True).click()
    expect_shown(page, ids)
    # The address keeps the filter.
    page.reload()
    expect_shown(page, ids)


def test_official_and_standard_disagree(
    watched: Watched, report_file: Path, run_folder: Path
) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/tasks")
    page.get_by_role("button", name="Official and standard disagree").click()
    disagreeing = [
        each.task_id for each in report_data(run_folder).tasks if each.official_disagrees
    ]
    assert disagreeing
    expect_shown(page, disagreeing)


def test_words_and_verdicts_filter_as_they_are_typed(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(report_file.as_uri())
    page.keyboard.press("/")
    page.keyboard.type("RE")
    expect_shown(page, ["10-5"])
    page.locator("[name=q]").fill("double 10-6")
    expect_shown(page, ["10-6"])
    page.locator("[name=q]").fill("nowhere")
    expect(page.locator("#nothing")).to_be_visible()


def test_keys_go_through_the_failed_tasks(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-1")
    heading = page.locator("#task h1")
    expect(heading).to_have_text("Task 10-1")
    for wanted in ("10-2", "10-3", "10-4"):
        page.keyboard.press("j")
        expect(heading).to_have_text(f"Task {wanted}")
    page.keyboard.press("k")
    expect(heading).to_have_text("Task 10-3")
    page.keyboard.press("u")
    expect(page.locator("#tasks")).to_be_visible()


def test_grid_shows_three_workbooks_and_marks_what_differs(
    watched: Watched, report_file: Path
) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-2?case=2")
    for name, value in (("gold", "4"), ("output", "5")):
        cell = page.locator(f".pane[data-pane={name}] .differs")
        expect(cell).to_have_count(1)
        # A letter says the class to who cannot tell the colours apart.
        expect(cell).to_have_text(f"W{value}")
    expect(page.locator(".pane[data-pane=input] .differs")).to_have_count(0)
    expect(page.locator(".cellinfo")).to_contain_text("B3")
    expect(page.locator(".cellinfo")).to_contain_text("wrong value")


def test_keys_go_through_the_differences(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-4")
    where = page.locator(".cellinfo .where")
    expect(where).to_contain_text("B2")
    for key, address in (("n", "B3"), ("n", "B4"), ("n", "B2"), ("p", "B4")):
        page.keyboard.press(key)
        expect(where).to_contain_text(address)


def test_formula_against_value(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-4")
    expect(page.locator(".cellinfo")).to_contain_text("=A2*2")
    expect(page.locator(".cellinfo")).to_contain_text("not calculated")
    expect(page.locator(".pane[data-pane=gold] .cellinfo")).to_have_count(0)


def test_code_conversation_and_facts(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-6")
    expect(page.locator("pre.code .t-k").first).to_have_text("import")
    assert page.locator("pre.code").inner_text().rstrip() == "import openpyxl\nprint('done')"
    page.get_by_text("Conversation", exact=True).click()
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.locator(".turn h4").nth(1)).to_have_text("assistant, round 1")


def test_program_that_fell_over_shows_why(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-5")
    expect(page.locator(".cause")).to_contain_text("ValueError: no")
    expect(page.locator(".pane[data-pane=gold] .cell").first).to_be_visible()
    page.get_by_text("stderr", exact=True).click()
    expect(page.locator("pre.console")).to_contain_text("Traceback")


def test_grids_use_the_width_of_the_window(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.set_viewport_size({"width": 1920, "height": 900})
    page.goto(f"{report_file.as_uri()}#/task/10-2?case=2")
    expect(page.locator(".pane[data-pane=output] .differs")).to_be_visible()
    panes = page.locator(".panes").bounding_box()
    assert panes is not None
    assert panes["width"] > 1800
    # Text keeps a length that can be read.
    instruction = page.locator(".instruction").bounding_box()
    assert instruction is not None
    assert instruction["width"] < 900


def test_question_mark_lists_the_keys(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-2")
    expect(page.locator("#task h1")).to_have_text("Task 10-2")
    keys = page.locator("#keys")
    expect(keys).to_be_hidden()
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    listed = keys.locator("kbd").all_inner_texts()
    assert {"j", "k", "n", "p", "f", "/", "u", "?"} <= set(listed)
    # No other key does anything behind the list.
    page.keyboard.press("j")
    expect(page.locator("#task h1")).to_have_text("Task 10-2")
    page.keyboard.press("?")
    expect(keys).to_be_hidden()
    page.locator("#showkeys").click()
    expect(keys).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_the_cause_marks_the_characters_that_differ(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-7")
    cause = page.locator(".cause")
    # Spaces are as many on the page as in the value.
    expect(cause).to_have_text(re.compile("found 'two  spaces'"), use_inner_text=True)
    expect(cause.locator("mark")).to_have_text([re.compile("^ $")])
    marks = page.locator(".cellinfo mark")
    expect(marks).to_have_text([re.compile("^ $")])
    page.keyboard.press("n")
    expect(marks).to_have_text(["'", "\u2019"])


def test_letters_have_a_legend(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-2?case=2")
    legend = page.locator(".legend")
    expect(legend).to_contain_text("W wrong value")
    expect(legend).not_to_contain_text("missing")
    expect(legend).not_to_contain_text("formula")
    page.goto(f"{report_file.as_uri()}#/task/10-4")
    expect(page.locator(".legend")).to_contain_text("formula")


def test_notes_come_after_the_result(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-8")
    note = page.locator("#case ul.note")
    expect(note).to_contain_text("Data2")
    expect(page.locator("#case .grid")).to_be_visible()
    order = page.evaluate(
        """() => document.querySelector("#case .grid").compareDocumentPosition(
          document.querySelector("#case ul.note")) & Node.DOCUMENT_POSITION_FOLLOWING"""
    )
    assert order


def test_headings_sort_the_list(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/tasks")
    before = shown_ids(page)
    cells = page.locator("#tasklist tr:visible td:first-child")
    heading = page.get_by_role("button", name="soft, %")
    heading.click()
    expect(cells.last).to_have_text(re.compile(r"^\s*10-8(\s|$)"), use_inner_text=True)
    assert shown_ids(page)[-3:] == ["10-2", "10-1", "10-8"]
    heading.click()
    expect(cells.first).to_have_text(re.compile(r"^\s*10-1(\s|$)"), use_inner_text=True)
    assert shown_ids(page)[:3] == ["10-1", "10-8", "10-2"]
    # Failed tasks follow one another in the order of the list.
    page.locator("#tasklist a", has_text="10-2").click()
    expect(page.locator("#task h1")).to_have_text("Task 10-2")
    page.keyboard.press("j")
    expect(page.locator("#task h1")).to_have_text("Task 10-3")
    page.keyboard.press("u")
    heading.click()
    expect_shown(page, before)


def test_a_conversation_can_be_searched(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(f"{report_file.as_uri()}#/task/10-6")
    page.get_by_text("Conversation", exact=True).click()
    page.get_by_placeholder("Search the conversation").fill("OPENPYXL")
    expect(page.locator(".turn:visible")).to_have_count(1)
    expect(page.locator(".turn mark")).to_have_text(["openpyxl"])
    expect(page.locator(".search")).to_contain_text("1 in 1 of 2 messages")
    page.get_by_placeholder("Search the conversation").fill("")
    expect(page.locator(".turn:visible")).to_have_count(2)
    expect(page.locator(".turn mark")).to_have_count(0)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("route", ["", "#/tasks", "#/task/10-2", "#/task/10-6"])
def test_nothing_overflows(watched: Watched, report_file: Path, width: int, route: str) -> None:
    watched.page.set_viewport_size({"width": width, "height": 800})
    watched.page.goto(f"{report_file.as_uri()}{route}")
    view = "#task .instruction" if "/task/" in route else "main:visible h1"
    expect(watched.page.locator(view).first).to_be_visible()
    assert overflow(watched.page) <= 0


def test_small_screens_show_one_workbook_at_a_time(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{report_file.as_uri()}#/task/10-2?case=2")
    expect(page.locator(".pane:visible")).to_have_count(1)
    page.get_by_role("button", name="Gold", exact=True).click()
    expect(page.locator(".pane[data-pane=gold] .differs")).to_be_visible()
    expect(page.locator(".pane[data-pane=output]")).to_be_hidden()


def test_a_suspect_shows_its_cells_side_by_side(
    watched: Watched, run_folder: Path, tmp_path: Path
) -> None:
    suite = load_run(run_folder).suite
    assert suite is not None
    formula = "=SUM(" + "+".join(["$B$2:$B$230"] * 9) + ")"
    cell = SeenCell(
        *("Sheet1", "B3", True, SeenContent(), SeenContent(2, formula)),
        {"runs/few": SeenContent({"error": "#N/A"})},
    )
    suspect = Suspect(
        *("10-2", 1, "stale-gold", Certainty.LIKELY, "B3 is 2", "its formula gives 3"),
        seen=(cell,),
        runs=(RunVerdict("runs/few", "WA"),),
    )
    audit = Audit(suite.name, suite.format, suite.digest, 1, 1, (suspect,), (), ())
    write_suspects(tmp_path / "suspects.json", audit)
    report = tmp_path / "report.html"
    report.write_text(report_html(run_folder, suspects=tmp_path / "suspects.json"))
    page = watched.page
    page.goto(f"{report.as_uri()}#/task/10-2?case=1")
    page.get_by_text("Side by side: 1 cell").click()
    table = page.locator(".suspect table")
    expect(table.get_by_role("columnheader")).to_have_text(["cell", "input", "gold", "few (WA)"])
    expect(table.get_by_role("row").last).to_have_text(
        f"Sheet1!B3answerblank2{formula}#N/A", use_inner_text=False
    )
    axe = Axe(page)
    for width, is_dark in ((1280, False), (390, False), (390, True)):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme="dark" if is_dark else "light")
        expect(table).to_be_visible()
        assert overflow(page) <= 0
        assert axe.faults(".suspect") == []


def test_prints_and_follows_the_colour_scheme(watched: Watched, report_file: Path) -> None:
    page = watched.page
    page.goto(report_file.as_uri())
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.emulate_media(media="print", color_scheme="light")
    expect(page.locator("header.top")).to_be_hidden()
    assert len(page.pdf()) > 10_000


def test_the_policy_lets_no_other_script_in(watched: Watched, report_file: Path) -> None:
    """The browser refuses whatever an attacker would try who got markup into the page."""
    page = watched.page
    page.goto(report_file.as_uri())
    with page.expect_console_message():  # the browser complains of just that
        refused = page.evaluate(
            """() => new Promise((done) => {
              document.addEventListener("securitypolicyviolation",
                (event) => done(event.effectiveDirective));
              const script = document.createElement("script");
              script.append("window.taken = true");
              try { document.body.append(script); } catch { done("trusted types"); }
              setTimeout(() => done(window.taken ? "ran" : "did not run"), 20000);
            })"""
        )
    assert refused in {
        "script-src-elem",
        "script-src",
        "require-trusted-types-for",
        "trusted types",
    }
    watched.problems.clear()
