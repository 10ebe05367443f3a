"""Batches: no request is billed twice, whatever dies, expires or fails."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from werkzeug import Response

from judge.cli.infer import infer
from judge.errors import InferenceError, StoreError, UsageError
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.inference.batches.ahead import read_result
from judge.inference.batches.log import BATCHES_FILE, BatchLog
from judge.inference.batches.server import BatchClient, BatchEndpoint, Pace
from judge.inference.calls import Journal, ReplyCache
from judge.inference.client import OpenAIChatModel, RetryPolicy
from judge.inference.config import Price
from judge.inference.pacing import Budget
from judge.inference.plan import InferencePlan
from judge.inference.prompt import Template
from judge.inference.run import Resources, run_inference
from judge.inference.run_records import InferenceSummary
from tests.bounds import in_bounds
from tests.inference.batch_server import BatchServer
from tests.inference.planning import MakePlan
from tests.inference.scripted import fault, program
from tests.inference.test_faults import many

POLICY = RetryPolicy(attempts=3, first_wait_s=0.0, longest_wait_s=0.0, call_timeout_s=20.0)
AT_ONCE = Pace(0.0, 0.0, 0.0)


class Killed(BaseException):
    """Stands for the end of the process; nothing catches it."""


@pytest.fixture
def plan(make_plan: MakePlan) -> InferencePlan:
    """Prompts without the rows of workbooks, which take longer to read than everything else."""
    return make_plan(template=Template("short", "{instruction} {spreadsheet_path}"))


def run(plan: InferencePlan, server: BatchServer, path: Path, **resources: Any) -> InferenceSummary:
    model = OpenAIChatModel(server.url, None, policy=POLICY)
    plan = replace(plan, model=replace(plan.model, base_url=server.url))

    async def go() -> InferenceSummary:
        with RunDirectory(path) as store:
            batches = BatchClient(BatchEndpoint(model), BatchLog(store), POLICY, AT_ONCE)
            try:
                return await run_inference(
                    plan, store, Resources(model, **{"bulk_client": batches, **resources})
                )
            finally:
                await model.close()

    return asyncio.run(go())


def submissions(path: Path) -> dict[str, dict[str, Any]]:
    records = RunDirectory(path).read_records(SUBMISSIONS_FILE)
    return {str(each["id"]): dict(each) for each in records}


def test_replies_in_any_order_with_three_of_a_hundred_that_fail(
    plan: InferencePlan, tmp_path: Path
) -> None:
    def script(task: str, before: int) -> str | int:
        failing = server.asked.total() % 33 == 7
        return 500 if failing and not before else program(task)

    plan = many(plan, 100)
    with BatchServer(script) as server:
        summary = run(plan, server, tmp_path)
    assert summary.is_complete
    assert len(server.batches) == 2
    assert server.asked.total() == 103
    assert set(server.billed.values()) == {1}
    found = submissions(tmp_path)
    # Each task has the reply to its own prompt: the tasks of a suite of five are 20 times there.
    for number in range(100):
        assert f"1_t{number}_input.xlsx" in found[f"t{number}"]["solution"]
    calls = [call for each in found.values() for (call,) in [each["calls"]]]
    assert sorted(call["attempts"] for call in calls) == [1] * 97 + [2] * 3
    assert {call["batch"] for call in calls} == {"batch_0", "batch_1"}
    assert {call["latency_s"] for call in calls} == {None}
    # A second command asks nothing.
    heard = len(server.heard)
    with server:
        again = run(plan, server, tmp_path)
    assert (again.reused, len(server.heard)) == (100, heard)


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("state", ["intended", "uploaded", "created", "collected"])
def test_killed_at_any_step(
    plan: InferencePlan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: str,
    written: bool,
) -> None:
    note = BatchLog._note

    def dying(self: BatchLog, batch: Any, at: str, **facts: object) -> None:
        if at != state:
            note(self, batch, at, **facts)
            return
        if written:
            note(self, batch, at, **facts)
        raise Killed

    plan = replace(plan, assignments=plan.assignments[:2])
    with BatchServer() as server:
        monkeypatch.setattr(BatchLog, "_note", dying)
        with pytest.raises(Killed):
            run(plan, server, tmp_path)
        monkeypatch.undo()
        budget = Budget()
        summary = run(plan, server, tmp_path, budget=budget)
        assert (len(server.batches), set(server.billed.values())) == (1, {1})
    assert summary.is_complete
    found = submissions(tmp_path)
    assert [each["reply"] for each in found.values()] == [program("1"), program("2")]
    assert budget.cost == pytest.approx(sum(each["cost"] for each in found.values()))


def test_killed_among_the_replies(
    plan: InferencePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Journal.append
    written: list[object] = []

    def dying(self: Journal, record: Any) -> None:
        append(self, record)
        written.append(record)
        if len(written) == 2:
            raise Killed

    with BatchServer() as server:
        monkeypatch.setattr(Journal, "append", dying)
        with pytest.raises(Killed):
            run(plan, server, tmp_path)
        monkeypatch.undo()
        assert run(plan, server, tmp_path).is_complete
    assert (len(server.batches), set(server.billed.values())) == (1, {1})
    assert len(list(RunDirectory(tmp_path).read_records("calls.jsonl"))) == 5


def test_an_answer_that_is_lost(plan: InferencePlan, tmp_path: Path) -> None:
    """The batch was created, but the server's answer says that it was not."""
    with BatchServer(on_create=lambda: fault(502, "bad gateway")) as server:
        assert run(plan, server, tmp_path).is_complete
    assert (len(server.batches), set(server.billed.values())) == (1, {1})


