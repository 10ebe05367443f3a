"""A person's session on a scripted desktop, and the requests of the page."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from judge.desktop.contract import CollectedFile, DesktopOptions, DesktopTask, Frame
from judge.desktop.episodes import (
    HUMAN,
    Episode,
    EpisodeEnd,
    EpisodeFiles,
    EpisodeWriter,
    head_of,
    read_episode,
)
from judge.errors import SandboxError, UsageError
from judge.sessions.live import Ending, LivePage, LiveSession, Result, SessionTask
from tests.fakes.desktop import DesktopScript, ScriptedDesktop, tiny_png

ACCEPTED = Result("AC", "accepted", lines=("nothing differs",))
FILE = "/home/user/a.xlsx"
TASK = DesktopTask({FILE: b"before"}, FILE, FILE)


class Clock:
    """A clock whose seconds pass only when a test says so."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Kept:
    """Records what it is given, and judges everything as right."""

    def __init__(self) -> None:
        self.collected: CollectedFile | None = None
        self.failure: Exception | None = None

    def keep(self, collected: CollectedFile) -> None:
        self.collected = collected

    def judge(self, end: EpisodeEnd) -> Result:
        assert self.collected is not None
        assert end["changed"] == self.collected.changed
        if self.failure is not None:
            raise self.failure
        return ACCEPTED


class Setup:
    """A session with all records of what it was given."""

    def __init__(self, run: Path, desktop: ScriptedDesktop | None = None) -> None:
        options = DesktopOptions(width=96, height=54)
        self.desktop = desktop or ScriptedDesktop(DesktopScript(left=b"after"), TASK, options)
        self.clock, self.kept, self.run = Clock(), Kept(), run
        head = head_of(
            "sum", 0, 1, model=HUMAN, setting="desktop/screenshot/computer_13", instruction="Add.",
            task=TASK, options=options, info=self.desktop.info, started="2026-01-02T03:04:05+00:00",
        )  # fmt: skip
        task = SessionTask("suite", "sum", 1, "Add.\x1b[2J")
        self.writer = EpisodeWriter(run, head)
        self.session = LiveSession(
            self.desktop, options, task, self.writer, self.kept, clock=self.clock
        )

    def episode(self) -> Episode:
        return read_episode(self.writer.path)


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def text(detail: str) -> dict[str, object]:
    return {"kind": "text", "detail": detail}


def click(x: int, y: int) -> list[dict[str, object]]:
    return [
        {"kind": kind, "x": x, "y": y, "detail": "left", "held": []}
        for kind in ("press", "release")
    ]


def test_what_a_person_does_is_done_and_on_record_with_what_they_saw(setup: Setup) -> None:
    session, clock = setup.session, setup.clock
    session.begin()
    first = session.frame("")
    assert first == Frame("0", tiny_png(0))
    session.feed(click(10, 20))
    second = session.frame("0")
    assert second is not None
    assert second.png == tiny_png(2)
    session.begin()  # the page was loaded again: the clock runs on
    clock.now += 5
    session.feed([text("1")])
    clock.now += 1
    session.feed([text("2"), {"kind": "key", "detail": "Enter", "held": []}])
    clock.now += 4
    session.finish(Ending.DONE)

    assert [each.kind for each in setup.desktop.fed] == [
        *("press", "release", "type", "type", "key-press", "key-release")
    ]
    assert setup.desktop.saved == 1
    assert setup.desktop.closed
    assert setup.kept.collected == CollectedFile(b"after", changed=True)
    assert session.result == ACCEPTED
    episode = setup.episode()
    calls = [[action.get("call") for action in turn["actions"]] for turn in episode.turns]
    assert calls == [
        [{"action_type": "CLICK", "button": "left", "x": 10, "y": 20}],
        [{"action_type": "TYPING", "text": "12\n"}],
    ]
    # Typing took one second, after five in which nothing was done.
    assert [turn["seconds"] for turn in episode.turns] == [0, 6]
    assert [turn["actions"][0]["seconds"] for turn in episode.turns] == [0, 1]
    assert episode.turns[1]["actions"][0]["events"][0] == ["type", 10, 20, "1"]
    shown = [turn["seen"]["screenshot"] for turn in episode.turns]
    pictures = [EpisodeFiles(setup.run).screenshot(each) for each in shown if each]
    assert pictures == [tiny_png(0), tiny_png(2)]
    assert episode.end is not None
    assert episode.end["ended"] == "done"
    assert (episode.end["seconds"], episode.end["steps"], episode.end["turns"]) == (10, 2, 2)
    assert session.state()["seconds"] == 10.0
    assert session.state()["steps"] == 2


