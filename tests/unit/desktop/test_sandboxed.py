"""A driver's answers are accepted only if they can be read."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from judge.desktop.contract import Action, DesktopOptions, DesktopTask, Signal
from judge.desktop.sandboxed import SandboxDesktop, SandboxDesktopHost
from judge.errors import SandboxError
from judge.sandbox.scripted import ScriptedSandbox
from judge.sandbox.warden import frames

TASK = DesktopTask({"/home/user/a.xlsx": b"PK"}, "/home/user/a.xlsx", "/home/user/a.xlsx")
STARTED = {"office": "26.8", "ready_s": 1.5}
SEEN = {
    "elements": [["button", "OK", "", [1, 2, 30, 20], ["enabled"], None, ""]],
    "cursor": [3, 4],
    "windows": ["a.xlsx"],
    "tree_s": 0.1,
    "screenshot_s": 0.2,
}
Answer = tuple[dict[str, Any], list[bytes]] | BaseException | bytes


class Channel:
    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.asked: list[dict[str, Any]] = []
        self.closed = False

    def call(self, payload: bytes, timeout_s: float) -> bytes:
        del timeout_s
        self.asked.append(frames.unpack(payload)[0])
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, bytes) else frames.pack(*answer)[4:]

    def close(self) -> None:
        self.closed = True


class Sandbox(ScriptedSandbox):
    def __init__(self, channel: Channel) -> None:
        super().__init__([])
        self.channel = channel

    def service(
        self, program: str, *, root: str = "python", memory_bytes: int | None = None
    ) -> Channel:
        assert root == "desktop"
        assert memory_bytes == DesktopOptions().memory_bytes
        compile(program, "driver", "exec")
        return self.channel

    def root_digest(self, root: str) -> str | None:
        return root


def opened(*answers: Answer) -> tuple[SandboxDesktop, Channel]:
    channel = Channel([(STARTED, []), *answers])
    return SandboxDesktopHost(Sandbox(channel)).open(TASK, DesktopOptions()), channel


def test_an_observation_is_what_the_driver_reports() -> None:
    desktop, channel = opened((SEEN, [b"PNG"]))
    seen = desktop.observe()
    assert seen.screenshot == b"PNG"
    assert seen.elements is not None
    assert seen.elements[0].centre == (16, 12)
    assert seen.cursor == (3, 4)
    assert desktop.info.ready_s == 1.5
    assert [each["op"] for each in channel.asked] == ["start", "observe"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda desktop: desktop.observe(),
        lambda desktop: desktop.perform(Action(signal=Signal.WAIT)),
        lambda desktop: desktop.frame(),
        lambda desktop: desktop.save(),
        lambda desktop: desktop.collect(),
    ],
)
@pytest.mark.parametrize(
    "answer",
    [
        ({}, []),
        ({"elements": 7, "error": "", "events": "x"}, []),
        (SEEN | {"cursor": [1], "elements": [["button"]]}, []),
        b"\x00",
        struct.pack(">I", 100_000) + b"[" * 100_000,
    ],
    ids=["empty", "other types", "too short", "no message", "nested"],
)
def test_an_answer_that_cannot_be_read_is_a_broken_desktop(
    ask: Callable[[SandboxDesktop], object], answer: Answer
) -> None:
    desktop, _ = opened(answer)
    with pytest.raises(SandboxError, match="the desktop broke"):
        ask(desktop)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (({"broke": "the screen ended\u202e"}, []), "the screen ended\\u202e"),
        (SandboxError("the service ended"), "the service ended"),
        (TimeoutError(), "no answer in"),
    ],
)
def test_a_desktop_that_breaks_says_why(answer: Answer, said: str) -> None:
    desktop, channel = opened(answer)
    with pytest.raises(SandboxError, match="the desktop broke") as error:
        desktop.observe()
    assert said in error.value.message
    if not isinstance(answer, TimeoutError):
        assert channel.closed
        with pytest.raises(SandboxError, match="was closed"):
            desktop.observe()


def test_a_desktop_that_does_not_start_is_ended() -> None:
    channel = Channel([({"broke": "the office ended"}, [])])
    with pytest.raises(SandboxError, match="the office ended"):
        SandboxDesktopHost(Sandbox(channel)).open(TASK, DesktopOptions())
    assert channel.closed


def test_files_outside_the_home_are_refused_before_anything_starts() -> None:
    channel = Channel([])
    task = DesktopTask({"/etc/passwd": b""}, "/etc/passwd", "/etc/passwd")
    with pytest.raises(SandboxError, match="not below /home/user"):
        SandboxDesktopHost(Sandbox(channel)).open(task, DesktopOptions())
    assert channel.asked == []