def test_a_batch_that_is_not_made(plan: InferencePlan, tmp_path: Path) -> None:
    answers = [fault(429, "slow down")]

    def refuse() -> Response | None:
        if not answers:
            return None
        server.batches.clear()
        server.billed.clear()
        return answers.pop()

    with BatchServer(on_create=refuse) as server:
        assert run(plan, server, tmp_path).is_complete
    assert set(server.billed.values()) == {1}
    # No batch can be made of the first file any more.
    assert "DELETE /v1/files/file-0" in server.heard
    states = [each["state"] for each in RunDirectory(tmp_path).read_records(BATCHES_FILE)]
    assert states == [
        *("intended", "uploaded", "void"),
        *("intended", "uploaded", "created", "collected"),
    ]


def test_expired_and_failed_batches_are_asked_again(plan: InferencePlan, tmp_path: Path) -> None:
    def script(task: str, before: int) -> str | None:
        return None if task in {"2", "4"} and not before else program(task)

    with BatchServer(script, statuses=["failed", "expired"]) as server:
        summary = run(plan, server, tmp_path)
    assert summary.is_complete
    assert [each["status"] for each in server.batches.values()] == [
        *("failed", "expired", "completed")
    ]
    assert set(server.billed.values()) == {1}
    faults = {task: each["calls"][0]["faults"] for task, each in submissions(tmp_path).items()}
    assert ["expired" in " ".join(faults[task]) for task in "12345"] == [0, 1, 0, 1, 0]
    assert all("a scripted fault" in each[0] for each in faults.values())


def test_a_line_that_fails_the_whole_batch_is_left_out(plan: InferencePlan, tmp_path: Path) -> None:
    with BatchServer(statuses=["failed"], wrong_line=2) as server:
        summary = run(plan, server, tmp_path)
    assert (summary.finished, summary.failed) == (4, 1)
    assert "a scripted fault" in summary.failures["2"]


def test_what_fails_for_good(plan: InferencePlan, tmp_path: Path) -> None:
    with BatchServer(lambda task, _: 503 if task == "3" else program(task)) as server:
        summary = run(plan, server, tmp_path)
    assert (summary.finished, summary.failed) == (4, 1)
    assert "(3 attempts)" in summary.failures["3"]
    assert len(server.batches) == 3
    # The same command asks again, only for what is missing.
    with BatchServer() as server:
        assert run(plan, server, tmp_path).is_complete
    assert server.asked.total() == 1


