"""judge.Judge: answers of every kind, many threads, loops, closing. Sandboxes are scripted."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import judge
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import IncompleteRunError, SandboxError, UsageError
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox, Step
from judge.suites import Suite, load_suite

PLAIN = judge.JudgingOptions(jobs=2, recalc="never")
AC, WA, NO, IW, JE = Verdict.AC, Verdict.WA, Verdict.NO, Verdict.IW, Verdict.JE


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("sample")


@pytest.fixture(scope="module")
def task(suite: Suite) -> Task:
    """Three cases."""
    return suite.task("1001")


@pytest.fixture(scope="module")
def golds(task: Task) -> list[bytes]:
    return [case.gold_path.read_bytes() for case in task.cases]


def left(output: bytes) -> RunResult:
    return RunResult(RunStatus.OK, OutputStatus.COLLECTED, output=output, output_bytes=len(output))


class Playing(ScriptedSandbox):
    """Answers every run with the same function, without end."""

    def __init__(self, answer: Callable[[RunRequest], RunResult]) -> None:
        def steps() -> Step:
            return answer

        super().__init__(iter(steps, None))


@pytest.fixture
def right(task: Task, golds: list[bytes]) -> Playing:
    """Leaves the gold that belongs to the input."""
    by_input = {
        case.input_path.read_bytes(): gold for case, gold in zip(task.cases, golds, strict=True)
    }

    def answer(request: RunRequest) -> RunResult:
        (data,) = request.files.values()
        return left(by_input[data])

    return Playing(answer)


def test_a_reply_is_judged_on_all_cases(
    suite: Suite, task: Task, golds: list[bytes], right: Playing
) -> None:
    with judge.Judge(suite, PLAIN, sandbox=right) as opened:
        found = opened(1001, "Here it is:\n```python\nprint('hello')\n```")
        assert found.verdicts == (AC, AC, AC)
        assert (found.task_id, found.sample, found.soft, found.hard) == ("1001", 0, 1.0, 1.0)
        assert list(found.outputs.values()) == golds
        assert {each.program.strip() for each in right.requests} == {"print('hello')"}
        given = judge.Submission("1001", "print()", "/mnt/data/a.xlsx", "/mnt/data/b.xlsx", 7)
        assert opened(task, given).sample == 7
        assert right.requests[-1].collect == "/mnt/data/b.xlsx"
        assert opened("1001", "I cannot do that.").verdicts == (Verdict.CE,) * 3
    assert not right.closed, "whoever opened it closes it"


def test_finished_workbooks_need_no_sandbox(
    suite: Suite, task: Task, golds: list[bytes], tmp_path: Path
) -> None:
    path = tmp_path / "second.xlsx"
    path.write_bytes(golds[1])
    with judge.Judge(suite, PLAIN, runs=False) as opened:
        assert opened("1001", [golds[0], str(path), None]).verdicts == (AC, AC, NO)
        assert opened("1001", {3: golds[2]}).verdicts == (NO, NO, AC)
        found = opened(task, [b"not a workbook", golds[0], tmp_path / "absent.xlsx"])
        assert found.verdicts == (IW, WA, NO)
        assert (found.soft, found.outputs, found.failed) == (0.0, {}, ())
        for wrong, said in (
            (golds[0], "has 3 cases, and 1 workbooks"),
            ({4: golds[0]}, "no case 4"),
            ("print()", "without programs"),
            (judge.Submission("1002", "", "/a", "/b"), "answers task 1002"),
        ):
            with pytest.raises(UsageError, match=said):
                opened("1001", wrong)


def test_tasks_that_are_given_as_objects(suite: Suite, task: Task, golds: list[bytes]) -> None:
    first = replace(task, cases=task.cases[:1])
    with judge.Judge(options=PLAIN, runs=False) as opened:
        assert opened(first, golds[0]).hard == 1.0
        with pytest.raises(UsageError, match="no suite"):
            opened("1001", golds)
        with pytest.raises(UsageError, match="without the suite"):
            opened(first, "print()")
        position = str(task.checker.options["answer_position"])
        assert opened.compare(golds[0], golds[0], position).equal
    typed = load_suite("sample-typed").tasks[0]
    with judge.Judge(options=PLAIN, runs=False) as opened:
        said = str(typed.cases[0].golds[0].value)
        assert opened(typed, said).verdicts[0] is AC
        with pytest.raises(UsageError, match="as text"):
            opened(typed, [golds[0]])
    strict = replace(PLAIN, checker={"no_such_option": 1})
    with judge.Judge(options=strict, runs=False) as opened, pytest.raises(UsageError):
        opened(first, golds[0])


def test_only_so_many_work_at_a_time(suite: Suite, golds: list[bytes], right: Playing) -> None:
    at_work: set[int] = set()
    most: list[int] = []
    lock = threading.Lock()
    play = right.play

    def watched(request: RunRequest) -> RunResult:
        with lock:
            at_work.add(threading.get_ident())
            most.append(len(at_work))
        try:
            return play(request)
        finally:
            with lock:
                at_work.discard(threading.get_ident())

    right.play = watched  # type: ignore[method-assign]
    with judge.Judge(suite, PLAIN, sandbox=right) as opened, ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: opened("1001", f"print({number})"), range(24)))
    assert {each.verdicts for each in found} == {(AC, AC, AC)}
    assert max(most) <= 2
    assert len(right.requests) == 72


def test_a_sandbox_that_comes_back_is_used_again(suite: Suite, golds: list[bytes]) -> None:
    lost = SandboxError("the daemon is gone")
    sandbox = ScriptedSandbox([lost] * 4 + [left(each) for each in golds])
    with judge.Judge(suite, PLAIN, sandbox=sandbox) as opened:
        with pytest.raises(SandboxError, match="daemon is gone"):
            opened("1001", "print()")
        assert opened("1001", "print()").hard == 1.0


def test_a_case_that_the_judge_fails_on_is_not_a_failure_of_the_submission(
    suite: Suite, golds: list[bytes]
) -> None:
    def refuse(_: RunRequest) -> RunResult:
        raise SandboxError("no room")

    healthy = RunResult(RunStatus.OK, OutputStatus.MISSING)
    sandbox = ScriptedSandbox([*[refuse] * 3, healthy, left(golds[1]), left(golds[2])])
    with judge.Judge(suite, PLAIN, sandbox=sandbox) as opened:
        found = opened("1001", "print()")
    assert found.verdicts == (JE, AC, AC)
    assert [each.case for each in found.failed] == [1]
    assert (found.soft, found.hard) == (1.0, 1.0), "the case is in no score"


class Held:
    """Runs that wait until they are released."""

    def __init__(self, output: bytes) -> None:
        self.begun, self.free = threading.Semaphore(0), threading.Event()
        self._output = output

    def __call__(self, _: RunRequest) -> RunResult:
        self.begun.release()
        assert self.free.wait(60)
        return left(self._output)


def test_closing_ends_what_waits_and_what_works(suite: Suite, golds: list[bytes]) -> None:
    held = Held(golds[0])
    opened = judge.Judge(suite, replace(PLAIN, jobs=1), sandbox=Playing(held))
    with ThreadPoolExecutor(4) as threads:
        working = threads.submit(opened, "1001", "print()")
        assert held.begun.acquire(timeout=60)
        waiting = threads.submit(opened, "1001", "print()")
        closing = [threads.submit(opened.close) for _ in range(2)]
        with pytest.raises(UsageError, match="is closed"):
            waiting.result(60)
        assert not any(each.done() for each in closing), "the case that runs is waited for"
        held.free.set()
        with pytest.raises(IncompleteRunError, match="before all cases"):
            working.result(60)
        assert [each.result(60) for each in closing] == [None, None]
    opened.close()
    for call in (lambda: opened("1001", golds), lambda: opened.compare(golds[0], golds[0], "A1")):
        with pytest.raises(UsageError, match="is closed"):
            call()


def test_what_is_opened_is_closed(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ScriptedSandbox] = []

    def open_scripted(kind: str, *, jobs: int) -> ScriptedSandbox:
        made.append(ScriptedSandbox())
        assert (kind, jobs) == ("bubblewrap", 2)
        return made[-1]

    monkeypatch.setattr("judge.api.resources.open_sandbox", open_scripted)
    options = replace(PLAIN, sandbox="bubblewrap")
    with judge.Judge(suite, options) as opened:
        assert [each.closed for each in made] == [False], "opened before the first call"
        opened("1001", "no code")
    assert [each.closed for each in made] == [True]


def test_loops_are_not_held_up(suite: Suite, right: Playing, golds: list[bytes]) -> None:
    async def many() -> list[judge.JudgedSubmission]:
        async with judge.Judge(suite, PLAIN, sandbox=right) as opened:
            return await asyncio.gather(
                *(opened.ajudge("1001", f"print({number})") for number in range(6))
            )

    assert [each.hard for each in asyncio.run(many())] == [1.0] * 6

    held = Held(golds[0])
    sandbox = Playing(held)

    async def cancelled() -> None:
        async with judge.Judge(suite, PLAIN, sandbox=sandbox) as opened:
            call = asyncio.ensure_future(opened.ajudge("1001", "print()"))
            await asyncio.to_thread(held.begun.acquire)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            held.free.set()
        with pytest.raises(UsageError, match="is closed"):
            await opened.ajudge("1001", "print()")

    asyncio.run(cancelled())
    assert len(sandbox.requests) == 1, "the other cases are not run"


def test_a_fork_does_not_share_the_sandbox(
    suite: Suite, right: Playing, golds: list[bytes], tmp_path: Path
) -> None:
    """If two processes read from one service, they would get each other's verdicts."""
    opened = judge.Judge(suite, PLAIN, sandbox=right)
    told = tmp_path / "told"
    child = os.fork()
    if not child:  # no word of pytest's from here on
        try:
            opened("1001", golds)
        except UsageError as error:
            opened.close()
            told.write_text(error.message)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert f"was opened by the process {os.getpid()}" in told.read_text()
    assert opened("1001", golds).soft == 1
    opened.close()


@pytest.mark.parametrize("answer", [None, 5, object()])
def test_what_is_not_an_answer_is_refused(suite: Suite, right: Playing, answer: Any) -> None:
    with (
        judge.Judge(suite, PLAIN, sandbox=right) as opened,
        pytest.raises(UsageError, match="an answer is text or workbooks"),
    ):
        opened("1001", answer)
