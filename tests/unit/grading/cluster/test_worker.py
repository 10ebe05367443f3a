"""How a worker handles a request: outputs, ends, and faults. The sandbox is scripted."""

from __future__ import annotations

import contextlib
import json
import struct
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from judge.compare.cells.options import range_spec
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import SandboxError
from judge.files.documents import MalformedError
from judge.grading.batch import Settings, WorkerRecipe
from judge.grading.case import GradingRules
from judge.grading.case_records import record_of_result
from judge.grading.cluster import worker
from judge.grading.cluster.messages import Check, Identity, Introduction, Question, Reply, Request
from judge.grading.cluster.worker import WorkerResources
from judge.grading.jobs import CaseJob, Job
from judge.grading.keys import CaseKeys
from judge.grading.store import RunDirectory
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import OutputStatus, RunRequest, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox, Step
from judge.suites import load_suite
from tests.bounds import in_bounds

pytestmark = pytest.mark.slow

SAMPLE = Path(__file__).resolve().parents[4] / "dataset" / "sample"
GOLD = next((SAMPLE / "spreadsheet" / "1001").glob("1_*answer.xlsx"))
INPUT = next((SAMPLE / "spreadsheet" / "1001").glob("1_*input.xlsx"))


def resources(*script: Step) -> tuple[WorkerResources, ScriptedSandbox]:
    sandbox = ScriptedSandbox(script)

    def opened(recipe: WorkerRecipe, stack: contextlib.ExitStack) -> Settings:
        stack.callback(sandbox.close)
        rules = GradingRules(get_profile(recipe.profile), recalc_mode="never")
        return Settings(sandbox, Recalculator([], mode="never"), rules, Limits())

    return WorkerResources(opened), sandbox


def right() -> RunResult:
    return RunResult(RunStatus.OK, OutputStatus.COLLECTED, exit_code=0, output=GOLD.read_bytes())


def request(*numbers: int, folder: str | None = None) -> Request:
    cases = tuple(TestCase.of_workbooks(number, INPUT, GOLD) for number in (1, 2))
    jobs = tuple(
        Job(
            Task(str(number), "", "", cases, range_spec("A1")),
            Submission(str(number), "pass", "/mnt/data/in.xlsx", "/mnt/data/out.xlsx"),
            tuple(CaseJob(each, CaseKeys("r", "c")) for each in cases),
            Limits(),
        )
        for number in numbers
    )
    return Request("key", WorkerRecipe(), jobs, folder)


def replied(place: WorkerResources, asked: Request) -> Reply:
    """The reply, as it arrives at the client."""
    sent = Request.from_bytes(asked.to_bytes())
    return Reply.from_bytes(place.perform(sent).to_bytes(), asked.work)


def test_outputs_come_back_where_the_folder_is_not_seen() -> None:
    place, _ = resources(right(), right())
    judged = replied(place, request(1)).judged[0]
    assert [each.result.verdict for each in judged.values()] == [Verdict.AC, Verdict.AC]
    assert judged[0].output == GOLD.read_bytes()


def test_outputs_stay_in_the_folder_where_it_is_seen(tmp_path: Path) -> None:
    place, _ = resources(right(), right())
    judged = replied(place, request(1, folder=str(tmp_path))).judged[0]
    assert judged[0].output is None
    digest = judged[0].result.run["output_sha256"]
    assert digest is not None
    assert RunDirectory(tmp_path).get_workbook(digest) == GOLD.read_bytes()


def test_an_answer_goes_back_before_it_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "RETURN_BYTES", 2 * GOLD.stat().st_size)
    place, _ = resources(*(right() for _ in range(6)))
    assert set(replied(place, request(1, 2, 3)).judged) == {0}


def test_an_output_that_is_too_large_by_itself_is_a_judge_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "RETURN_BYTES", 10)
    place, _ = resources(right(), right())
    judged = replied(place, request(1)).judged[0]
    assert {each.result.verdict for each in judged.values()} == {Verdict.JE}
    assert "results folder" in judged[0].result.cause
    assert judged[0].output is None