def test_text_mode_asks_all_cases_at_once_and_keeps_to_the_budget(
    make_plan: MakePlan, tmp_path: Path
) -> None:
    plan = make_plan("text", template=Template("short", "{instruction} {spreadsheet_content}"))
    plan = replace(plan, assignments=plan.assignments[:3])
    cache = ReplyCache(tmp_path / "cache")
    plan = replace(plan, params={"temperature": 0})
    with BatchServer(lambda *_: "B12: 7") as server:
        budget = Budget(max_tokens=5_000)
        first = run(plan, server, tmp_path / "run", budget=budget, cache=cache)
        assert first.stopped is not None
        assert 0 < first.finished < 3
        assert first.finished + first.unasked == 3
        assert budget.tokens <= 5_000
        second = run(plan, server, tmp_path / "run", cache=cache)
        assert second.is_complete
        assert (len(server.batches), set(server.billed.values())) == (2, {1})
        assert server.asked.total() == 9
        # Another run finds the replies in the cache.
        other = run(plan, server, tmp_path / "other", cache=cache)
        assert other.is_complete
    assert server.asked.total() == 9


def test_a_run_with_batches_under_way_is_not_asked_otherwise(
    plan: InferencePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BatchServer() as server:
        with monkeypatch.context() as patch:
            patch.setattr(BatchEndpoint, "state", _die)
            with pytest.raises(Killed):
                run(plan, server, tmp_path)
        with pytest.raises(StoreError, match="5 requests of this run are under way"):
            run(plan, server, tmp_path, bulk_client=None)
        monkeypatch.setattr(BatchEndpoint, "endpoint", "https://elsewhere.example/v1")
        with pytest.raises(StoreError, match="not at https://elsewhere"):
            run(plan, server, tmp_path)
    assert len(server.batches) == 1


async def _die(*_: object) -> None:
    raise Killed


def command(*arguments: object) -> Any:
    return CliRunner().invoke(infer, [str(each) for each in arguments])


def test_the_process_killed_while_its_batch_is_made(tmp_path: Path) -> None:
    """SIGKILL at the worst moment: the batch exists, but the client was not informed."""
    processes: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        if processes:
            os.kill(processes.pop().pid, signal.SIGKILL)

    launch = "from judge.cli.main import main; main()"
    with BatchServer(on_create=kill) as server:
        options = ["-m", "scripted-1", "--base-url", server.url, "--out", tmp_path / "run"]
        options += ["--limit", 3, "--batch", "--no-cache", "--price", "1/2"]
        arguments = [sys.executable, "-c", launch, "infer", *map(str, options)]
        process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL)
        processes.append(process)
        assert process.wait(120) == -signal.SIGKILL
        assert len(server.batches) == 1
        again = command("--out", tmp_path / "run", "--json")
    assert again.exit_code == 0, again.output
    assert (len(server.batches), set(server.billed.values())) == (1, {1})
    summary = json.loads(again.stdout)["inference"]
    assert (summary["finished"], summary["failed"]) == (3, 0)
    # At half the price that was given.
    expected = Price(0.5, 1.0).of(summary["prompt_tokens"], summary["completion_tokens"])
    assert summary["cost"] == pytest.approx(expected)


def test_offline(tmp_path: Path) -> None:
    requests, results, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl", tmp_path / "run"
    options = ["-m", "some/model", "--limit", 3, "--out", out]
    written = command(*options, "--batch-file", requests)
    assert written.exit_code == 0, written.output
    assert "the requests of 3 tasks" in written.stdout
    lines = [json.loads(line) for line in requests.read_text().splitlines()]
    assert [line["body"]["model"] for line in lines] == ["some/model"] * 3
    assert len({line["custom_id"] for line in lines}) == 3
    scripted = BatchServer()
    results.write_text("".join(json.dumps(scripted.result(x)) + "\n" for x in lines[:0:-1]))
    incomplete = command("--out", out, "--batch-results", results)
    assert "2 of 3 finished, 1 failed" in incomplete.stdout
    assert "out.jsonl has no result" in incomplete.stdout
    results.write_text(json.dumps(scripted.result(lines[0])) + "\n")
    complete = command("--out", out, "--batch-results", results)
    assert complete.exit_code == 0, complete.output
    assert "3 of 3 finished (2 of them before)" in complete.stdout
    other = command(*options[:-1], tmp_path / "other", "--batch-results", results, "--rows", 1)
    assert isinstance(other.exception, InferenceError)
    assert "none of the 3 open requests" in other.exception.message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--batch", "--mode", "multi"], "--batch belongs to --mode single and text"),
        (["--batch-file", "x", "--mode", "multi"], "--batch-file belongs to"),
        (["--batch-file", "x", "--batch-results", "y"], "give one of them"),
    ],
)
def test_what_does_not_go_together(options: list[str], said: str) -> None:
    result = command("-m", "x", *options)
    assert isinstance(result.exception, UsageError)
    assert said in result.exception.message


