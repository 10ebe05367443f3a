"""`judge infer` as users type it, against a scripted server."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from judge.api.inferring import dry_run
from judge.cli.infer import infer
from judge.errors import IncompleteRunError, InferenceError, JudgeError, StoreError, UsageError
from judge.grading.store import RunDirectory
from judge.inference.config import Price
from judge.inference.logs import export_log, import_log
from judge.suites import load_suite
from tests.inference.planning import MakePlan
from tests.inference.scripted import Reply, ScriptedServer, Seen, fault, program


def run(*arguments: str | Path | float) -> Result:
    return CliRunner().invoke(infer, [str(each) for each in arguments])


def error_of(result: Result) -> JudgeError:
    assert isinstance(result.exception, JudgeError), result.output
    return result.exception


def answer(seen: Seen) -> Reply:
    return program(seen.task)


def submissions(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "submissions.jsonl").read_text().splitlines()]


def test_the_sample_suite_and_what_a_run_remembers(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with ScriptedServer(answer) as server:
        first = run("-m", "scripted-1", "--base-url", server.url, "--out", out, "--limit", 2,
                    "--temperature", 0.5, "--param", "top_k=3", "--rows", 1,
                    "--no-cache")  # fmt: skip
        assert first.exit_code == 0, first.output
        assert "2 of 2 finished" in first.stdout
        assert f"judge score {out}" in first.stdout
        body = server.seen[0].body
        assert (body["temperature"], body["top_k"], body["top_p"]) == (0.5, 3, 1.0)
        more = run("--out", out, "--limit", 4, "--json")
        assert more.exit_code == 0, more.output
        assert len(server.seen) == 4
        assert server.seen[-1].body["top_k"] == 3
    summary = json.loads(more.stdout)["inference"]
    assert (summary["finished"], summary["reused"]) == (4, 2)
    suite = load_suite("sample")
    assert {record["id"] for record in submissions(out)} == {
        task.raw_id if task.raw_id is not None else task.id for task in suite.tasks[:4]
    }
    other = run("--out", out, "--temperature", 0.9)
    assert "temperature" in error_of(other).message
    assert isinstance(other.exception, StoreError)


def test_a_server_that_does_not_answer_is_named_while_the_command_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first reply comes once the command has said that it waits, the second one once more."""
    waits: queue.Queue[str] = queue.Queue()
    echo = click.echo

    def recording(message: str = "", **options: Any) -> None:
        if "waiting for replies" in message:
            waits.put(message)
        echo(message, **options)

    def script(seen: Seen) -> Reply:
        lines.append(waits.get(timeout=120))
        if seen.number == 1:
            while not lines[-1].startswith("1/2 tasks; waiting for replies for 0:0"):
                lines.append(waits.get(timeout=120))
        return program(seen.task)

    lines: list[str] = []
    monkeypatch.setattr(click, "echo", recording)
    monkeypatch.setattr("judge.cli.infer._SILENT_S", 0.05)
    with ScriptedServer(script) as server:
        result = run("-m", "x", "--base-url", server.url, "--out", tmp_path / "run", "--limit", 2,
                     "-c", 1, "--timeout", 240, "--no-cache")  # fmt: skip
    assert result.exit_code == 0, result.output
    assert lines[0].startswith("no task has finished; waiting for replies for 0:0")
    assert lines[0].endswith("(--timeout gives up a reply after 4:00)")


def test_failures_end_with_their_own_exit_code(tmp_path: Path) -> None:
    def script(seen: Seen) -> Reply:
        return fault(400, "odd request") if seen.number == 0 else program(seen.task)

    with ScriptedServer(script) as server:
        result = run("-m", "x", "--base-url", server.url, "--out", tmp_path, "--limit", 3, "-c", 1)
    assert isinstance(result.exception, IncompleteRunError)
    assert result.exception.exit_code == 11
    assert f"judge infer --out {tmp_path}" in (result.exception.hint or "")
    assert "2 of 3 finished, 1 failed" in result.stdout
    assert "odd request" in result.stdout


