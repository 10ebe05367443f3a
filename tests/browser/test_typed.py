"""Pages of questions with pictures, tables and named values, and the table from a suite's paper."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect

from judge.api import ScoreOptions, score
from judge.report.html import report_html
from tests.browser.conftest import Watched
from tests.conftest import REPOSITORY

pytestmark = pytest.mark.browser

SAMPLE = REPOSITORY / "dataset" / "sample-typed"
MADE = SAMPLE / "files" / "squares" / "squares.png"
MARKUP = "<img src=x onerror='window.taken = true'>"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample, with a picture that cannot be decoded and a conversation that shows pictures."""
    root = tmp_path_factory.mktemp("typed")
    suite, run = root / "suite", root / "run"
    shutil.copytree(SAMPLE, suite)
    broken = suite / "files" / "cards" / "cards.png"
    broken.write_bytes(broken.read_bytes()[:33] + b"not a chunk of a picture")
    (suite / "files" / "trips" / "trips.csv").write_text(f"river,km\n{MARKUP},31\n")
    data = MADE.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    (run / "pictures").mkdir(parents=True)
    (run / "pictures" / f"{digest}.png").write_bytes(data)
    shown = {"type": "picture", "sha256": digest, "media_type": "image/png", "name": MARKUP}
    unknown = {"type": "picture", "sha256": "0" * 64, "media_type": "image/png", "name": "gone.png"}
    turn = {"role": "user", "content": [{"type": "text", "text": MARKUP}, shown, unknown]}
    answers = root / "answers.jsonl"
    records = [json.loads(line) for line in (SAMPLE / "answers.jsonl").read_text().splitlines()]
    lines = [{**each, "conversation": [turn]} if each["id"] == "bars" else each for each in records]
    answers.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    score(answers, ScoreOptions(dataset=str(suite), out=run))
    path = root / "report.html"
    path.write_text(report_html(run), encoding="utf-8")
    return path


def test_pages_of_questions(watched: Watched, report: Path) -> None:
    page = watched.page
    page.goto(report.as_uri())
    table = page.locator("table.ofpaper")
    expect(table.locator("thead tr").nth(1).locator("th")).to_have_count(9)
    expect(table.locator("tbody tr").nth(1)).to_contain_text("tasks of the suite")
    assert table.locator("tbody tr").nth(1).locator("td").all_inner_texts() == [
        "6", "3", "3", "4", "2", "1", "3", "2", "1"
    ]  # fmt: skip

    page.goto(f"{report.as_uri()}#/task/bars~3")
    values = page.locator("table.values tbody tr")
    expect(values).to_have_count(2)
    expect(values.nth(0)).to_contain_text('"Market"')
    expect(values.nth(0)).to_contain_text('"Station"')
    expect(values.nth(0)).to_contain_text("wrong value")
    expect(values.nth(1)).to_contain_text("int")
    expect(page.locator(".inputs .rows tr")).to_have_count(5)
    picture = page.locator(".inputs img")
    expect(picture).to_have_attribute("alt", "bars.png")
    page.wait_for_function("document.querySelector('.inputs img').naturalWidth === 240")
    page.get_by_text("Conversation", exact=True).click()
    expect(page.locator(".turn img")).to_have_attribute("alt", MARKUP)
    expect(page.locator(".turn .note")).to_contain_text("no longer available")
    expect(page.locator(".turn pre")).to_have_text(MARKUP)
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width

    page.goto(f"{report.as_uri()}#/task/cards")
    expect(page.locator(".inputs .note")).to_have_text("the picture cannot be decoded")
    page.goto(f"{report.as_uri()}#/task/trips")
    expect(page.locator(".inputs .rows")).to_contain_text(MARKUP)
    assert page.evaluate("window.taken") is None
    assert {url.partition("#")[0] for url in watched.requests if not url.startswith("data:")} == {
        report.as_uri()
    }
