"""Records, logs, prompts and model lists of unknown origin are handled, or reported by name."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.core.limits import Limits
from judge.errors import InferenceError, JudgeError, StoreError, UsageError
from judge.grading.store import RunDirectory
from judge.inference.calls import Journal, ReplyCache
from judge.inference.config import load_models
from judge.inference.execution import SessionRunner
from judge.inference.logs import export_log, import_log
from judge.inference.pacing import Budget, Pacer, RateLimits
from judge.inference.plan import Assignment
from judge.inference.prompt import Template, build_prompt, load_user_template
from judge.inference.run import Resources, run_inference
from judge.inference.run_records import InferenceRecords, InferenceSummary
from judge.inference.solver import prompt_fields
from judge.suites import load_suite
from tests.fakes.chat_model import ScriptedModel
from tests.inference.planning import MakePlan

ODD: list[Any] = ["x", -5, [], {}, 1.5, True, "9" * 50, None]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["tokens", "cost", "sample", "case", "round", "reply", "request"])
def test_calls_that_nobody_made(name: str, odd: Any, tmp_path: Path) -> None:
    call = {"task": "1", "sample": 0, "case": 0, "round": 1, "request": "r", "tokens": 5,
            "cost": 0.5, "reply": {"text": "hello"}}  # fmt: skip
    (tmp_path / "calls.jsonl").write_text(json.dumps(call | {name: odd}) + "\n")
    budget = Budget()
    with RunDirectory(tmp_path) as store:
        journal = Journal(store, budget)
    assert budget.tokens >= 0, "nothing gives back what was spent"
    assert budget.cost >= 0
    found = journal.find(("1", 0, 0, 1, "r"))
    assert found is None or isinstance(found["reply"]["text"], str)


@pytest.mark.parametrize("odd", ODD[:-1])
@pytest.mark.parametrize("name", ["text", "faults", "seconds", "prompt_tokens", "cached"])
def test_replies_that_nobody_gave(name: str, odd: Any, tmp_path: Path) -> None:
    path = tmp_path / "ab" / "abc.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"text": "hello", name: odd}))
    reply = ReplyCache(tmp_path).get("abc")
    assert reply is None or (isinstance(reply.text, str) and reply.seconds == 0.0)


@pytest.mark.parametrize("record", [{}, {"id": None}, {"id": []}, {"id": 1, "sample": "x"},
                                    {"id": 1, "sample": -1}, {"id": 1, "sample": [2]}])  # fmt: skip
def test_submissions_that_say_not_whose_they_are(record: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "submissions.jsonl").write_text(json.dumps(record) + "\n")
    with RunDirectory(tmp_path) as store:
        with pytest.raises(StoreError, match="a record has the id"):
            InferenceRecords(store).finished()
        with pytest.raises(StoreError, match="a record has the id"):
            export_log(store, tmp_path / "log.jsonl")


@pytest.mark.parametrize("odd", ODD)
def test_counts_of_calls_that_are_none(odd: Any) -> None:
    summary = InferenceSummary()
    summary.count({"calls": odd})
    names = ("attempts", "prompt_tokens", "completion_tokens")
    summary.count({"calls": [odd, dict.fromkeys(names, odd)]})
    assert summary.finished == 2


@pytest.mark.parametrize("odd", [*ODD, [1], [{"content": {"a": 1}}], [[]], {"a": []}])
def test_conversations_that_are_none_are_exported_as_far_as_they_are(
    odd: Any, tmp_path: Path
) -> None:
    (tmp_path / "submissions.jsonl").write_text('{"id": 1, "solution": "x"}\n')
    (tmp_path / "conversations").mkdir()
    document = json.dumps({"messages": odd, "rounds": odd})
    (tmp_path / "conversations" / "1.0.json").write_text(document)
    with RunDirectory(tmp_path) as store:
        assert export_log(store, tmp_path / "log.jsonl") == 1


def fifo(path: Path) -> None:
    os.mkfifo(path)


def written(data: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


GOOD = b'{"id": 1001, "solution": "x = 1"}\n'
LOGS: dict[str, Callable[[Path], None]] = {
    "a fifo": fifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": lambda path: path.mkdir(),
    "nothing": lambda _: None,
    "utf-16": written(GOOD.decode().encode("utf-16")),
    "not utf-8": written(b'{"id": 1001, "solution": "\xff"}\n'),
    "deep": written(b'{"id": 1001, "solution": "x", "conversation": ' + b"[" * 200_000 + b"\n"),
    "deep and whole": written(
        b'{"id": 1001, "solution": "x", "conversation": ' + b"[" * 5000 + b"]" * 5000 + b"}\n"
    ),
    "twice": written(GOOD + GOOD),
    "an array": written(b"[1, 2]\n"),
    "no such task": written(b'{"id": "nobody", "solution": "x"}\n'),
    "an id that is none": written(b'{"id": {"a": 1}, "solution": "x"}\n'),
    "a solution that is none": written(b'{"id": 1001, "solution": {"a": 1}}\n'),
    "a sample that is none": written(b'{"id": 1001, "solution": "x", "sample": "x"}\n'),
    "a number without end": written(b'{"id": ' + b"9" * 10_000 + b', "solution": "x"}\n'),
    "a path that climbs": written(
        b'{"id": 1001, "solution": "x", "input_path": "/../../etc/passwd"}\n'
    ),
}


@pytest.mark.parametrize("name", LOGS)
def test_logs_that_cannot_be_taken_are_named(name: str, tmp_path: Path) -> None:
    log = tmp_path / "conv_single_x.jsonl"
    LOGS[name](log)
    with RunDirectory(tmp_path / "run") as store:
        with pytest.raises(JudgeError) as caught:
            import_log(log, load_suite("sample"), "sample", store)
        assert not (tmp_path / "run" / "run.json").exists()
    assert "conv_single_x.jsonl" in caught.value.message
    assert len(caught.value.message) < 2000


@pytest.mark.parametrize("texts", [[1, None, {}], [{"role": 1, "content": {"a": 1}}], [[[]]],
                                   ["\ud83d"], [{"role": "user"}], "text", {"a": 1}])  # fmt: skip
def test_conversations_of_logs_that_are_odd(texts: Any, tmp_path: Path) -> None:
    log = tmp_path / "conv_single_x.jsonl"
    lines = [
        {"id": 1001, "solution": "x = 1", "conversation": texts},
        {"id": 1002, "solution": "x", "conversation": texts, "sample": [1]},
    ]
    log.write_text("".join(json.dumps(each) + "\n" for each in lines))
    with RunDirectory(tmp_path / "run") as store:
        assert import_log(log, load_suite("sample"), "sample", store, ["1001"]) == 1
        assert export_log(store, tmp_path / "again.jsonl") == 1


def test_nothing_is_written_through_links(tmp_path: Path) -> None:
    """A folder of unknown origin may contain links to this user's files."""
    mine = tmp_path / "mine"
    mine.write_text("precious")
    with RunDirectory(tmp_path / "run") as store:
        records = InferenceRecords(store)
        records.lock()
        records.close()
        target = store.path / records.conversation_path("1", 0)
        target.symlink_to(mine)
        with pytest.raises(StoreError, match="cannot be written"):
            records.write_conversation("1", 0, {"id": 1})
        lock = store.path / ".inference.lock"
        lock.unlink()
        lock.symlink_to(tmp_path / "made")
        with pytest.raises(StoreError, match="cannot be written"):
            records.lock()
        lock.unlink()
        os.mkfifo(lock)
        with pytest.raises(StoreError):
            records.lock()
    assert mine.read_text() == "precious"
    assert not (tmp_path / "made").exists()


