"""The step lists of the sample suite on real desktops: right with all steps, wrong without one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import pytest

from judge.api.judging import Judge
from judge.api.options import JudgingOptions
from judge.desktop.contract import (
    CollectedFile,
    DesktopHost,
    DesktopOptions,
    Observation,
    WindowBounds,
)
from judge.desktop.sandboxed import SandboxDesktopHost
from judge.desktop.steps import play, read_steps
from judge.inference.desktop.setting import desktop_task
from judge.sandbox import open_sandbox
from judge.suites import load_suite
from tests.conftest import REPOSITORY
from tests.desktops import require_desktop

pytestmark = [pytest.mark.bubblewrap, pytest.mark.slow]

STEPS = REPOSITORY / "dataset" / "sample-desktop" / "steps"


@pytest.fixture(scope="module")
def host() -> Iterator[DesktopHost]:
    require_desktop("bubblewrap")
    with contextlib.closing(open_sandbox("bubblewrap")) as sandbox:
        yield SandboxDesktopHost(sandbox)


# A small screen has fewer cells to read before each step.
PLAIN = DesktopOptions(width=1024, height=560, gui_only=True)
CROWDED = replace(PLAIN, width=1280, height=720, window=WindowBounds(240, 100, 960, 580), clutter=1)


@pytest.mark.parametrize(("name", "options"), [("chart", PLAIN), ("summary", CROWDED)])
def test_steps_solve_a_task_and_all_but_the_last_do_not(
    name: str, options: DesktopOptions, host: DesktopHost
) -> None:
    suite = load_suite("sample-desktop")
    task = suite.task(name)
    *steps, last = read_steps(STEPS / f"{name}.yaml")
    opening = desktop_task(task.question, task.cases[0].question)
    with host.open(opening, options) as desktop:
        shown = desktop.observe(screenshot=False)
        assert len(shown.windows) == 1 + options.clutter
        assert options.window in {None, first_frame(shown)}
        for played in play(desktop, steps):
            assert not played.outcome.error
        early = desktop.save()
        for played in play(desktop, [last]):
            assert not played.outcome.error
        late = desktop.save()
    with Judge(suite, JudgingOptions(recalc="never"), runs=False) as judge:
        verdicts = [judge(name, data_of(each)).verdicts[0].value for each in (early, late)]
    assert verdicts == ["WA", "AC"]


def first_frame(shown: Observation) -> WindowBounds:
    """Returns the position of the first window in the tree, the active one, with its borders."""
    frame = next(each for each in shown.elements or () if each.role == "frame")
    assert frame.name == shown.windows[0]
    assert frame.x is not None
    assert frame.y is not None
    return WindowBounds(frame.x, frame.y, frame.width or 0, frame.height or 0)


def data_of(collected: CollectedFile) -> bytes:
    assert collected.data is not None, collected.problem
    return collected.data
