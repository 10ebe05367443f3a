"""A made-up run of desktop episodes on disk: their turns, files and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.desktop.contract import (
    Action,
    ActionOutcome,
    CollectedFile,
    DesktopInfo,
    DesktopOptions,
    DesktopTask,
    InputEvent,
    Observation,
    Signal,
)
from judge.desktop.episodes import EpisodeWriter, head_of
from judge.suites import Suite
from judge.suites.suite import load_suite
from tests.fakes.desktop import tiny_png
from tests.unit.report.runs import Solution, make_run
from tests.unit.suites.test_desktop import DATA, make, record, table

WIDTH, HEIGHT = 960, 540
TABLE = "tag\tname\ttext\nmenu\tFile\t\npush-button\tSave\t\ntable-cell\tA1\tTotal\n"


def click(x: int, y: int, *, to: tuple[int, int] | None = None) -> tuple[InputEvent, ...]:
    """A click of the left button, or a drag."""
    end = to or (x, y)
    return (InputEvent("press", x, y, "left"), InputEvent("release", *end, "left"))


CLICKED = (
    Action(code="import pyautogui\npyautogui.click(480, 270)"),
    ActionOutcome(events=click(480, 270), seconds=0.5),
)
FAILED = (
    Action(code="pyautogui.clik(1, 2)"),
    ActionOutcome(error="AttributeError: no clik", seconds=0.25),
)
DONE = (Action(signal=Signal.DONE), ActionOutcome())


@dataclass(frozen=True)
class MadeTurn:
    """A turn: the reply and its actions. Its screenshot has a colour that no other turn has."""

    actions: Sequence[tuple[Action, ActionOutcome]] = (CLICKED,)
    reply: str = "I click on the button."
    problem: str = ""
    table: str | None = TABLE
    windows: tuple[str, ...] = ("in.xlsx - LibreOffice Calc",)
    screenshot: bytes | None = None


@dataclass(frozen=True)
class MadeEpisode:
    """An episode with the verdict on the file that it left."""

    task: str
    verdict: str = "AC"
    turns: Sequence[MadeTurn] = (MadeTurn(), MadeTurn((DONE,), reply="DONE"))
    ended: str | None = "done"
    seconds: float = 20.0
    setting: str = "desktop/screenshot+tree/pyautogui"
    model: str = "made-up"
    options: DesktopOptions = field(
        default_factory=lambda: DesktopOptions(width=WIDTH, height=HEIGHT)
    )


def desktop_suite(root: Path, actions: dict[str, int]) -> Suite:
    """Writes a suite in the published layout: task -> the actions that its authors count."""
    records = [record(task, table(DATA)) | {"action_number": n} for task, n in actions.items()]
    return load_suite(make(root, records))


def write_episode(run: Path, made: MadeEpisode) -> None:
    """Writes an episode as the command would."""
    path = "/home/user/in.xlsx"
    head = head_of(
        made.task,
        0,
        1,
        model=made.model,
        setting=made.setting,
        instruction="Do it.",
        task=DesktopTask({path: b"before"}, path, path),
        options=made.options,
        info=DesktopInfo("0123456789ab", "LibreOffice 25.2", 3.5),
        started="2026-01-02T03:04:05+00:00",
    )
    with EpisodeWriter(run, head) as writer:
        for number, turn in enumerate(made.turns):
            picture = turn.screenshot or tiny_png(number, WIDTH, HEIGHT)
            seen = Observation(picture, None, cursor=(1, 2), windows=turn.windows)
            writer.turn(
                writer.files.keep(seen, turn.table),
                turn.actions,
                reply=turn.reply,
                problem=turn.problem,
                seconds=2.5,
            )
        if made.ended is not None:
            writer.end(made.ended, CollectedFile(b"after", changed=True), made.seconds)


def make_episodes(
    folder: Path, suite: Suite, episodes: Sequence[MadeEpisode], **described: Any
) -> Path:
    """A results directory with episodes, as they are after `judge score`.

    Args:
        folder: the directory.
        suite: the tasks.
        episodes: with their verdicts.
        described: what else run.json says.
    """
    solutions = [
        Solution(
            each.task,
            (each.verdict,),
            record={"model": each.model, "setting": each.setting, "solution": None},
        )
        for each in episodes
    ]
    setting = episodes[0].setting
    run = make_run(folder, suite, solutions, model="made-up", setting=setting, **described)
    for each in episodes:
        write_episode(run, each)
    return run
