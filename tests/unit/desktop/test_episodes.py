"""Episodes are written line by line and read again, whatever ended the process."""

import hashlib
import json
from pathlib import Path

import pytest

from judge.desktop.contract import (
    Action,
    ActionOutcome,
    CollectedFile,
    DesktopOptions,
    DesktopTask,
    InputEvent,
    Signal,
    WindowBounds,
)
from judge.desktop.episodes import (
    EpisodeFiles,
    EpisodeWriter,
    episode_path,
    head_of,
    read_episode,
    read_episodes,
)
from judge.errors import SandboxError, StoreError
from tests.fakes.desktop import (
    DesktopScript,
    Opening,
    ScriptedDesktopHost,
    tiny_png,
)

TASK = DesktopTask({"/home/user/a.xlsx": b"before"}, "/home/user/a.xlsx", "/home/user/a.xlsx")
OPTIONS = DesktopOptions(
    as_published=frozenset({"typing", "menus"}), window=WindowBounds(1, 2, 3, 4)
)


def _write(run: Path, *, end: bool = True, task_id: str = "a/b") -> Path:
    host = ScriptedDesktopHost([DesktopScript(left=b"after")])
    with host.open(TASK, OPTIONS) as desktop:
        head = head_of(
            task_id,
            1,
            1,
            model="m",
            setting="desktop/tree/pyautogui",
            instruction="Sum it up.",
            task=TASK,
            options=OPTIONS,
            info=desktop.info,
            started="2026-01-01T00:00:00+00:00",
        )
        with EpisodeWriter(run, head) as writer:
            for number in (1, 2):
                seen = writer.files.keep(desktop.observe(), "role\tname\n", cut=number == 2)
                action = Action(code="pyautogui.click(1, 2)")
                outcome = desktop.perform(action)
                writer.turn(seen, [(action, outcome)], reply="```click```", seconds=1.23456)
            if end:
                writer.end("done", desktop.save(), 9.0)
            return writer.path


def test_written_episodes_are_read_again(tmp_path: Path) -> None:
    path = _write(tmp_path)
    episode = read_episode(path)
    assert episode.key == ("a/b", 1, 1)
    assert path == episode_path(tmp_path, "a/b", 1, 1)
    assert path.parent == tmp_path / "episodes"
    assert episode.head["files"] == {"/home/user/a.xlsx": hashlib.sha256(b"before").hexdigest()}
    assert episode.head["options"]["as_published"] == ["menus", "typing"]
    assert episode.head["options"]["window"] == {"x": 1, "y": 2, "width": 3, "height": 4}
    assert [turn["number"] for turn in episode.turns] == [1, 2]
    assert [turn["seen"]["cut"] for turn in episode.turns] == [False, True]
    assert episode.end is not None
    assert (episode.end["turns"], episode.end["steps"]) == (2, 2)
    assert episode.end["output"] == hashlib.sha256(b"after").hexdigest()
    assert episode.end["changed"]
    assert list(read_episodes(tmp_path)) == [episode]
    files = EpisodeFiles(tmp_path)
    shown = episode.turns[0]["seen"]
    assert shown["screenshot"] is not None
    assert files.screenshot(shown["screenshot"]) == tiny_png(0)
    assert (shown["width"], shown["height"]) == (96, 54)
    assert shown["table"] is not None
    assert files.table(shown["table"]) == "role\tname\n"
    (picture,) = tmp_path.rglob(f"{shown['screenshot']}.png")
    picture.write_bytes(b"other")
    assert files.screenshot(shown["screenshot"]) is None


def test_an_episode_that_was_cut_off_has_no_end_and_is_started_again(tmp_path: Path) -> None:
    path = _write(tmp_path, end=False)
    with path.open("ab") as file:
        file.write(b'{"line":"end","ended":"do')
    episode = read_episode(path)
    assert episode.end is None
    assert len(episode.turns) == 2
    assert read_episode(_write(tmp_path)).end is not None
    episode_path(tmp_path, "other", 0, 1).write_bytes(b"")
    assert [each.key[0] for each in read_episodes(tmp_path)] == ["a/b"]


def test_texts_and_actions_are_bounded(tmp_path: Path) -> None:
    event = InputEvent("type", 1, 1, "x" * 100_000)
    outcome = ActionOutcome(error="e" * 100_000, printed="p" * 100_000, events=(event,) * 2_000)
    head = read_episode(_write(tmp_path)).head
    with EpisodeWriter(tmp_path, head) as writer:
        seen = writer.files.keep(
            ScriptedDesktopHost([DesktopScript()]).open(TASK, OPTIONS).observe(), None
        )
        writer.turn(seen, [(Action(signal=Signal.FAIL), outcome)], reply="\ud800")
        writer.end("fail", CollectedFile(None, changed=False, problem="missing"), 1.0)
    episode = read_episode(writer.path)
    (action,) = episode.turns[0]["actions"]
    assert action["signal"] == "FAIL"
    assert (
        len(action["error"]) == len(action["printed"]) == len(str(action["events"][0][3])) == 20_000
    )
    assert len(action["events"]) == 1_000
    assert episode.end is not None
    assert episode.end["output"] is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"line": "turn"}, "line 5: a line 'turn' is not allowed here"),
        ({"line": "head"}, "line 5: a line 'head' is not allowed here"),
        ([], "line 5"),
    ],
)
def test_foreign_lines_are_named(tmp_path: Path, line: object, said: str) -> None:
    path = _write(tmp_path)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    with pytest.raises(StoreError, match=said):
        read_episode(path)


def test_a_field_of_another_type_is_named(tmp_path: Path) -> None:
    path = _write(tmp_path)
    path.write_text(path.read_text().replace('"cut":false', '"cut":7'))
    with pytest.raises(StoreError, match=r"line 2: field 'seen.cut' must be true or false"):
        read_episode(path)
    with pytest.raises(StoreError, match="contains no episode"):
        read_episode(tmp_path / "nothing.jsonl")


def test_a_scripted_desktop_breaks_where_its_script_says() -> None:
    broken = SandboxError("gone")
    scripts: list[Opening] = [
        broken,
        DesktopScript(outcomes=(ActionOutcome(error="no"), broken), left=broken),
    ]
    host = ScriptedDesktopHost(scripts)
    with pytest.raises(SandboxError):
        host.open(TASK, OPTIONS)
    desktop = host.open(TASK, OPTIONS)
    assert desktop.perform(Action(code="1")).error == "no"
    for use in (lambda: desktop.perform(Action(code="2")), desktop.save):
        with pytest.raises(SandboxError):
            use()
    with pytest.raises(AssertionError):
        host.open(TASK, OPTIONS)
