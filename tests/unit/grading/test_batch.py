"""Batches: resume, reuse, judge errors. The sandbox is scripted, the comparison is real."""

from __future__ import annotations

import io
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import openpyxl
import pytest

from judge.compare.cells.options import range_spec
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import SandboxError
from judge.grading.batch import Event, Settings, grade, grade_outputs
from judge.grading.case import GradingRules
from judge.grading.jobs import ATTEMPTS, Job, JudgedCase
from judge.grading.running import FinishedOutput
from judge.grading.store import CASES_FILE, RunDirectory
from judge.recalc.contract import PLAIN, Dialect, EngineResult, EngineUnavailableError
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import (
    OutputStatus,
    RunRequest,
    RunResult,
    RunStatus,
    SandboxInfo,
    ServiceChannel,
)
from judge.suites.spreadsheetbench import InstructionType
from judge.workbook.cell import CellRange, CellRef
from tests.unit.recalc.fakes import ScriptedEngine

Answer = RunResult | SandboxError


class FakeSandbox:
    """Answers each run with a function of the request; counts runs and sessions."""

    def __init__(self, answer: Callable[[RunRequest], Answer]) -> None:
        self.answer = answer
        self.requests: list[RunRequest] = []
        self.sessions = 0
        self.info = SandboxInfo(backend="fake", image="image-1", python="3.11")

    def session(self) -> FakeSandbox:
        self.sessions += 1
        return self

    def run(self, request: RunRequest) -> RunResult:
        self.requests.append(request)
        answer = self.answer(request)
        if isinstance(answer, SandboxError):
            raise answer
        return answer

    def service(
        self, program: str, *, root: str = "", memory_bytes: int | None = None
    ) -> ServiceChannel:
        raise AssertionError(f"no service was asked for: {program[:20]} {root} {memory_bytes}")

    def has_root(self, root: str) -> bool:
        return root == "python"

    def root_digest(self, root: str) -> str | None:
        return root if root == "python" else None

    def close(self) -> None:
        """Nothing to close."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to close."""


def workbook(value: object) -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet["A1"] = value  # type: ignore[assignment]
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def wrote(value: object) -> RunResult:
    data = workbook(value)
    return RunResult(
        RunStatus.OK, OutputStatus.COLLECTED, exit_code=0, output=data, output_bytes=len(data)
    )


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """Three cases: the answer is 1, 2, 3 in A1; inputs contain the same numbers negated."""
    cases = []
    for number in (1, 2, 3):
        case = TestCase.of_workbooks(
            number, tmp_path / f"i{number}.xlsx", tmp_path / f"g{number}.xlsx"
        )
        case.input_path.write_bytes(workbook(-number))
        case.gold_path.write_bytes(workbook(number))
        cases.append(case)
    return Task("t", "?", InstructionType.CELL_LEVEL.value, tuple(cases), range_spec("A1"))


SUBMISSION = Submission("t", "print()", "/mnt/data/in.xlsx", "/mnt/data/out.xlsx")


def settings(sandbox: FakeSandbox, *, profile: str = "standard", jobs: int = 1) -> Settings:
    return Settings(
        sandbox=sandbox,
        recalculator=Recalculator([], mode="never"),
        rules=GradingRules(profile=get_profile(profile), recalc_mode="never"),
        limits=Limits(),
        jobs=jobs,
    )


def negated_input(request: RunRequest) -> RunResult:
    book = openpyxl.load_workbook(io.BytesIO(request.files["/mnt/data/in.xlsx"]))
    return wrote(-int(str(book.active["A1"].value)))  # type: ignore[index]


def always(answer: Answer) -> Callable[[RunRequest], Answer]:
    return lambda _: answer


def verdicts(store: RunDirectory) -> list[str]:
    return [str(record["verdict"]) for record in store.read_records(CASES_FILE)]


