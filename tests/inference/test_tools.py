"""``judge infer --mode tools``: calls on the wire, and tasks that a scripted model solves."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.cli.infer import infer
from judge.errors import UsageError
from judge.inference.chat import ChatReply, Message, ToolCall, read_reply, reply_of_json
from judge.inference.conversation import Conversation, converse
from judge.inference.execution import Execution
from judge.inference.tool_calls import MAX_SILENT, ToolEnvironment, arguments_of, definitions
from judge.replies.extract import extract
from judge.tools.contract import ToolFaultError
from tests.conftest import REPOSITORY
from tests.forked_command import ForkedCommand
from tests.inference.scripted import ScriptedServer, Seen, completion
from tests.unit.report.runs import TABLE, book


def call(name: str, number: str = "", /, **arguments: object) -> ToolCall:
    return ToolCall(number or f"call_{name}", name, json.dumps(arguments))


class Runner:
    """Answers each program with its first line; one that says ``leave`` leaves a workbook."""

    def __init__(self) -> None:
        self.programs: list[str] = []

    def execute(self, code: str) -> Execution:
        self.programs.append(code)
        return Execution(False, None, code.splitlines()[0], "", "leave" in code, 0.1)

    def execute_alone(self, code: str) -> Execution:
        return self.execute(code)

    def close(self) -> None:
        pass


def check_wire(messages: Sequence[Message]) -> None:
    """Each call is answered once, before any other message, and its arguments are an object."""
    waiting: list[str] = []
    used: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        for each in message.get("tool_calls", ()):
            assert each["id"] not in used
            assert isinstance(json.loads(each["function"]["arguments"]), dict)
            assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", each["function"]["name"])
            used.add(each["id"])
            waiting.append(each["id"])
    assert not waiting


@pytest.fixture(scope="module")
def workbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tools") / "1_7_input.xlsx"
    path.write_bytes(book(TABLE))
    return path


def hold(workbook: Path, *replies: ChatReply, rounds: int = 50) -> tuple[Conversation, Runner]:
    conversation, runner = Conversation(), Runner()
    left: Iterator[ChatReply] = iter(replies)

    async def ask(messages: tuple[Message, ...], _: int) -> ChatReply:
        check_wire(messages)
        return next(left)

    async def talk() -> None:
        with ThreadPoolExecutor(1) as threads:
            environment = ToolEnvironment(
                conversation, "solve it", rounds, workbook, runner, threads
            )
            await converse(environment, ask)

    asyncio.run(talk())
    check_wire(conversation.messages)
    return conversation, runner


def says(*calls: ToolCall, text: str = "", finish: str = "tool_calls") -> ChatReply:
    return ChatReply(text, finish, calls=calls)


SUBMITS = says(call("submit", program="leave"))


def results(conversation: Conversation) -> list[str]:
    return [str(each["content"]) for each in conversation.messages if each["role"] == "tool"]


def test_a_program_that_leaves_a_workbook_ends_the_conversation(workbook: Path) -> None:
    looks = says(call("list_sheets"), call("view_range", range="Sheet1!A1:B2"))
    talk, runner = hold(workbook, looks, says(call("python", code="print(1)")), SUBMITS)
    assert (talk.ended, talk.solution, talk.stands_alone) == ("submitted", "leave", True)
    assert runner.programs == ["print(1)", "leave"]
    assert "'Sheet1': visible" in results(talk)[0]
    assert "1 | Name | Amount" in results(talk)[1]
    assert [each["tool"] for each in talk.rounds[0]["calls"]] == ["list_sheets", "view_range"]


def test_a_program_without_a_workbook_goes_on_and_the_last_one_counts(workbook: Path) -> None:
    talk, _ = hold(workbook, says(call("submit", program="nothing")), SUBMITS)
    assert "There is not yet a workbook" in results(talk)[0]
    assert talk.ended == "submitted"
    talk, _ = hold(workbook, says(call("submit", program="nothing")), rounds=1)
    assert (talk.ended, talk.solution, talk.stands_alone) == ("rounds", "nothing", False)


def test_other_calls_of_a_reply_are_done_before_it_submits(workbook: Path) -> None:
    both = says(call("submit", program="leave"), call("python", code="first"))
    talk, runner = hold(workbook, both)
    assert runner.programs == ["first", "leave"]
    assert [message["role"] for message in talk.messages[-3:]] == ["assistant", "tool", "tool"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (call("nope"), "There is no tool 'nope'"),
        (ToolCall("a", "python", '{"code": '), "not JSON"),
        (ToolCall("a", "python", "[1]"), "must be an object"),
        (ToolCall("a", "python", ""), "needs the argument 'code'"),
        (call("python", code=3), "must be of type string"),
        (call("view_range", range="Nowhere!A1"), "Nowhere"),
        (ToolCall("", "", ""), "There is no tool ''"),
    ],
)
def test_a_call_that_cannot_be_done_says_why_and_the_next_one_is(
    workbook: Path, bad: ToolCall, said: str
) -> None:
    talk, _ = hold(workbook, says(bad), SUBMITS)
    assert said in results(talk)[0]
    assert talk.rounds[0]["calls"][0]["error"]
    assert talk.ended == "submitted"


def test_doubled_and_missing_identifiers_are_replaced(workbook: Path) -> None:
    same = [call("list_sheets", "x"), call("list_sheets", "x"), ToolCall("", "list_sheets", "")]
    talk, _ = hold(workbook, says(*same), says(call("list_sheets", "x")), SUBMITS)
    given = [each["id"] for record in talk.rounds[:2] for each in record["calls"]]
    assert given == ["x", "j00010002", "j00010003", "j00020001"]


def test_the_last_call_of_a_reply_that_was_cut_off_is_not_done(workbook: Path) -> None:
    cut = says(call("python", "a", code="one"), call("python", "b", code="tw"), finish="length")
    talk, runner = hold(workbook, cut, SUBMITS)
    assert runner.programs == ["one", "leave"]
    assert "cut off" in results(talk)[1]


def test_too_many_calls_of_a_reply_are_answered_and_not_done(workbook: Path) -> None:
    many = [call("python", f"c{number}", code=f"n{number}") for number in range(20)]
    talk, runner = hold(workbook, says(*many), SUBMITS)
    assert len(runner.programs) == 17
    assert sum("At most 16 calls" in each for each in results(talk)) == 4


def test_replies_without_calls_end_it(workbook: Path) -> None:
    quiet = says(text="Let me think.", finish="stop")
    talk, _ = hold(workbook, *[quiet] * MAX_SILENT)
    assert (talk.ended, len(talk.rounds)) == ("no-call", MAX_SILENT)
    talk, _ = hold(workbook, quiet, quiet, says(call("list_sheets")), quiet, SUBMITS)
    assert talk.ended == "submitted"


CALLS = st.builds(
    ToolCall,
    st.sampled_from(["", "a", "b", "a b", "x" * 70]),
    st.sampled_from(["python", "list_sheets", "submit", "no such", "", "\u202e"]),
    st.sampled_from(["", "{", "[]", "null", '"{}"', "{}", '{"code": "x"}', '{"program": "y"}']),
)
REPLIES = st.builds(
    says,
    text=st.sampled_from(["", "words", "<tool_call>{}</tool_call>"]),
    finish=st.sampled_from(["stop", "tool_calls", "length"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(REPLIES, st.lists(CALLS, max_size=4)), max_size=6))
def test_whatever_a_model_replies_the_wire_is_right(
    workbook: Path, script: list[tuple[ChatReply, list[ToolCall]]]
) -> None:
    replies = [says(*calls, text=r.text, finish=str(r.finish_reason)) for r, calls in script]
    hold(workbook, *replies, SUBMITS, SUBMITS, rounds=len(replies) + 1)


def test_a_reply_is_read_and_kept_with_its_calls() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "python", "arguments": "{"}},
            {"function": {"name": "submit", "arguments": {"program": "x"}}},
            "broken",
        ],
    }
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    reply = read_reply(body, 0.1)
    assert reply.calls == (
        ToolCall("a", "python", "{"),
        ToolCall("", "submit", '{"program": "x"}'),
    )
    assert reply_of_json(json.loads(json.dumps(reply.to_json()))) == reply
    assert "calls" not in ChatReply("words").to_json()


def test_arguments_that_are_empty_are_none() -> None:
    assert arguments_of("  ") == {}
    with pytest.raises(ToolFaultError, match="must be an object"):
        arguments_of("3")


# -- whole tasks -----------------------------------------------------------------------------------

SAMPLES = REPOSITORY / "dataset" / "sample" / "submissions.jsonl"
SEARCH = """
import os
seen = [os.path.join(root, name) for root, _, names in os.walk("/tmp") for name in names]
print([each for each in seen if "answer" in each or "gold" in each or "dataset.json" in each])
"""


def solutions() -> dict[str, str]:
    """Task of the sample suite -> a program that is accepted, for the first tasks."""
    found: dict[str, str] = {}
    for line in SAMPLES.read_text(encoding="utf-8").splitlines():
        record: dict[str, Any] = json.loads(line)
        program = extract(record.get("solution") or "").code
        if record.get("expected") == ["AC"] and program and "/mnt/data/input" in program:
            found.setdefault(str(record["id"]), program)
    return dict(list(found.items())[:3])


def with_calls(body: dict[str, Any], *calls: tuple[str, dict[str, str]]) -> dict[str, Any]:
    document = completion(None, body, finish_reason="stop")
    document["choices"][0]["message"]["tool_calls"] = [
        {"id": "same", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for n, a in calls
    ]
    return document


def test_a_scripted_model_solves_sample_tasks_with_tools(
    tmp_path: Path, forked_command: ForkedCommand
) -> None:
    programs, out = solutions(), tmp_path / "run"
    assert len(programs) == 3

    def script(seen: Seen) -> dict[str, Any]:
        check_wire(seen.body["messages"])
        assert seen.body["tools"] == definitions()
        if seen.round == 1:
            return with_calls(seen.body, ("list_sheets", {}), ("python", {"code": "kept = 41"}))
        if seen.round == 2:
            return with_calls(
                seen.body, ("python", {"code": "print(kept + 1)"}), ("python", {"code": SEARCH})
            )
        assert [each["content"].split("\n")[0] for each in seen.messages[-2:]] == ["42", "[]"]
        folder = re.search(r"(\S*)/1_[\w-]+_input\.xlsx", seen.prompt)
        assert folder is not None
        moved = programs[seen.task]
        for path in re.findall(r"/mnt/data/(?:input|output)/[\w.-]+", moved):
            named = Path(path).name
            moved = moved.replace(path, re.search(rf"\S*/{named}", seen.prompt)[0])  # type: ignore[index]
        return with_calls(seen.body, ("submit", {"program": moved}))

    with ScriptedServer(script) as server:
        asked = forked_command.run(
            ["infer", "-m", "scripted-1", "--base-url", server.url, "--dataset", "sample",
             "--mode", "tools", "--ids", ",".join(programs), "--out", str(out), "--json", "-q",
             "--sandbox", "bubblewrap"]
        )  # fmt: skip
        assert asked.returncode == 0, asked.stderr
        requests = len(server.seen)
        again = forked_command.run(["infer", "--out", str(out), "--json", "-q"])
        assert again.returncode == 0, again.stderr
        assert len(server.seen) == requests == 9
    records = [json.loads(line) for line in (out / "submissions.jsonl").read_text().splitlines()]
    assert {record["ended"] for record in records} == {"submitted"}
    assert {record["rounds"] for record in records} == {3}
    scored = forked_command.run(["score", str(out), "-q", "--sandbox", "bubblewrap"])
    assert scored.returncode == 0, scored.stderr
    report = json.loads((out / "report.json").read_text())
    assert report["overall"]["hard_restriction"] == 1.0


def test_a_dry_run_shows_the_tools_and_their_cost(tmp_path: Path) -> None:
    options = ["-m", "gpt-4o", "--mode", "tools", "--dry-run", "--limit", "1"]
    shown = CliRunner().invoke(infer, [*options, "--out", str(tmp_path / "o")])
    assert shown.exit_code == 0, shown.output
    assert re.search(r"tools, about [\d,]+ tokens in each request:", shown.output)
    assert "  submit(program): " in shown.output
    document = CliRunner().invoke(infer, [*options, "--out", str(tmp_path / "o"), "--json"])
    dry = json.loads(document.stdout)
    assert dry["tools"] == definitions()
    assert dry["prompt_tokens"][0] == dry["prompts"][0]["tokens"] + dry["tool_tokens"]


def test_typed_answers_are_not_asked_for_with_tools(tmp_path: Path) -> None:
    options = ["-m", "gpt-4o", "--mode", "tools", "--dry-run", "--out", str(tmp_path / "o")]
    refused = CliRunner().invoke(infer, [*options, "--dataset", "sample-typed"])
    assert isinstance(refused.exception, UsageError)
    assert "--mode tools is for tasks whose answer is a workbook" in refused.exception.message