def test_half_a_surrogate_pair_ends_no_run(make_plan: MakePlan, tmp_path: Path) -> None:
    """JSON can contain a lone surrogate, in a suite or a reply; no server or file accepts it."""
    plan = make_plan()
    first = plan.assignments[0]
    odd = Assignment(replace(first.question, instruction="sum \ud83d up"), first.raw_id)
    repeatable = replace(plan, assignments=(odd,), params={"temperature": 0})
    model = ScriptedModel(["```python\nx = '\ud83d'\n```"])
    resources = Resources(model, cache=ReplyCache(tmp_path / "cache"))

    async def go() -> InferenceSummary:
        with RunDirectory(tmp_path) as store:
            return await run_inference(repeatable, store, resources)

    summary = asyncio.run(go())
    assert (summary.finished, summary.failed) == (1, 0)
    assert "sum \N{REPLACEMENT CHARACTER} up" in model.requests[0].messages[0]["content"]
    assert json.loads((tmp_path / "conversations" / "1.0.json").read_bytes())["state"] == "finished"
    assert len(list((tmp_path / "cache").rglob("*.json"))) == 1
    with RunDirectory(tmp_path) as store:
        assert export_log(store, tmp_path / "log.jsonl") == 1
    assert json.loads((tmp_path / "log.jsonl").read_bytes())["solution"] == "x = '\ud83d'\n"


class OddChannel:
    """An interpreter that a program has taken over."""

    def call(self, frame: bytes, timeout_s: float) -> bytes:
        return b'{"stdout": "a \\ud83d b", "error": "\\ud83d", "seconds": "x"}'

    def close(self) -> None:
        """Does nothing: nothing is open."""