def test_what_is_abandoned_is_ended_and_the_next_request_finds_a_new_sandbox() -> None:
    running, ended = threading.Event(), threading.Event()

    def hang(_: RunRequest) -> RunResult:
        running.set()
        assert ended.wait(60)
        raise SandboxError("the sandbox disappeared")

    place, sandbox = resources(hang, right(), right())
    replies: list[Reply] = []
    thread = threading.Thread(target=lambda: replies.append(place.perform(request(1))))
    thread.start()
    assert running.wait(60)
    closed = []
    for key in ("another", "key"):
        place.abandon(key)
        closed.append(sandbox.closed)
    assert closed == [False, True]
    ended.set()
    thread.join()
    assert len(sandbox.requests) == 1  # not tried again
    assert {each.result.verdict for each in place.perform(request(2)).judged[0].values()} == {
        Verdict.AC
    }


def broken(_: WorkerRecipe, __: contextlib.ExitStack) -> Settings:
    raise SandboxError("no sandbox is available")


def test_a_worker_that_cannot_open_its_sandbox_says_so() -> None:
    place = WorkerResources(broken)
    assert "no sandbox" in place.introduce(WorkerRecipe(), Question()).problem
    assert "no sandbox" in place.perform(request(1)).error


def test_a_fault_of_our_own_is_an_answer_as_well() -> None:
    place, _ = resources(RuntimeError("out of order"))
    assert "RuntimeError: out of order" in replied(place, request(1)).error


def test_a_suite_that_is_not_there_is_a_problem(tmp_path: Path) -> None:
    place, _ = resources()
    said = place.introduce(WorkerRecipe(), Question(str(tmp_path / "nowhere")))
    assert "nowhere" in said.problem


def test_a_worker_says_which_suite_it_has_and_whether_it_sees_the_folder(tmp_path: Path) -> None:
    place, _ = resources()
    question = Question(str(SAMPLE), str(tmp_path / "probe"))
    said = Introduction.from_bytes(place.introduce(WorkerRecipe(), question).to_bytes())
    assert said.identity.suite == load_suite(SAMPLE).digest
    assert said.identity.image == "none"
    assert not said.shares
    (tmp_path / "probe").touch()
    assert place.introduce(WorkerRecipe(), question).shares


def test_another_version_reads_nothing_but_the_question() -> None:
    question = Question(judge="0.0")
    sent = b"H" + question.to_bytes() + b"\nnot a pickle of this version"
    said = Introduction.from_bytes(worker.answer(sent))
    assert Identity(judge="0.0").difference(said.identity) is not None


def swapped(data: bytes, was: bytes, now: bytes) -> bytes:
    assert was in data
    return data.replace(was, now)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: swapped(data, b'"task":"1"', b'"task":"2"'),
        lambda data: swapped(data, b'"run_key":"r"', b'"run_key":"x"'),
        lambda data: swapped(data, b'"verdict":"AC"', b'"verdict":"XX"'),
        lambda data: swapped(data, b'"sample":0', b'"sample":9'),
        lambda data: data[:-1],
        lambda data: data + b"\x00",
    ],
)
def test_an_answer_to_something_else_is_refused(change: Callable[[bytes], bytes]) -> None:
    place, _ = resources(right(), right())
    asked = request(1)
    sent = place.perform(asked).to_bytes()
    assert Reply.from_bytes(sent, asked.work).judged
    with pytest.raises(MalformedError):
        Reply.from_bytes(change(sent), asked.work)


def test_a_check_comes_back_as_it_was_made() -> None:
    task = load_suite(SAMPLE).task("1001")
    asked = replace(request(), work=(Check(task, task.cases[0]),))
    place, _ = resources()
    here = place.perform(asked).checks[0]
    assert replied(place, asked).checks[0] == here
    assert here.gold_accepted


