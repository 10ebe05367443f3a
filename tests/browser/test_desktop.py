"""The desktop in a real browser: a task is solved through the page, recorded and scored."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from judge.api import ScoreOptions, score
from judge.desktop.episodes import EpisodeEnd, EpisodeFiles, read_episodes
from judge.local_page import listen, server_of
from judge.sessions.live import Ending, LivePage, Result
from tests.browser.conftest import Watched
from tests.conformance.leftovers import descendants, wait_until
from tests.conftest import REPOSITORY
from tests.desktops import require_desktop
from tests.unit.sessions.test_live import ACCEPTED, Setup

pytestmark = pytest.mark.browser

JUDGE = (sys.executable, "-c", "from judge.cli.main import main; main()")
WIDTH = 1920


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desktop") / "run"


@pytest.fixture
def window(browser: Browser) -> Iterator[Page]:
    """A separate page for each test, since scripts added to a page would stay there."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def server(run: Path) -> Iterator[subprocess.Popen[str]]:
    require_desktop("bubblewrap")
    command = ["desktop", "profit", "--out", str(run), "--sandbox", "bubblewrap", "--no-browser"]
    server = subprocess.Popen(
        [*JUDGE, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": str(REPOSITORY)},
    )
    yield server
    server.send_signal(signal.SIGINT)
    server.wait(timeout=120)


def address_of(server: subprocess.Popen[str]) -> str:
    assert server.stdout is not None
    said = ""
    for line in server.stdout:
        said += line
        if found := re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line):
            return found[0]
    raise AssertionError(said)


@dataclass
class Shown:
    """A desktop in a page, and the judge that shows it.

    A person waits until the office has done what it was told. So does this, however busy the
    machine: the picture has to change, and then to stay while the office waits for more.
    """

    page: Page
    judge: int

    def frame(self) -> str:
        return self.page.locator("#screen").get_attribute("data-frame") or ""

    @contextlib.contextmanager
    def doing(self) -> Iterator[None]:
        """Does something that changes the picture, and waits for the change."""
        before = self.frame()
        yield
        assert wait_until(lambda: self.frame() != before)
        began = since = time.monotonic()
        last = self.frame()
        while time.monotonic() - since < 0.7:
            assert time.monotonic() - began < 300, "the picture never stays"
            self.page.wait_for_timeout(100)
            if (now := self.frame()) != last or self.is_busy():
                since, last = time.monotonic(), now

    def is_busy(self) -> bool:
        """Whether the office computes, or would if it had a processor."""
        for process in descendants(self.judge):
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{process.pid}/stat").read_text(errors="replace")
                name, _, after = text.rpartition(")")
                if name.endswith("(soffice.bin") and after.split()[0] in "RD":
                    return True
        return False

    def click(self, x: int, y: int) -> None:
        """Clicks a position of the desktop, which the page shows at a smaller size."""
        box = self.page.locator("#screen").bounding_box()
        assert box is not None
        scale = box["width"] / WIDTH
        with self.doing():
            self.page.mouse.click(box["x"] + x * scale, box["y"] + y * scale)

    def type(self, text: str) -> None:
        with self.doing():
            self.page.keyboard.type(text)

    def go_to(self, ref: str) -> None:
        self.click(80, 141)  # the name box
        self.type(f"{ref}\n")


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[tuple[Setup, str]]:
    """A session on a scripted desktop, and its address."""
    setup = Setup(tmp_path)
    served = LivePage(setup.session)
    listener = listen(served)
    server = server_of(served)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield setup, served.address
    served.closing = server.should_exit = True
    thread.join()
    listener.close()
    setup.session.close()


def test_the_events_of_mouse_and_keyboard_in_a_browser(
    scripted: tuple[Setup, str], watched: Watched
) -> None:
    setup, address = scripted
    page = watched.page
    # A busy machine may not get from one click to the next while the page still waits for it.
    page.add_init_script(
        "const wait = window.setTimeout;"
        "window.setTimeout = (call, ms) => wait(call, ms === 4000 ? 4000000 : ms);"
    )
    page.goto(address)
    screen = page.locator("#screen")
    expect(screen).to_have_attribute("width", "96")
    box = screen.bounding_box()
    assert box is not None
    left, top, scale = box["x"], box["y"], box["width"] / 96

    page.mouse.dblclick(left + 10 * scale, top + 20 * scale)
    page.mouse.move(left + 30 * scale, top + 30 * scale)
    page.mouse.down()
    page.mouse.move(left + 60 * scale, top + 40 * scale, steps=3)
    page.mouse.up()
    page.keyboard.down("Control")
    page.mouse.click(left + 5 * scale, top + 5 * scale, button="right")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.up("Control")
    page.keyboard.type("Aé<")
    page.keyboard.press("Tab")
    page.mouse.wheel(0, 200)
    give_up = page.get_by_role("button", name="Give up")
    give_up.click()
    expect(give_up).to_have_text("Give up: sure?")
    assert setup.session.result is None
    give_up.click()
    expect(page.locator("#result h1")).to_have_text("AC: accepted")
    expect(page.locator("#result pre")).to_have_text("nothing differs")

    episode = setup.episode()
    assert episode.end is not None
    assert episode.end["ended"] == "closed"
    calls = [[action.get("call") for action in turn["actions"]] for turn in episode.turns]
    click = {"action_type": "CLICK", "button": "left", "x": 10, "y": 20, "num_clicks": 2}
    assert calls == [
        [click],
        [
            {"action_type": "MOVE_TO", "x": 30, "y": 30},
            {"action_type": "DRAG_TO", "x": 60, "y": 40},
        ],
        [
            {"action_type": "KEY_DOWN", "key": "ctrl"},
            {"action_type": "CLICK", "button": "right", "x": 5, "y": 5},
            {"action_type": "KEY_UP", "key": "ctrl"},
        ],
        [{"action_type": "HOTKEY", "keys": ["ctrl", "shift", "down"]}],
        [{"action_type": "TYPING", "text": "Aé<\t"}],
        [{"action_type": "MOVE_TO", "x": 5, "y": 5}, {"action_type": "SCROLL", "dx": 0, "dy": -2}],
    ]