@pytest.mark.parametrize("ending", [Ending.FAIL, Ending.CLOSED])
def test_only_done_saves(ending: Ending, setup: Setup) -> None:
    setup.session.finish(ending)
    assert setup.desktop.saved == 0
    assert setup.kept.collected is not None
    end = setup.episode().end
    assert end is not None
    assert end["ended"] == ending.value


def test_a_gesture_is_on_record_once_nothing_follows(setup: Setup) -> None:
    setup.session.feed([text("a")])
    setup.session.frame("")
    assert setup.episode().turns == ()
    setup.clock.now += 3
    setup.session.frame("")
    assert len(setup.episode().turns) == 1


def test_after_the_end_nothing_is_done(setup: Setup) -> None:
    setup.session.finish(Ending.DONE)
    with pytest.raises(UsageError, match="the session is over"):
        setup.session.feed([text("a")])
    with pytest.raises(UsageError, match="the session is over"):
        setup.session.finish(Ending.FAIL)
    assert setup.session.frame("") is None


class Breaking(ScriptedDesktop):
    """Breaks when it is observed for the third time."""

    looked = 0

    def frame(self, known: str = "") -> Frame:
        self.looked += 1
        if self.looked > 2:
            raise SandboxError("the desktop ended")
        return super().frame(known)


def test_a_desktop_that_breaks_ends_the_session_without_an_end_on_record(tmp_path: Path) -> None:
    options = DesktopOptions(width=96, height=54)
    setup = Setup(tmp_path, Breaking(DesktopScript(), TASK, options))
    session = setup.session
    session.feed([text("a")])
    assert session.frame("") is not None
    session.feed([text("b")])
    assert session.frame("") is not None
    assert session.frame("") is None
    state = session.state()
    assert (state["phase"], state["failure"]) == ("broken", "the desktop ended")
    session.close()
    assert setup.episode().end is None
    assert setup.kept.collected is None


def test_what_cannot_be_judged_is_kept_and_said(setup: Setup) -> None:
    setup.kept.failure = SandboxError("no sandbox")
    with pytest.raises(SandboxError):
        setup.session.finish(Ending.DONE)
    assert setup.session.state()["failure"] == "no sandbox"
    assert setup.episode().end is not None


def test_what_cannot_be_kept_is_said(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(collected: CollectedFile) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(setup.kept, "keep", keep)
    with pytest.raises(OSError, match="no space left"):
        setup.session.finish(Ending.DONE)
    state = setup.session.state()
    assert (state["phase"], state["failure"]) == ("broken", "no space left on device")


def test_leaving_ends_the_desktop_and_is_not_a_failure(setup: Setup) -> None:
    setup.session.feed([text("a")])
    setup.session.close()
    setup.session.close()
    assert setup.desktop.closed
    assert setup.session.failure is None
    assert setup.episode().end is None


def test_the_page_shows_sends_and_ends(setup: Setup) -> None:
    page = LivePage(setup.session, port=8080)
    client = TestClient(page, base_url="http://127.0.0.1:8080")
    assert client.get("/").status_code == 403
    assert client.get("/api/frame").status_code == 403
    assert setup.session.state()["seconds"] == 0.0
    setup.clock.now += 1
    document = client.get("/", params={"token": page.token}).text
    assert "\x1b" not in document
    setup.clock.now += 2
    client.headers["X-Judge-Token"] = page.token

    def post(path: str, **body: object) -> Any:
        return client.post(path, json=body)

    frame = client.get("/api/frame").json()
    assert base64.b64decode(frame["png"]) == tiny_png(0)
    assert (frame["state"]["seconds"], frame["state"]["phase"]) == (2.0, "working")
    assert post("/api/input", events=click(1, 2)).json() == {}
    assert post("/api/input", events=[{}]).status_code == 400
    assert post("/api/finish", ending="later").status_code == 400
    over = post("/api/finish", ending="done").json()
    assert over["phase"] == "over"
    assert over["result"] == {
        "verdict": "AC", "description": "accepted", "cause": "", "lines": ["nothing differs"],
    }  # fmt: skip
    assert client.get("/api/frame").json()["state"] == over
    assert client.get("/api/state").json() == over
    assert client.get("/api/other").status_code == 404