def test_an_answer_goes_back_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker with a lot of work is distinguished from one that is stuck."""
    now = [0.0]
    monkeypatch.setattr(worker, "_clock", lambda: now[0])

    def slow(_: RunRequest) -> RunResult:
        now[0] += worker.RETURN_S / 3
        return right()

    place, _ = resources(*(slow for _ in range(8)))
    assert [set(each) for each in replied(place, request(1, 2, 3, 4)).judged.values()] == [
        {0, 1},
        {0},
    ]


def test_records_that_are_long_go_back_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "RETURN_RECORD_BYTES", 10)
    place, _ = resources(*(right() for _ in range(6)))
    assert set(replied(place, request(1, 2)).judged[0]) == {0}


# -- answers of a worker that was taken over -------------------------------------------------------


def honest_record(asked: Request) -> dict[str, object]:
    work = asked.work[0]
    assert isinstance(work, Job)
    case = work.cases[0]
    result = CaseResult(work.task.id, work.sample, case.case.number, Verdict.AC)
    return dict(record_of_result(case.keys, result))


def answer_of(record: bytes, *, output: bytes | None = None, **changes: object) -> bytes:
    """An answer with a single record, valid or not."""
    length = -1 if output is None else len(output)
    head = {"seconds": 0.1, "judged": [[0, 0, len(record), length]], "checks": [], "gone": "",
            "error": "", **changes}  # fmt: skip
    shown = json.dumps(head).encode()
    return struct.pack(">I", len(shown)) + shown + record + (output or b"")


def test_fields_that_nobody_declared_are_left_out() -> None:
    asked = request(1)
    more = {f"field {number}": number for number in range(100_000)}
    record = {**honest_record(asked), **more, "run": {"stdout": "printed", **more}}
    reply = Reply.from_bytes(answer_of(json.dumps(record).encode()), asked.work)
    assert reply.judged[0][0].result.run == {"stdout": "printed"}


def hostile_answers(asked: Request) -> dict[str, Callable[[], bytes]]:
    honest = honest_record(asked)
    text = json.dumps(honest).encode()
    return {
        "a text of 200 MB": lambda: answer_of(
            json.dumps({**honest, "cause": "x" * 200_000_000}).encode()
        ),
        "a text of 70 MB": lambda: answer_of(
            json.dumps({**honest, "cause": "x" * 70_000_000}).encode()
        ),
        "millions of values": lambda: answer_of(
            text[:-1] + b',"run":{"origin":[' + b"[]," * 20_000_000 + b"[]]}}"
        ),
        "millions of values in the head": lambda: answer_of(text, gone=[[]] * 5_000_000),
        "millions of cases": lambda: answer_of(text, judged=[[0, 0, 1, -1]] * 1_000_000),
        "a head longer than the answer": lambda: struct.pack(">I", 2**32 - 1) + text,
        "a negative length": lambda: answer_of(text, judged=[[0, 0, -5, 5]]),
        "a length beyond the end": lambda: answer_of(text, judged=[[0, 0, len(text), 10**12]]),
        "a position of four thousand digits": lambda: answer_of(
            text, judged=[[10**4000, 0, len(text), -1]]
        ),
        "work that was not requested": lambda: answer_of(text, judged=[[1, 0, len(text), -1]]),
        "the last case, from the end": lambda: answer_of(text, judged=[[0, -1, len(text), -1]]),
        "a deep record": lambda: answer_of(
            text[:-1] + b',"comparison":{"notes":' + b"[" * 5000 + b"]" * 5000 + b"}}"
        ),
        "nothing": lambda: b"",
    }


@pytest.mark.parametrize("name", hostile_answers(request(1)))
def test_what_no_honest_worker_answers_is_refused_in_little_memory(name: str) -> None:
    asked = request(1)
    data = hostile_answers(asked)[name]()

    def work() -> None:
        with pytest.raises(MalformedError):
            Reply.from_bytes(data, asked.work)

    assert in_bounds(work, cpu_s=60, memory_bytes=800_000_000) == 0


def test_a_check_with_fields_of_other_types_is_refused() -> None:
    task = load_suite(SAMPLE).task("1001")
    asked = replace(request(), work=(Check(task, task.cases[0]),))
    place, _ = resources()
    sent = place.perform(asked).to_bytes()
    with pytest.raises(MalformedError, match="gold_accepted"):
        Reply.from_bytes(
            swapped(sent, b'"gold_accepted": true', b'"gold_accepted": "ye"'), asked.work
        )