def test_each_case_runs_with_its_own_input_at_the_given_path(tmp_path: Path, task: Task) -> None:
    sandbox = FakeSandbox(negated_input)
    events: list[Event] = []
    with RunDirectory(tmp_path / "run") as store:
        outcome = grade(store, [(task, SUBMISSION)], settings(sandbox), on_event=events.append)
        assert verdicts(store) == ["AC", "AC", "AC"]
    assert [result.verdict for result in outcome.results.values()] == [Verdict.AC] * 3
    assert sandbox.sessions == 1, "one place for all cases of a submission"
    assert {request.collect for request in sandbox.requests} == {"/mnt/data/out.xlsx"}
    assert [(event.done, event.total, event.reused) for event in events] == [
        (1, 3, False),
        (2, 3, False),
        (3, 3, False),
    ]


def test_the_same_command_again_does_nothing(tmp_path: Path, task: Task) -> None:
    sandbox = FakeSandbox(negated_input)
    with RunDirectory(tmp_path / "run") as store:
        grade(store, [(task, SUBMISSION)], settings(sandbox))
        outcome = grade(store, [(task, SUBMISSION)], settings(sandbox))
        assert len(verdicts(store)) == 3
    assert (outcome.reused, len(sandbox.requests)) == (3, 3)


def test_only_what_is_missing_runs_after_an_interruption(tmp_path: Path, task: Task) -> None:
    with RunDirectory(tmp_path / "run") as store:
        grade(store, [(task, SUBMISSION)], settings(FakeSandbox(negated_input)))
    cases = tmp_path / "run" / CASES_FILE
    first, second, _ = cases.read_bytes().splitlines(keepends=True)
    cases.write_bytes(first + second[: len(second) // 2])
    sandbox = FakeSandbox(negated_input)
    with RunDirectory(tmp_path / "run") as store:
        outcome = grade(store, [(task, SUBMISSION)], settings(sandbox))
        assert verdicts(store) == ["AC", "AC", "AC"]
    assert (outcome.reused, len(sandbox.requests)) == (1, 2)


def test_other_code_runs_again(tmp_path: Path, task: Task) -> None:
    sandbox = FakeSandbox(negated_input)
    other = Submission("t", "print(1)", "/mnt/data/in.xlsx", "/mnt/data/out.xlsx")
    with RunDirectory(tmp_path / "run") as store:
        grade(store, [(task, SUBMISSION)], settings(sandbox))
        grade(store, [(task, other)], settings(sandbox))
    assert len(sandbox.requests) == 6


@pytest.mark.parametrize("profile", ["standard", "strict"])
def test_records_that_name_the_build_of_the_image_still_count(
    tmp_path: Path, task: Task, profile: str
) -> None:
    sandbox = FakeSandbox(negated_input)
    with RunDirectory(tmp_path / "run") as store:
        grade(store, [(task, SUBMISSION)], settings(sandbox))
        sandbox.info = replace(sandbox.info, image="content", former_image="image-1")
        outcome = grade(store, [(task, SUBMISSION)], settings(sandbox, profile=profile))
        assert outcome.reused == (3 if profile == "standard" else 0)
        assert len(sandbox.requests) == 3, "nothing runs again"
        sandbox.info = replace(sandbox.info, image="content", former_image="image-2")
        grade(store, [(task, SUBMISSION)], settings(sandbox))
    assert len(sandbox.requests) == (6 if profile == "standard" else 3)


def test_another_profile_judges_the_stored_outputs(tmp_path: Path, task: Task) -> None:
    sandbox = FakeSandbox(always(wrote("1")))
    with RunDirectory(tmp_path / "run") as store:
        grade(store, [(task, SUBMISSION)], settings(sandbox))
        grade(store, [(task, SUBMISSION)], settings(sandbox, profile="strict"))
        assert verdicts(store) == ["AC", "WA", "WA", "WA", "WA", "WA"]
    assert len(sandbox.requests) == 3


def test_another_gold_is_compared_again_without_running(tmp_path: Path, task: Task) -> None:
    sandbox = FakeSandbox(negated_input)
    with RunDirectory(tmp_path / "run") as store:
        grade(store, [(task, SUBMISSION)], settings(sandbox))
        task.cases[1].gold_path.write_bytes(workbook(99))
        outcome = grade(store, [(task, SUBMISSION)], settings(sandbox))
    assert [result.verdict.value for result in outcome.results.values()] == ["AC", "AC", "WA"]
    assert len(sandbox.requests) == 3


def test_a_sandbox_that_stumbles_is_tried_again(
    tmp_path: Path, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.grading.jobs.PAUSE_S", 0)
    stumbles = iter([SandboxError("lost"), SandboxError("lost")])
    sandbox = FakeSandbox(lambda request: next(stumbles, None) or negated_input(request))
    with RunDirectory(tmp_path / "run") as store:
        grade(store, [(task, SUBMISSION)], settings(sandbox))
        assert verdicts(store) == ["AC", "AC", "AC"]


def test_a_sandbox_that_is_gone_ends_the_batch_and_the_next_call_continues(
    tmp_path: Path, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.grading.jobs.PAUSE_S", 0)
    sandbox = FakeSandbox(always(SandboxError("daemon gone")))
    with RunDirectory(tmp_path / "run") as store:
        outcome = grade(store, [(task, SUBMISSION)], settings(sandbox))
        assert outcome.stopped is not None
        assert verdicts(store) == ["JE"]
        assert len(sandbox.requests) == ATTEMPTS + 1, "and one to see whether it is gone for all"
        sandbox.answer = negated_input
        outcome = grade(store, [(task, SUBMISSION)], settings(sandbox))
    assert outcome.stopped is None
    assert [result.verdict for result in outcome.results.values()] == [Verdict.AC] * 3


def test_a_submission_that_breaks_its_own_sandbox_does_not_end_the_batch(
    tmp_path: Path, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judge.grading.jobs.PAUSE_S", 0)

    def answer(request: RunRequest) -> Answer:
        if request.program == "break it":
            return SandboxError("the warden died")
        return (
            negated_input(request)
            if request.files
            else RunResult(RunStatus.OK, OutputStatus.MISSING)
        )

    breaker = Submission("t", "break it", "/mnt/data/in.xlsx", "/mnt/data/out.xlsx", sample=1)
    with RunDirectory(tmp_path / "run") as store:
        pairs = [(task, breaker), (task, SUBMISSION)]
        outcome = grade(store, pairs, settings(FakeSandbox(answer)))
    assert outcome.stopped is None
    found = {key: result.verdict.value for key, result in outcome.results.items()}
    assert [found["t", 1, case] for case in (1, 2, 3)] == ["JE", "JE", "JE"]
    assert [found["t", 0, case] for case in (1, 2, 3)] == ["AC", "AC", "AC"]


def test_a_reply_without_code_runs_nothing(tmp_path: Path, task: Task) -> None:
    sandbox = FakeSandbox(negated_input)
    empty = Submission("t", None, "/mnt/data/in.xlsx", "/mnt/data/out.xlsx")
    with RunDirectory(tmp_path / "run") as store:
        grade(store, [(task, empty)], settings(sandbox))
        assert verdicts(store) == ["CE", "CE", "CE"]
    assert (sandbox.requests, sandbox.sessions) == ([], 0)


def test_a_gold_that_cannot_be_read_is_a_bad_test(tmp_path: Path, task: Task) -> None:
    task.cases[0].gold_path.write_bytes(b"not a workbook")
    with RunDirectory(tmp_path / "run") as store:
        grade(store, [(task, SUBMISSION)], settings(FakeSandbox(negated_input)))
        assert verdicts(store) == ["BT", "AC", "AC"]


def test_an_output_that_is_not_a_workbook(tmp_path: Path, task: Task) -> None:
    text = RunResult(RunStatus.OK, OutputStatus.COLLECTED, output=b"a,b\n1,2\n")
    with RunDirectory(tmp_path / "run") as store:
        grade(store, [(task, SUBMISSION)], settings(FakeSandbox(always(text))))
        assert verdicts(store) == ["IW", "IW", "IW"]


def test_workers_share_the_work_and_records_stay_whole(tmp_path: Path, task: Task) -> None:
    sandbox = FakeSandbox(negated_input)
    pairs = [
        (task, Submission("t", "x", "/mnt/data/in.xlsx", "/mnt/data/out.xlsx", sample=sample))
        for sample in range(12)
    ]
    with RunDirectory(tmp_path / "run") as store:
        outcome = grade(store, pairs, settings(sandbox, jobs=4))
        assert verdicts(store) == ["AC"] * 36
    assert len(outcome.results) == 36


def test_an_interruption_keeps_what_was_judged(tmp_path: Path, task: Task) -> None:
    def interrupt(event: Event) -> None:
        if event.done == 2:
            raise KeyboardInterrupt

    with RunDirectory(tmp_path / "run") as store:
        with pytest.raises(KeyboardInterrupt):
            grade(
                store,
                [(task, SUBMISSION)],
                settings(FakeSandbox(negated_input)),
                on_event=interrupt,
            )
        assert verdicts(store) == ["AC", "AC"]


def test_finished_outputs_are_compared_without_a_sandbox(tmp_path: Path, task: Task) -> None:
    path = tmp_path / "out.xlsx"
    path.write_bytes(workbook(2))
    outputs = [FinishedOutput(task, case, path if case.number < 3 else None) for case in task.cases]
    chosen = Settings(
        sandbox=None,
        recalculator=Recalculator([], mode="never"),
        rules=GradingRules(profile=get_profile("standard"), recalc_mode="never"),
        limits=Limits(),
    )
    with RunDirectory(tmp_path / "run") as store:
        grade_outputs(store, outputs, chosen)
        assert verdicts(store) == ["WA", "AC", "NO"]
        assert grade_outputs(store, outputs, chosen).reused == 3


class StumblingEngine(ScriptedEngine):
    """Cannot be started the first time."""

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        result = super().compute(workbook, ranges, timeout_s=timeout_s, dialect=dialect)
        if len(self.asked) == 1:
            raise EngineUnavailableError("no room in its temporary folder")
        return result


def test_an_engine_that_cannot_be_had_costs_a_finished_output_its_verdict_alone(
    tmp_path: Path, task: Task
) -> None:
    outputs = []
    for case in task.cases:
        path = tmp_path / f"out{case.number}.xlsx"
        path.write_bytes(workbook(f"={case.number}*1" if case.number < 3 else 3))
        outputs.append(FinishedOutput(task, case, path))
    engine = StumblingEngine("libreoffice", {CellRef("Sheet", 1, 1): 2})
    chosen = Settings(
        sandbox=None,
        recalculator=Recalculator([engine]),
        rules=GradingRules(profile=get_profile("standard")),
        limits=Limits(),
    )
    with RunDirectory(tmp_path / "run") as store:
        outcome = grade_outputs(store, outputs, chosen)
        assert verdicts(store) == ["JE", "AC", "AC"]
        assert outcome.results["t", 0, 1].cause == "no room in its temporary folder"
        again = grade_outputs(store, outputs, chosen)
        assert (again.reused, again.results["t", 0, 1].verdict) == (2, Verdict.WA)


class ScriptedExecutor:
    """Answers as it is told to, and remembers the requests."""

    stopped = None

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.asked: list[Job] = []

    def judge(self, jobs: Iterable[Job]) -> Generator[JudgedCase]:
        for job in jobs:
            self.asked.append(job)
            for each in job.cases:
                result = CaseResult(job.task.id, job.sample, each.case.number, self.verdict)
                yield JudgedCase(each.keys, result)


def test_jobs_go_where_the_settings_say(tmp_path: Path, task: Task) -> None:
    sandbox, executor = FakeSandbox(negated_input), ScriptedExecutor(Verdict.WA)
    chosen = replace(settings(sandbox), executor_of=lambda _: executor)
    with RunDirectory(tmp_path / "run") as store:
        outcome = grade(store, [(task, SUBMISSION)], chosen)
        assert verdicts(store) == ["WA", "WA", "WA"]
    assert not sandbox.requests
    assert [job.submission for job in executor.asked] == [SUBMISSION]
    assert len(outcome.results) == 3