# -- hostile servers -------------------------------------------------------------------------------

KEY = "sk-very-secret-0123456789"


def with_key(
    plan: InferencePlan, server: BatchServer, path: Path, pace: Pace = AT_ONCE
) -> InferenceSummary:
    model = OpenAIChatModel(server.url, KEY, policy=POLICY)
    with RunDirectory(path) as store:
        bulk_client = BatchClient(BatchEndpoint(model), BatchLog(store), POLICY, pace)
    return run(plan, server, path, bulk_client=bulk_client)


def written(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file())


def test_a_key_in_results_is_masked_in_everything_that_is_kept(
    plan: InferencePlan, tmp_path: Path
) -> None:
    with BatchServer(lambda task, _: f"```python\nkey = '{KEY}'\n```") as server:
        assert with_key(plan, server, tmp_path).is_complete
    assert KEY.encode() not in written(tmp_path)
    assert all("[key]" in each["solution"] for each in submissions(tmp_path).values())


def test_a_key_as_the_id_of_a_batch_is_not_kept(plan: InferencePlan, tmp_path: Path) -> None:
    server = BatchServer()
    server.on_create = lambda: Response(json.dumps({"id": KEY, "status": "completed"}))
    with server:  # the batch is looked for in the list, as where the answer was lost
        assert with_key(plan, server, tmp_path).is_complete
    assert KEY.encode() not in written(tmp_path)


def test_a_batch_that_never_ends_is_given_up(plan: InferencePlan, tmp_path: Path) -> None:
    with BatchServer(statuses=["in_progress"]) as server:
        with pytest.raises(InferenceError, match="has the status 'in_progress' more than"):
            with_key(plan, server, tmp_path, replace(AT_ONCE, patience_s=0.0))
        # It is taken up again, since it may have been paid for.
        server.batches["batch_0"]["status"] = "completed"
        assert with_key(plan, server, tmp_path).is_complete
    assert set(server.billed.values()) == {1}


def test_news_of_another_batch_are_refused(plan: InferencePlan, tmp_path: Path) -> None:
    with BatchServer() as server:
        server.on_create = lambda: _renamed(server)
        with pytest.raises(InferenceError, match="the server answered about another"):
            with_key(plan, server, tmp_path)


def _renamed(server: BatchServer) -> Response:
    batch = server.batches["batch_0"]
    said = Response(json.dumps(batch))
    server.batches["batch_0"] = {**batch, "id": "another"}
    return said


def test_results_of_millions_of_values_are_lines_that_say_nothing() -> None:
    line = b'{"custom_id":"a","response":{"status_code":200,"body":{"choices":['
    data = line + b"[]," * 15_000_000 + b"[]]}}}"

    def work() -> None:
        assert read_result(data) is None

    assert in_bounds(work, cpu_s=60, memory_bytes=400_000_000) == 0
    assert read_result(b"[" * 10_000) is None


def test_a_batch_server_that_redirects_gets_no_second_request(
    plan: InferencePlan, tmp_path: Path
) -> None:
    """The key is sent to nobody else."""
    with BatchServer() as server:
        location = {"Location": f"{server.url}/batches?elsewhere"}
        server.on_create = lambda: Response("", 307, headers=location)
        with pytest.raises(InferenceError, match="redirects are not followed"):
            with_key(plan, server, tmp_path)
    assert server.heard.count("POST /v1/batches") == 1
