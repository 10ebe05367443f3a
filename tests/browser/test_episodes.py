"""Desktop episodes in a real browser: turn by turn, with mouse and keyboard events."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from judge.desktop.contract import Action, ActionOutcome, InputEvent
from judge.report.build import build_report_data
from judge.report.html import render
from judge.report.html.render import json_form, render_report
from judge.report.load import load_run
from judge.report.report import report_data
from judge.report.shapes import inspect_files
from tests.browser.conftest import Watched
from tests.browser.numbers import check_numbers
from tests.episode_run import (
    CLICKED,
    DONE,
    FAILED,
    MadeEpisode,
    MadeTurn,
    click,
    desktop_suite,
    make_episodes,
)

pytestmark = pytest.mark.browser

TAKE = "<img src=x onerror='window.taken = true'>"
DRAGGED = (
    Action(code=f"# {TAKE}\npyautogui.dragTo(900, 500)"),
    ActionOutcome(
        error=TAKE,
        printed=TAKE,
        events=(*click(90, 50, to=(900, 500)), InputEvent("type", 9, 9, TAKE)),
    ),
)
OUTLINE = (
    "tag\tname\ttext\tposition (top-left x & y)\tsize (w & h)\n"
    f"push-button\t{TAKE}\t\t(40, 20)\t(300, 60)\nmenu\tFile\t\t(0, 0)\t(50, 20)\n"
)
HOSTILE = MadeEpisode(
    "b",
    "WA",
    (
        MadeTurn((CLICKED, CLICKED)),
        MadeTurn((FAILED,)),
        MadeTurn((DRAGGED, CLICKED), reply=TAKE, problem=TAKE, table=OUTLINE, windows=(TAKE,)),
        MadeTurn((DONE,)),
    ),
    ended=TAKE,
    setting=f"desktop/{TAKE}/pyautogui",
    model=TAKE,
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("episodes")
    suite = desktop_suite(root / "suite", {"a": 4, "b": 9, "c": 9})
    late = MadeEpisode("c", "WA", (), ended="time")
    return make_episodes(root / "results" / "mine", suite, [MadeEpisode("a"), HOSTILE, late])


@pytest.fixture(scope="module")
def report_file(run: Path) -> Path:
    path = run / "report.html"
    path.write_text(render.report_html(run), encoding="utf-8")
    return path


def opened(watched: Watched, report_file: Path, route: str) -> Page:
    watched.page.goto(f"{report_file.as_uri()}{route}")
    return watched.page


def test_an_episode_is_watched_turn_by_turn(watched: Watched, report_file: Path) -> None:
    page = opened(watched, report_file, "#/task/a")
    count, shot = page.locator(".epcount"), page.locator(".shot img")
    expect(count).to_contain_text("Turn 1 of 2")
    expect(page.locator(".eppanel pre.code .t-k")).to_have_text("import ")
    expect(page.locator(".eppanel .epoutcome")).to_contain_text("performed")
    expect(shot).to_have_js_property("complete", value=True)
    first = shot.get_attribute("src")
    # The mark is where the click was, whatever size the picture has.
    ring = page.locator(".epmarks .ring")
    assert (ring.get_attribute("cx"), ring.get_attribute("cy")) == ("480", "270")
    box, spot = shot.bounding_box(), ring.bounding_box()
    assert box is not None
    assert spot is not None
    assert abs(spot["x"] + spot["width"] / 2 - (box["x"] + box["width"] / 2)) < 2
    # With every pixel shown too.
    page.keyboard.press("z")
    expect(page.locator(".shot.full")).to_have_count(1)
    box, spot = shot.bounding_box(), ring.bounding_box()
    assert box is not None
    assert spot is not None
    assert box["width"] == 960
    assert abs(spot["x"] + spot["width"] / 2 - box["x"] - 480) < 2
    assert abs(spot["y"] + spot["height"] / 2 - box["y"] - 270) < 2
    page.keyboard.press("z")
    page.keyboard.press("m")
    expect(ring).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(count).to_contain_text("Turn 2 of 2")
    assert shot.get_attribute("src") != first
    expect(page.locator(".epend")).to_contain_text("said to be done")
    # The address names the turn.
    page.reload()
    expect(count).to_contain_text("Turn 2 of 2")
    page.keyboard.press("ArrowRight")
    expect(count).to_contain_text("Turn 2 of 2")
    page.keyboard.press("ArrowLeft")
    expect(count).to_contain_text("Turn 1 of 2")
    page.locator(".tick").nth(1).click()
    expect(page.locator(".tick").nth(1)).to_have_attribute("aria-current", "")


def test_marks_in_one_place_share_a_label(watched: Watched, report_file: Path) -> None:
    page = opened(watched, report_file, "#/task/b?case=1&turn=1")
    expect(page.locator(".epmarks text")).to_have_text("1, 2")
    expect(page.locator(".epdone li")).to_have_count(2)


def test_an_episode_without_turns_says_how_it_ended(watched: Watched, report_file: Path) -> None:
    page = opened(watched, report_file, "#/task/c")
    expect(page.locator(".epend")).to_have_text("No turn was taken. End: time limit")
    expect(page.locator("#task summary", has_text="Code")).to_have_count(0)


def test_the_tree_is_searched(watched: Watched, report_file: Path) -> None:
    page = opened(watched, report_file, "#/task/b?case=1&turn=3")
    page.get_by_text("Accessibility tree").click()
    rows = page.locator(".eptree tbody tr")
    expect(rows).to_have_count(2)
    page.locator(".eptree input").fill("file")
    expect(rows).to_have_count(1)
    page.keyboard.press("ArrowLeft")  # moves in the field, not the episode
    expect(page.locator(".epcount")).to_contain_text("Turn 3 of 4")
    rows.first.hover()
    expect(page.locator(".epmarks .pointer")).to_have_attribute("width", "50")


def test_nothing_of_a_stranger_is_more_than_text(watched: Watched, report_file: Path) -> None:
    page = opened(watched, report_file, "#/")
    expect(page.locator(".settings")).to_contain_text(TAKE)
    page.get_by_role("link", name="Watch an episode").click()  # the failed one
    for number in range(1, 5):
        expect(page.locator(".epcount")).to_contain_text(f"Turn {number} of 4")
        page.locator("#task details").evaluate_all("all => all.forEach((each) => each.open = true)")
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".eppanel")).to_contain_text(TAKE)
    expect(page.locator(".epdone li")).to_have_count(3)
    expect(page.locator(".epdone kbd")).to_have_text(TAKE)
    expect(page.locator(".epwhere")).to_have_text(TAKE)
    expect(page.locator(".eptree tbody")).to_contain_text(TAKE)
    assert page.locator("img").count() == 1
    assert page.evaluate("window.taken") is None
    assert {url.partition("#")[0] for url in watched.requests} <= {report_file.as_uri()} | {
        url for url in watched.requests if url.startswith("data:image/png;base64,")
    }


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_fits_every_screen(watched: Watched, report_file: Path, width: int, scheme: str) -> None:
    page = watched.page
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for route in ("#/", "#/task/b?case=1&turn=3"):
        opened(watched, report_file, route)
        expect(page.locator(".eppanel" if "/task/" in route else ".settings")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    shot, panel = page.locator(".shot").bounding_box(), page.locator(".eppanel").bounding_box()
    assert shot is not None
    assert panel is not None
    assert (panel["y"] > shot["y"] + shot["height"]) == (width == 390)


def test_numbers_are_the_jsons(watched: Watched, report_file: Path, run: Path) -> None:
    page = opened(watched, report_file, "#/")
    document = json_form(report_data(run))
    assert check_numbers(page, document) > 100
    assert page.locator(".settings [data-at]").count() >= 10


def test_screenshots_that_do_not_fit_are_named(
    watched: Watched, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(render, "PICTURES_BYTES", 0)
    loaded = load_run(run)
    path = tmp_path / "small.html"
    data = build_report_data(loaded, inspect_files(loaded))
    path.write_text(render_report(data, loaded), encoding="utf-8")
    page = opened(watched, path, "#/task/a")
    expect(page.locator(".episode figure .note")).to_contain_text("judge view shows it")
    expect(page.locator(".shot")).to_be_hidden()
    expect(page.locator(".eppanel")).to_contain_text("I click on the button.")


def test_without_a_screenshot_the_elements_are_drawn(watched: Watched, tmp_path: Path) -> None:
    suite = desktop_suite(tmp_path / "suite", {"a": 4})
    run = make_episodes(
        tmp_path / "run", suite, [MadeEpisode("a", turns=[MadeTurn(table=OUTLINE)])]
    )
    for each in (run / "episodes").iterdir():
        text = each.read_text()
        start = text.index('"screenshot":"') + len('"screenshot":')
        each.write_text(text[:start] + "null" + text[start + 66 :])
    path = tmp_path / "report.html"
    path.write_text(render.report_html(run), encoding="utf-8")
    page = opened(watched, path, "#/task/a")
    expect(page.locator(".epmarks .box")).to_have_count(2)
    expect(page.locator(".epmarks .words").last).to_have_text("File")
    expect(page.locator(".epmarks .ring")).to_have_count(1)