def test_the_budget(tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        options = ["-m", "x", "--base-url", server.url, "--out", str(tmp_path), "-c", "1"]
        no_price = run(*options, "--max-cost", 1)
        assert "no price is known" in error_of(no_price).message
        stopped = run(*options, "--max-tokens-total", 2500)
        assert isinstance(stopped.exception, InferenceError)
        assert "budget" in stopped.exception.message
        done = len(server.seen)
        assert 0 < done < 4
        rest = run("--out", tmp_path, "--price", "1/2", "--max-cost", 5)
        assert rest.exit_code == 0, rest.output
        assert "cost: $" in rest.stdout
        assert len(server.seen) == len(load_suite("sample").tasks)


def test_keys_come_from_the_environment_and_go_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-secret-of-this-test"
    with ScriptedServer(lambda _: fault(401, f"wrong key {key}")) as server:
        options = ["-m", "x", "--base-url", server.url, "--api-key-env", "MY_KEY"]
        missing = run(*options, "--out", tmp_path)
        assert "MY_KEY, which is not set" in error_of(missing).message
        monkeypatch.setenv("MY_KEY", key)
        refused = run(*options, "--out", tmp_path, "--limit", 1)
        assert server.seen[0].request.headers["Authorization"] == f"Bearer {key}"
    message = error_of(refused).message
    assert "wrong key [key]" in message
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or key.encode() not in path.read_bytes()
    header = run(*options, "--param", 'extra_headers={"Authorization": "x"}')
    assert "headers may hold keys" in error_of(header).message


@pytest.mark.slow
def test_a_key_is_nowhere_after_a_run_that_went_well(tmp_path: Path) -> None:
    """Runs the whole program, with everything that it prints, writes and caches."""
    key = "sk-secret-that-nobody-may-keep"

    def script(seen: Seen) -> Reply:
        if seen.number == 0:
            return fault(500, f"{seen.request.headers['Authorization']} is broken")
        return program(seen.task)

    cache = tmp_path / "cache"
    environment = {**os.environ, "MY_KEY": key, "JUDGE_CACHE": str(cache)}
    with ScriptedServer(script) as server:
        ran = subprocess.run(
            [sys.executable, "-c", "from judge.cli.main import main; main()", "infer",
             "-m", "x", "--base-url", server.url, "--api-key-env", "MY_KEY", "--seed", "1",
             "--limit", "2", "--out", "run", "-c", "1"],
            cwd=tmp_path, env=environment, capture_output=True, timeout=120, check=True,
        )  # fmt: skip
        assert server.seen[0].request.headers["Authorization"] == f"Bearer {key}"
    assert key.encode() not in ran.stdout + ran.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any(path.is_relative_to(cache) for path in written)
    assert b"[key] is broken" in (tmp_path / "run" / "calls.jsonl").read_bytes()
    for path in written:
        assert key.encode() not in path.read_bytes()


def test_an_address_with_a_password_is_not_remembered(tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        url = server.url.replace("http://", "http://me:pass-word@")
        assert run("-m", "x", "--base-url", url, "--out", tmp_path, "--limit", 1).exit_code == 0
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or b"pass-word" not in path.read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "which chat model"),
        (["-m", "x", "--feedback", "row-exec"], "--feedback belongs to --mode multi"),
        (["-m", "x", "--session"], "--session belongs to --mode multi"),
        (["-m", "x", "--stop", "explicit"], "--stop belongs to --mode multi"),
        (["-m", "x", "--rounds", "3"], "--rounds belongs to --mode multi"),
        (["-m", "x", "--price", "1"], "IN/OUT"),
        (["-m", "x", "--param", "top_k"], "NAME=VALUE"),
        (["-m", "x", "--ids", "no-such-task"], "no-such-task"),
        (["-m", "x", "--export-log", "x.jsonl"], "--export-log needs --out"),
    ],
)
def test_wrong_use(options: list[str], words: str) -> None:
    result = run(*options)
    assert isinstance(result.exception, UsageError)
    assert words in result.exception.message