def test_what_an_interpreter_says_can_be_sent_on(tmp_path: Path) -> None:
    class OddSandbox:
        def service(self, program: str, **_: Any) -> OddChannel:
            return OddChannel()

    workbook = tmp_path / "x.xlsx"
    workbook.write_bytes(b"x")
    sandbox: Any = OddSandbox()
    execution = SessionRunner(sandbox, workbook, "/tmp/i", "/tmp/o", Limits()).execute("x")
    (execution.printed + execution.error).encode("utf-8")


PROMPTS = {
    "{instruction} {instruction.__class__} {0} {} {{x}} {instruction!r:>99999999}": True,
    "{instruction} {__import__('os')} %s %(x)s ${x} {% include 'x' %} {{ 7*7 }}": True,
    "no field": False,
    "{instruction}" * 101: False,
    "{instruction}" + " " * 2_000_000: False,
}


@pytest.mark.parametrize("text", PROMPTS, ids=range(len(PROMPTS)))
def test_prompts_are_filled_and_nothing_else(
    text: str, make_plan: MakePlan, tmp_path: Path
) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text(text)
    if not PROMPTS[text]:
        with pytest.raises(UsageError, match=r"prompt\.txt"):
            load_user_template(path)
        return
    plan = make_plan()
    question = replace(plan.assignments[0].question, instruction="{output_path} {rounds}")
    filled = build_prompt(load_user_template(path), question, (), prompt_fields(plan, question))
    assert filled == text.replace("{instruction}", "{output_path} {rounds}")


NO_TEXTS = {
    "a fifo": fifo,
    "a device": LOGS["a device"],
    "a folder": LOGS["a folder"],
    "not utf-8": written(b"\xff{instruction}"),
}


@pytest.mark.parametrize("name", NO_TEXTS)
def test_prompts_are_texts_in_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    NO_TEXTS[name](path)
    with pytest.raises(UsageError, match=r"prompt\.txt"):
        load_user_template(path)


def test_long_names_of_fields_are_text() -> None:
    text = "{" + "a" * 1_000_000
    assert Template("x", text * 2).fill({"a": "b"}) == text * 2


def laughs(name: str, first: str, form: str) -> str:
    """Thirty levels, each of which expands to nine copies of the one before."""
    lines = [f"{name}0: &{name}0 {first}"]
    for level in range(1, 30):
        nine = ", ".join([f"*{name}{level - 1}"] * 9)
        lines.append(f"{name}{level}: &{name}{level} " + form.replace("NINE", nine))
    return "\n".join(lines)


LAUGHS = laughs("a", "{x: 1}", "{<<: [NINE]}")
ENTRY = "a: {base_url: 'http://x/v1', "
MODELS = {
    "aliases of aliases": LAUGHS,
    "lists of lists": laughs("b", "[x]", "[NINE]"),
    "within itself": "a: &a {base_url: *a}",
    "deep": "[" * 5_000,
    "large": "a: " + "x" * 2_000_000,
    "a date that is none": "a: {base_url: 2024-99-99}",
    "a tag": "a: !!python/object/apply:os.system [true]",
    "an address that is none": "a: {base_url: 'file:///etc/passwd'}",
    "a key of another kind": ENTRY + "key_env: [A, B]}",
    "a model of another kind": ENTRY + "model: 5}",
    "params of another kind": ENTRY + "params: [1]}",
    "a context of another kind": ENTRY + "context_length: long}",
    "other names of another kind": ENTRY + "also: 5}",
    "a price below zero": ENTRY + "price: {input: -1, output: 1, date: x, source: y}}",
    "a price that is none": ENTRY + "price: {input: .nan, output: 1, date: x, source: y}}",
    "a price of aliases": LAUGHS.replace("a29", "price"),
}


@pytest.mark.parametrize("name", MODELS)
def test_lists_of_models_that_are_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(MODELS[name])
    with pytest.raises(InferenceError, match=r"models\.yaml") as caught:
        load_models(path)
    assert len(caught.value.message) < 1000


def test_the_clock_of_the_day_decides_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock goes back by a day each time it is read, while calls are paced."""
    moments = iter(range(2_000_000_000, 0, -86_400))
    monkeypatch.setattr(time, "time", lambda: float(next(moments)))

    async def go() -> None:
        pacer = Pacer(RateLimits(requests=20, tokens=100_000, period_s=0.5))
        for _ in range(5):
            await pacer.admit(10)
            pacer.settle(10, 10, 10)
        pacer.pause(0.05)
        await pacer.admit(10)

    asyncio.run(asyncio.wait_for(go(), 60))
