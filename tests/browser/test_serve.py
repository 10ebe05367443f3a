"""The server's pages in a real browser: from signing in and submitting to the board."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watched
from tests.forked_command import ForkedCommand

pytestmark = [pytest.mark.browser, pytest.mark.bubblewrap, pytest.mark.slow]

SAMPLE = Path(__file__).parents[2] / "dataset" / "sample-typed"
JUDGE = (sys.executable, "-u", "-c", "from judge.cli.main import main; main()")
START_S = 120


@dataclass
class Served:
    """A running server with a suite of typed answers, a phase and a board.

    Attributes:
        address: of it.
        data: its data folder.
        command: runs those of the administrator.
    """

    address: str
    data: Path
    command: ForkedCommand

    def admin(self, *words: str) -> str:
        """Returns what an administrator's command prints."""
        done = self.command.run(["serve", "admin", *words, "--data", str(self.data)])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def sign_in(self, page: Page) -> None:
        """Signs in as the operator, with a link."""
        code = re.search(r"code=(\S+)", self.admin("link", "operator"))
        assert code is not None
        page.goto(f"{self.address}/sign-in?code={code[1]}")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Suites and boards")).to_be_visible()


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, forked_command: ForkedCommand
) -> Iterator[Served]:
    data = tmp_path_factory.mktemp("serve") / "data"
    log = data.parent / "log"
    with log.open("w") as out:
        command = [*JUDGE, "serve"]
        server = subprocess.Popen(
            [*command, "--data", str(data), "--listen", "127.0.0.1:0"],
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + START_S
        while "dispatcher is ready" not in log.read_text():
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        address = re.search(r"http://127\.0\.0\.1:[1-9]\d*", log.read_text())
        assert address is not None, log.read_text()
        made = Served(address[0], data, forked_command)
        made.admin("suite", "add", "typed", str(SAMPLE))
        made.admin("phase", "add", "spring", "typed")
        made.admin("board", "add", "main", "spring")
        yield made
    finally:
        server.terminate()
        server.wait(60)


def submit(page: Page, served: Served, system: str, file: Path) -> None:
    page.goto(f"{served.address}/submit")
    page.get_by_label("File:").set_input_files(file)
    page.get_by_label("System").fill(system)
    page.get_by_role("button", name="Submit").click()
    expect(page.locator(".state")).to_have_text("done", timeout=120_000)  # without a reload


def see_on_board(page: Page, served: Served, system: str) -> None:
    """Opens the board until it lists a system: boards are updated after submissions are judged."""
    deadline = time.monotonic() + START_S
    page.goto(f"{served.address}/boards/main")
    while not page.get_by_role("link", name=system).count():
        assert time.monotonic() < deadline, page.content()
        time.sleep(0.2)
        page.reload()


def test_from_a_file_to_the_board_and_its_evidence(
    watched: Watched, served: Served, tmp_path: Path
) -> None:
    page = watched.page
    served.sign_in(page)
    submit(page, served, "Whole", SAMPLE / "answers.jsonl")
    expect(page.locator("table .chip").first).to_be_visible()

    see_on_board(page, served, "Whole")
    page.get_by_role("link", name="Whole").click()
    expect(page.get_by_role("heading", name="Whole")).to_be_visible()
    page.locator("tbody th a").first.click()
    expect(page.get_by_role("heading", name="Task")).to_be_visible()
    expect(page.get_by_text("What was submitted").first).to_be_visible()
    page.get_by_role("link", name="The question").click()
    expect(page).to_have_url(re.compile("/suites/"))
    assert "PosixPath" not in page.content()

    part = tmp_path / "broken.jsonl"
    part.write_text('{"id": "nothing", "answer": "1"}\n')
    page.goto(f"{served.address}/submit")
    page.get_by_label("File:").set_input_files(part)
    with page.expect_console_message():  # the browser notes that the answer was 422
        page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("alert")).to_contain_text("line 1")
    watched.problems.clear()
    hosts = {urlsplit(url).netloc for url in watched.requests if not url.startswith("data:")}
    assert hosts == {urlsplit(served.address).netloc}


def test_keys_width_and_dark(watched: Watched, served: Served) -> None:
    page = watched.page
    served.sign_in(page)
    page.goto(f"{served.address}/boards/main")
    page.keyboard.press("j")
    expect(page.locator("tr[data-at]")).to_have_count(1)
    page.keyboard.press("x")
    expect(page.locator("tbody input[type=checkbox]").first).to_be_checked()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("/")
    expect(page.get_by_label("Filter")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Filter")).not_to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/entries/"))
    paths = ["/", "/boards/main", "/suites/typed", "/submit", "/submissions", "/me", "/me/tokens"]
    for path in [*paths, urlsplit(page.url).path]:
        page.set_viewport_size({"width": 320, "height": 700})
        page.goto(served.address + path)
        assert page.evaluate("document.documentElement.scrollWidth") == 320, path
        page.emulate_media(color_scheme="dark")
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="light")
        assert dark != page.evaluate("getComputedStyle(document.body).backgroundColor"), path
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
