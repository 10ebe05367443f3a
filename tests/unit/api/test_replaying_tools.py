"""Calls of episodes done again: what differs is named, and what cannot be done says why."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, cast

import pytest

from judge import api
from judge.api.replaying import _ToolReplayer
from judge.core.records.tool_episodes import ToolEpisodeHead
from judge.errors import UsageError
from judge.tools.contract import ToolOutcome
from judge.tools.episodes import ToolEpisodeWriter
from tests.unit.report.runs import Solution, TaskSpec, make_run, make_suite
from tests.unit.tools.test_trajectories import END, HEAD, line, turn


class Machine:
    """Answers calls by a script, and holds a workbook."""

    def __init__(self, *outcomes: ToolOutcome) -> None:
        self._outcomes = list(outcomes)
        self.done: list[str] = []

    def call(self, name: str, arguments: Any) -> ToolOutcome:
        del arguments
        self.done.append(name)
        return self._outcomes.pop(0)

    def workbook(self) -> str | None:
        return hashlib.sha256(str(len(self.done)).encode()).hexdigest()


def after(calls: int) -> str:
    return hashlib.sha256(str(calls).encode()).hexdigest()


def replayed(machine: Machine, record: Any) -> list[tuple[Any, ...]]:
    replayer = _ToolReplayer.__new__(_ToolReplayer)
    turns = replayer._turn(cast("Any", machine), record)
    return [(each.outcomes, each.results, each.workbooks) for each in turns]


def test_a_turn_that_comes_out_as_it_was_says_nothing() -> None:
    record = turn(
        1, line("a", "one", workbook=after(1)), line("b", "no", error="tool", workbook=after(2))
    )
    machine = Machine(ToolOutcome("one"), ToolOutcome("no", "tool"))
    assert replayed(machine, record) == []


def test_other_outcomes_results_and_workbooks_are_named_by_their_call() -> None:
    record = turn(
        1,
        line("a", "one", workbook=after(1)),
        line("b", "two", workbook=after(2)),
        line("c", "three", workbook="0" * 64),
    )
    machine = Machine(ToolOutcome("other"), ToolOutcome("two", "timeout"), ToolOutcome("three"))
    assert replayed(machine, record) == [((2,), (1,), (3,))]


def test_what_was_not_done_is_not_done_again() -> None:
    record = turn(
        1,
        line("a", "is no JSON", raw="{", error="argument"),
        line("b", "too many", error="limit"),
        line("c", "", tool="submit"),
        line("d", "done", workbook=after(1)),
    )
    machine = Machine(ToolOutcome("done"))
    assert replayed(machine, record) == []
    assert machine.done == ["bash"]


def test_trajectories_that_were_imported_cannot_be_done_again(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", [TaskSpec("101", cases=1)])
    run = make_run(tmp_path / "run", suite, [Solution("101", ["AC"])], setting="tools/x 1")
    head: ToolEpisodeHead = {**HEAD, "id": "101", "imported": "atif"}
    with ToolEpisodeWriter(run, head) as writer:
        writer.append(END)
    with pytest.raises(UsageError, match="does not say which tools"):
        api.replay(run)
