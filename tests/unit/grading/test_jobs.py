"""Threads share jobs: nothing twice, nothing forgotten, and no thread idle while another waits."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast

import pytest

from judge.core.limits import Limits
from judge.core.task import Gold, InputFile, Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.grading.jobs import (
    CaseJob,
    ExpectedCost,
    Job,
    JudgedCase,
    ThreadExecutor,
    Worker,
    longest_first,
)
from judge.grading.keys import CaseKeys

KEYS = CaseKeys("run", "comparison")


def job(name: str, cases: int) -> Job:
    numbered = tuple(TestCase(number, inputs=(), golds=()) for number in range(1, cases + 1))
    task = Task(id=name, instruction="", kind="", cases=numbered)
    return Job(task, None, tuple(CaseJob(case, KEYS) for case in numbered), Limits())


class ScriptedWorker:
    """Handles cases with a function; see :class:`judge.grading.jobs.Worker`."""

    def __init__(self, do: Callable[[str, int], None]) -> None:
        self.stop = threading.Event()
        self.sandbox_error = None
        self._do = do

    def run(
        self,
        job: Job,
        emit: Callable[[JudgedCase], None],
        cases: Iterable[CaseJob] | None = None,
    ) -> None:
        for each in job.cases if cases is None else cases:
            self._do(job.task.id, each.case.number)
            result = CaseResult(job.task.id, 0, each.case.number, Verdict.AC, "")
            emit(JudgedCase(each.keys, result))


def done_by(do: Callable[[str, int], None], jobs: list[Job], threads: int) -> list[tuple[str, int]]:
    worker = cast("Worker", ScriptedWorker(do))
    judged = ThreadExecutor(worker, threads).judge(jobs)
    return [(each.result.task_id, each.result.case) for each in judged]


def test_every_case_is_done_once_however_many_threads_share_the_jobs() -> None:
    jobs = [job(f"task-{number}", number % 5) for number in range(40)]
    expected = Counter((each.task.id, c.case.number) for each in jobs for c in each.cases)
    assert Counter(done_by(lambda *_: None, jobs, threads=6)) == expected


def test_one_thread_does_the_cases_of_a_job_in_order() -> None:
    assert done_by(lambda *_: None, [job("a", 3), job("b", 2)], threads=1) == [
        ("a", 1),
        ("a", 2),
        ("a", 3),
        ("b", 1),
        ("b", 2),
    ]


def test_a_thread_without_a_job_takes_over_a_case_that_another_has_not_begun() -> None:
    # The first two cases end only once both have begun, which takes two threads.
    met = threading.Barrier(2, timeout=120)

    def do(_: str, number: int) -> None:
        if number in (1, 3):
            met.wait()

    assert sorted(done_by(do, [job("only", 3)], threads=2)) == [
        ("only", 1),
        ("only", 2),
        ("only", 3),
    ]


def test_what_a_thread_raises_reaches_the_caller() -> None:
    def do(_: str, number: int) -> None:
        if number == 2:
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        done_by(do, [job("a", 3)], threads=2)


def test_cost_is_the_size_of_what_a_case_is_made_of(tmp_path: Path) -> None:
    for name, size in (("in.xlsx", 300), ("gold.xlsx", 40), ("small.xlsx", 5)):
        (tmp_path / name).write_bytes(b"x" * size)
    large = TestCase(
        1, inputs=(InputFile(tmp_path / "in.xlsx"),), golds=(Gold(tmp_path / "gold.xlsx"),)
    )
    small = TestCase(
        2, inputs=(InputFile(tmp_path / "small.xlsx"),), golds=(Gold(tmp_path / "missing.xlsx"),)
    )
    task = Task(id="t", instruction="", kind="", cases=(small, large))
    cost = ExpectedCost()
    assert [cost.of(task, number) for number in (1, 2, 3)] == [340, 5, 0]
    assert longest_first([2, 3, 1], lambda number: cost.of(task, number)) == [1, 2, 3]


def test_what_costs_the_same_stays_in_the_order_given() -> None:
    assert longest_first(["b", "a", "cc", "d"], len) == ["cc", "b", "a", "d"]
