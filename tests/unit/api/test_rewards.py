"""judge.Rewards: the three signals, replies without a reward, threads, loops and batches."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import judge
from judge.api.rewards import SIGNALS, Signal, reward_of
from judge.core.records.cases import CaseComparison
from judge.core.score import cell_accuracy, mean_cell_accuracy
from judge.core.task import Gold
from judge.core.verdict import CaseResult, Verdict
from judge.errors import SandboxError, UsageError
from judge.grading.store import RunDirectory
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from judge.suites import Suite, load_suite
from judge.workbook.cell import CellRef
from judge.workbook.editing.cells import set_cells
from judge.workbook.editing.sheet_xml import SetCell

PLAIN = judge.JudgingOptions(jobs=2, recalc="never")
PROGRAM = "```python\nprint('hello')\n```"


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("sample")


@pytest.fixture(scope="module")
def golds(suite: Suite) -> list[bytes]:
    """Makes a suite with a task of three cases."""
    return [case.gold_path.read_bytes() for case in suite.task("1001").cases]


def left(output: bytes) -> RunResult:
    return RunResult(RunStatus.OK, OutputStatus.COLLECTED, output=output, output_bytes=len(output))


def result(verdict: Verdict, **comparison: int) -> CaseResult:
    return CaseResult("t", 0, 1, verdict, comparison=CaseComparison(**comparison))  # type: ignore[typeddict-item]


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_has_a_cell_accuracy_or_is_not_scored(verdict: Verdict) -> None:
    share = cell_accuracy(result(verdict))
    if verdict is Verdict.AC:
        assert share == 1.0
    else:
        assert share == (0.0 if verdict.is_scored else None)


@pytest.mark.parametrize(
    ("verdict", "cells", "differing", "touched", "share"),
    [
        (Verdict.WA, 10, 4, 0, 0.6),
        (Verdict.WA, 10, 10, 0, 0.0),
        (Verdict.WA, 10, 12, 0, 0.0),
        (Verdict.WA, 10, 2, 3, 0.5),
        (Verdict.WA, 10, 0, 0, 0.9),  # something other than a cell is wrong
        (Verdict.WA, 1, 0, 0, 0.0),
        (Verdict.NC, 4, 1, 0, 0.75),
        (Verdict.AC, 10, 1, 0, 1.0),  # a rule of the task allows it
        (Verdict.BT, 10, 1, 0, None),
    ],
)
def test_the_share_of_cells(
    verdict: Verdict, cells: int, differing: int, touched: int, share: float | None
) -> None:
    found = result(verdict, cells=cells, differing_cells=differing, touched_cells=touched)
    assert cell_accuracy(found) == (None if share is None else pytest.approx(share))


def test_the_mean_is_over_the_cases_that_are_scored() -> None:
    wrong = result(Verdict.WA, cells=4, differing_cells=1)
    found = [result(Verdict.AC), wrong, result(Verdict.TLE), result(Verdict.BT)]
    assert mean_cell_accuracy(found) == pytest.approx((1 + 0.75 + 0) / 3)
    assert mean_cell_accuracy([result(Verdict.BT)]) is None


def test_three_signals_of_the_same_answer(suite: Suite, golds: list[bytes]) -> None:
    """The first output is right, one cell of the second is wrong, the third is missing."""
    task = suite.task("1001")
    found = judge.compare(golds[1], golds[1], str(task.checker.options["answer_position"]))
    (area, *_), cells = found.ranges, found.cells
    place = CellRef(area.sheet, area.min_row, area.min_column)
    wrong = set_cells(golds[1], [SetCell(place, "no such value")])
    expected: dict[Signal, float] = {
        "soft": 1 / 3,
        "hard": 0.0,
        "cell_accuracy": (1 + (cells - 1) / cells) / 3,
    }
    for signal in SIGNALS:
        sandbox = ScriptedSandbox(
            [left(golds[0]), left(wrong), RunResult(RunStatus.OK, OutputStatus.MISSING)]
        )
        with judge.Rewards(suite, signal, PLAIN, sandbox=sandbox) as rewards:
            assert rewards("1001", PROGRAM) == pytest.approx(expected[signal])
            assert rewards("1001", "I cannot do that.") == 0.0, "CE, and nothing is run"


def test_no_reward_where_the_judge_failed(suite: Suite, golds: list[bytes]) -> None:
    """With a JE case there is no reward, whatever the other cases are; a BT case is left out."""

    def refuse(_: RunRequest) -> RunResult:
        raise SandboxError("no room")

    healthy = RunResult(RunStatus.OK, OutputStatus.MISSING)
    sandbox = ScriptedSandbox([*[refuse] * 3, healthy, left(golds[1]), left(golds[2])])
    with judge.Rewards(suite, options=PLAIN, sandbox=sandbox) as rewards:
        assert rewards("1001", PROGRAM) is None
        task = suite.task("1001")
        (case, *_) = task.cases
        bad = replace(case, golds=(Gold(data=b"not a workbook"),))
        judged = rewards.judge(replace(task, cases=(bad,)), golds[0])
        assert judged.verdicts == (Verdict.BT,)
        assert [reward_of(judged, signal) for signal in SIGNALS] == [None] * 3
        judged = rewards.judge(replace(task, cases=(bad, *task.cases[1:])), golds)
        assert [reward_of(judged, signal) for signal in SIGNALS] == [1.0] * 3


def test_only_checkers_that_compare_cells_have_a_cell_accuracy() -> None:
    for name in ("sample-typed", "sample-rules"):
        suite = load_suite(name)
        sandbox = ScriptedSandbox()
        with (
            judge.Rewards(suite, "cell_accuracy", PLAIN, sandbox=sandbox) as rewards,
            pytest.raises(UsageError, match="does not compare cells one by one") as raised,
        ):
            rewards(suite.tasks[0], "42")
        assert "soft" in str(raised.value.hint)
    with pytest.raises(UsageError, match="no signal 'shares'"):
        judge.Rewards("sample", "shares")  # type: ignore[arg-type]


def test_typed_answers_have_the_other_two() -> None:
    suite = load_suite("sample-typed")
    task = suite.tasks[0]
    with judge.Rewards(suite, options=PLAIN, sandbox=ScriptedSandbox()) as rewards:
        assert rewards(task, str(task.cases[0].golds[0].value)) == 1.0
        assert rewards(task.id, "none") == 0.0


def test_batches_keep_their_order_and_loops_are_not_held_up(
    suite: Suite, golds: list[bytes]
) -> None:
    by_input = {
        case.input_path.read_bytes(): gold
        for case, gold in zip(suite.task("1001").cases, golds, strict=True)
    }

    def answer(request: RunRequest) -> RunResult:
        (data,) = request.files.values()
        number = int(request.program.partition("(")[2].partition(")")[0])
        return left(by_input[data] if number % 3 else b"not a workbook")

    sandbox = ScriptedSandbox(iter(lambda: answer, None))
    replies = [f"```python\nprint({number})\n```" for number in range(9)]
    expected = [float(number % 3 > 0) for number in range(9)]
    with judge.Rewards(suite, "hard", PLAIN, sandbox=sandbox) as rewards:
        assert rewards.batch(["1001"] * 9, replies) == expected
        assert rewards.batch([], []) == []
        with pytest.raises(UsageError, match="2 answers were given to 1 tasks"):
            rewards.batch(["1001"], replies[:2])

    async def many() -> list[float | None]:
        async with judge.Rewards(suite, "hard", PLAIN, sandbox=sandbox) as rewards:
            return await asyncio.gather(*(rewards.areward("1001", each) for each in replies))

    assert asyncio.run(many()) == expected


@pytest.mark.bubblewrap
def test_rewards_are_what_judge_score_says(suite: Suite, tmp_path: Path) -> None:
    """Replies whose programs really run: two are right, the others are wrong in different ways."""
    chosen = {("1001", 0), ("1001", 2), ("1002", 4), ("1003", 4), ("1005", 4), ("1003", 2)}
    records = [
        record
        for record in map(json.loads, (suite.root / "submissions.jsonl").read_text().splitlines())
        if (str(record["id"]), record["sample"]) in chosen
    ]
    solutions = tmp_path / "solutions.jsonl"
    solutions.write_text("".join(json.dumps(each) + "\n" for each in records))
    options = judge.ScoreOptions(
        jobs=2, sandbox="bubblewrap", recalc="never", dataset="sample", out=tmp_path / "run"
    )
    judge.score(solutions, options)
    cases: dict[object, list[Any]] = {}
    for case in RunDirectory(tmp_path / "run").read_records("cases.jsonl"):
        cases.setdefault((case["task"], case["sample"]), []).append(case)
    assert cases.keys() == chosen
    warm = replace(PLAIN, sandbox="bubblewrap")
    with judge.Rewards(suite, "soft", warm) as rewards:
        replies = [each["solution"] for each in records]
        found = rewards.batch([each["id"] for each in records], replies)
        nearness = reward_of(rewards.judge("1003", replies[3]), "cell_accuracy")
    soft = [
        fmean(case["verdict"] == "AC" for case in cases[str(each["id"]), each["sample"]])
        for each in records
    ]
    assert found == pytest.approx(soft)
    assert sorted(soft) == pytest.approx([0, 0, 1 / 3, 2 / 3, 2 / 3, 1])
    shares = [case["comparison"]["cell_accuracy"] for case in cases["1003", 2]]
    assert nearness == pytest.approx(fmean(shares))
    assert 0.9 < fmean(shares) < 1