def test_after_the_verdict_the_page_sends_no_more_requests(
    scripted: tuple[Setup, str], watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anyone who sees the desktop may end the server at once."""
    setup, address = scripted
    page, is_seen = watched.page, threading.Event()

    def judge(end: EpisodeEnd) -> Result:
        assert is_seen.wait(60)
        return ACCEPTED

    monkeypatch.setattr(setup.kept, "judge", judge)
    page.goto(address)
    expect(page.locator("#screen")).to_have_attribute("width", "96")
    page.locator("#done").click()
    expect(page.locator("#waiting")).to_have_text("saved; it is being judged")
    is_seen.set()
    expect(page.locator("#result h1")).to_have_text("AC: accepted")
    asked = len(watched.requests)
    page.wait_for_timeout(1000)
    assert watched.requests[asked:] == []


def test_the_verdict_is_shown_once_no_request_is_under_way(
    scripted: tuple[Setup, str], watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session ends just before the request that ended it is answered."""
    setup, address = scripted
    page, may_answer, finish = watched.page, threading.Event(), setup.session.finish

    def held(ending: Ending) -> None:
        finish(ending)
        assert may_answer.wait(60)

    monkeypatch.setattr(setup.session, "finish", held)
    page.goto(address)
    expect(page.locator("#screen")).to_have_attribute("width", "96")
    page.locator("#done").click()
    page.wait_for_timeout(1000)
    expect(page.locator("#result")).to_be_hidden()
    may_answer.set()
    expect(page.locator("#result h1")).to_have_text("AC: accepted")
    expect(page.locator("#alarm")).to_be_hidden()


@pytest.mark.bubblewrap
@pytest.mark.slow
def test_a_person_solves_a_task_in_the_browser(
    server: subprocess.Popen[str], run: Path, watched: Watched
) -> None:
    page, address = watched.page, address_of(server)
    page.goto(address)
    expect(page.locator(".instruction")).to_contain_text("Add a column Profit")
    expect(page.locator("#screen")).to_have_attribute("width", str(WIDTH))
    shown = Shown(page, server.pid)
    shown.go_to("D1")
    shown.type("Profit\n")
    shown.go_to("D2:D9")
    expect(page.locator("#steps")).to_contain_text(re.compile("[1-9]"))

    page.reload()  # the desktop is where it was, and the clock runs on
    expect(page.locator("#screen")).to_have_attribute("width", str(WIDTH))
    expect(page.locator("#clock")).not_to_have_text(re.compile("^0:0[0-2]$"))
    with shown.doing():
        page.keyboard.type("=B2-C2")
        page.keyboard.press("Alt+Enter")
    page.locator("#done").click()
    expect(page.locator("#result h1")).to_have_text("AC: accepted", timeout=120_000)
    expect(page.locator("#done")).to_be_disabled()

    server.send_signal(signal.SIGINT)
    assert server.stdout is not None
    assert "AC accepted" in server.stdout.read()
    assert server.wait(timeout=120) == 0
    (episode,) = read_episodes(run)
    assert episode.end is not None
    assert (episode.head["model"], episode.end["ended"]) == ("human", "done")
    typed = [
        str(action["call"]["text"])
        for turn in episode.turns
        for action in turn["actions"]
        if action.get("call", {}).get("action_type") == "TYPING"
    ]
    assert "".join(typed) == "D1\nProfit\nD2:D9\n=B2-C2"  # who types slowly is on record in parts
    assert episode.end["seconds"] > 0
    pictures = {str(turn["seen"]["screenshot"]) for turn in episode.turns}
    assert all(EpisodeFiles(run).screenshot(each) for each in pictures)
    assert len(pictures) > 3
    (run / "report.json").unlink()
    (scored,) = score(run, ScoreOptions(recalc="never"))
    assert scored.report["overall"]["verdicts"] == {"AC": 1}
