"""An episode as an animated picture, made in the real sandbox."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from judge.cli.report import report
from judge.desktop.contract import Action, ActionOutcome
from judge.errors import SandboxError, StoreError
from judge.files.media import image_size, image_type
from judge.report.desktop.film import FilmStudio, film_of_case
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox
from tests.episode_run import DONE, MadeEpisode, MadeTurn, click, desktop_suite, make_episodes
from tests.fakes.desktop import tiny_png

FRAME = b"\x21\xf9\x04"
"""The bytes before each picture of a GIF."""

DRAGGED = (Action(code="x" * 5_000), ActionOutcome(events=click(9, 9, to=(900, 500))))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("film")
    suite = desktop_suite(root / "suite", {"a": 4, "b": 9})
    broken = MadeTurn(screenshot=tiny_png(1)[:60])
    turns = (MadeTurn(), MadeTurn((DRAGGED,)), MadeTurn((DONE,)))
    episodes = [MadeEpisode("a", "WA", turns), MadeEpisode("b", turns=(broken,))]
    return make_episodes(root / "results" / "mine", suite, episodes)


@pytest.fixture(scope="module")
def studio() -> Iterator[FilmStudio]:
    with contextlib.closing(FilmStudio(lambda: open_sandbox("bubblewrap"))) as opened:
        yield opened


@pytest.mark.bubblewrap
def test_a_moving_picture_shows_every_turn(run: Path, tmp_path: Path) -> None:
    arguments = [str(run), "--case", "a/1", "--sandbox", "bubblewrap", "--format"]
    result = CliRunner().invoke(report, [*arguments, "gif"])
    assert result.exit_code == 0, result.output
    data = (run / "a.0.1.gif").read_bytes()
    width, height = image_size(data) or (0, 0)
    assert width == 960
    assert 540 < height < 700
    # A turn with a click is shown before and after it, one without once.
    assert data.count(FRAME) == 5
    target = tmp_path / "a.webp"
    assert CliRunner().invoke(report, [*arguments, "webp", "--out", str(target)]).exit_code == 0
    assert image_type(target.read_bytes()) == "image/webp"
    assert target.read_bytes().count(b"ANMF") == 5


@pytest.mark.bubblewrap
def test_a_screenshot_that_is_none_is_an_error_with_a_line(run: Path) -> None:
    with pytest.raises(StoreError, match="a screenshot could not be read"):
        film_of_case(run, "b", 1, sandbox="bubblewrap")


@pytest.mark.bubblewrap
def test_screenshots_are_shrunk(studio: FilmStudio) -> None:
    large = tiny_png(3, 1920, 1080)
    made = studio.shrink(large)
    assert made is not None
    assert image_size(made) == (1280, 720)
    # One that cannot be decoded takes no other along.
    assert studio.shrink(b"\x89PNG\r\n\x1a\nno picture") is None
    assert studio.shrink(large) == made


def test_without_a_sandbox_nothing_is_shrunk() -> None:
    asked = []

    def none_here() -> Sandbox:
        asked.append(True)
        raise SandboxError("no sandbox is available")

    studio = FilmStudio(none_here)
    assert studio.shrink(tiny_png(1)) is None
    assert studio.shrink(tiny_png(2)) is None
    assert asked == [True]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "gif"], "which episode"),
        (["--format", "gif", "--case", "a"], "write the task and the number"),
        (["--format", "gif", "--case", "a/1", "--out", "-"], "cannot be written to stdout"),
        (["--format", "gif", "--case", "a/2"], "holds no desktop episode of task a, case 2"),
        (["--case", "a/1"], "--case is for --format gif and webp"),
    ],
)
def test_what_is_asked_wrongly_is_said(run: Path, arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(report, [str(run), *arguments])
    assert result.exit_code != 0
    assert said in str(result.exception)
