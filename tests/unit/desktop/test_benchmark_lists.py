"""The benchmark's step lists are valid, and their tasks exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.desktop_tasks import read_lists
from judge.suites import load_suite


def test_they_are_step_lists() -> None:
    lists = read_lists()
    assert len(lists) == 4
    assert all(len(steps) >= 5 for steps in lists.values())


@pytest.mark.data
def test_their_tasks_exist(judge_data: Path) -> None:
    suite = load_suite(judge_data / "spider2v_calc")
    for task in read_lists():
        assert suite.task(task).cases