def test_a_dry_run_asks_nothing(tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        result = run("-m", "gpt-4o", "--base-url", server.url, "--dry-run", "--out", tmp_path / "o")
        assert server.seen == []
    assert result.exit_code == 0, result.output
    assert "--- task " in result.stdout
    assert "### instruction" in result.stdout
    assert "cost: about $" in result.stdout
    assert not (tmp_path / "o").exists()
    unpriced = run("-m", "vllm", "--dry-run", "--limit", 1)
    assert "no price is known for vllm" in unpriced.stdout


def test_a_dry_run_as_json_has_every_prompt(tmp_path: Path) -> None:
    address = ("-m", "any", "--base-url", "http://127.0.0.1:1/v1")
    dry = json.loads(run(*address, "--dry-run", "--json").stdout)
    tasks = load_suite("sample").tasks
    assert [each["id"] for each in dry["prompts"]] == [task.id for task in tasks]
    for task, prompt in zip(tasks, dry["prompts"], strict=True):
        assert task.instruction in prompt["prompt"]
        assert prompt["tokens"] > 0
        assert prompt["problem"] is None
    assert {name: dry[name] for name in dry if name != "prompts"} == {
        "model": "any",
        "suite": "sample",
        "setting": "single",
        "samples": 1,
        "calls": [14, 14],
        "prompt_tokens": [sum(each["tokens"] for each in dry["prompts"])] * 2,
        "completion_tokens": [14 * 700] * 2,
        "cost_usd": None,
        "over_length": [],
    }
    priced = (*address, "--mode", "text", "--ids", tasks[0].id, "--price", "1/2", "--samples", 3)
    dry = json.loads(run(*priced, "--dry-run", "--json").stdout)
    assert [each["case"] for each in dry["prompts"]] == [1, 2, 3]
    assert dry["calls"] == [9, 9]
    assert dry["cost_usd"][0] > 0


def test_dry_run_figures(make_plan: MakePlan) -> None:
    plan = make_plan("multi")
    dry = dry_run(plan)
    assert dry.calls == (5, 25)
    assert dry.prompt_tokens[1] > 5 * dry.prompt_tokens[0]
    assert dry.cost is not None
    assert dry.cost[0] == pytest.approx((dry.prompt_tokens[0] + 2 * dry.completion_tokens[0]) / 1e6)
    bounded = dry_run(replace(plan, params={"max_tokens": 10}))
    assert bounded.completion_tokens == (50, 250)
    small = replace(plan.model, context_length=500, price=Price(0, 0))
    assert dry_run(replace(plan, model=small)).over_length == ("1", "2", "3", "4", "5")
    assert len(dry_run(make_plan("text")).prompts) == 15


def test_logs_of_the_benchmark_go_out_and_come_in(tmp_path: Path) -> None:
    with ScriptedServer(answer) as server:
        out = tmp_path / "run"
        assert run("-m", "x", "--base-url", server.url, "--out", out, "--limit", 3).exit_code == 0
    log = tmp_path / "conv_single_x.jsonl"
    exported = run("--out", out, "--export-log", log)
    assert "3 conversations written" in exported.stdout
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [set(line) for line in lines] == [
        {"id", "instruction_type", "conversation", "solution"}
    ] * 3
    assert "### instruction" in lines[0]["conversation"][0]
    assert lines[0]["solution"].startswith("import openpyxl")
    back = tmp_path / "back"
    imported = run("--import-log", log, "--dataset", "sample", "--out", back)
    assert imported.exit_code == 0, imported.output
    names = ("id", "solution", "input_path", "output_path")
    assert [{name: each[name] for name in names} for each in submissions(back)] == [
        {name: each[name] for name in names} for each in submissions(out)
    ]
    document = RunDirectory(back).read_run()
    assert document is not None
    assert document["imported_from"] == "conv_single_x.jsonl"
    conversation = json.loads((back / submissions(back)[0]["conversation"]).read_text())
    assert [each["role"] for each in conversation["messages"]] == ["user", "assistant"]
    again = tmp_path / "again.jsonl"
    with RunDirectory(back) as store:
        export_log(store, again)
    assert [json.loads(line)["conversation"] for line in again.read_text().splitlines()] == [
        line["conversation"] for line in lines
    ]
    with (
        RunDirectory(back) as store,
        pytest.raises(StoreError, match="already contains submissions"),
    ):
        import_log(log, load_suite("sample"), "sample", store)
    with RunDirectory(tmp_path / "empty") as store, pytest.raises(StoreError, match="to export"):
        export_log(store, again)
