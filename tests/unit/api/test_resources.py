"""The resources for judging runs: opened once, and made again for a cluster."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from judge.api.options import JudgingOptions
from judge.api.resources import JudgingResources
from judge.collector import RARE_COLLECTIONS
from judge.grading.cluster.session import ClusterExecutorFactory
from judge.sandbox.contract import SandboxInfo
from judge.sandbox.scripted import ScriptedSandbox
from judge.sandbox.select import check_runs_solutions
from tests.unit.report.runs import TaskSpec, make_suite


def test_settings_that_were_changed_are_placed_like_those_that_were_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.grading.cluster.session.ClusterSession", lambda *_: object())
    suite = make_suite(tmp_path / "suite", [TaskSpec("1")])
    options = JudgingOptions(
        recalc="never", profile="strict", cluster="tcp://127.0.0.1:1", insecure_cluster=True, jobs=5
    )
    with contextlib.ExitStack() as stack:
        resources = JudgingResources(options, stack)
        opened = resources.settings(needs_sandbox=False, needs_engines=False)
        for settings in (opened, replace(opened, jobs=3)):
            factory = resources.placed(settings, suite).executor_of
            assert isinstance(factory, ClusterExecutorFactory)
            assert (factory.recipe.profile, factory.recipe.threads) == ("strict", 1)


def test_a_sandbox_that_takes_no_solutions_says_so_whatever_it_is_called() -> None:
    class Services(ScriptedSandbox):
        @property
        def info(self) -> SandboxInfo:
            return replace(super().info, runs_solutions=False)

        def session(self) -> NoReturn:
            raise RuntimeError("services only")

    check_runs_solutions(ScriptedSandbox([]))
    with pytest.raises(RuntimeError, match="services only"):
        check_runs_solutions(Services([]))


@pytest.fixture
def own_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def _judging(stack: contextlib.ExitStack) -> None:
    resources = JudgingResources(JudgingOptions(recalc="never"), stack)
    resources.settings(needs_sandbox=False, needs_engines=False)


@pytest.mark.usefixtures("own_thresholds")
def test_garbage_is_rarely_collected_until_the_last_judging_ends() -> None:
    gc.set_threshold(700, 10, 10)
    with contextlib.ExitStack() as outer:
        with contextlib.ExitStack() as inner:
            _judging(outer)
            _judging(inner)
            assert gc.get_threshold() == RARE_COLLECTIONS
        assert gc.get_threshold() == RARE_COLLECTIONS
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.usefixtures("own_thresholds")
@pytest.mark.parametrize("chosen", [(0, 10, 10), (100_000, 50, 50)])
def test_a_program_that_chose_rarer_collections_keeps_them(chosen: tuple[int, int, int]) -> None:
    gc.set_threshold(*chosen)
    with contextlib.ExitStack() as stack:
        _judging(stack)
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen
