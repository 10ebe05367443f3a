"""``judge infer --mode tools``: calls as they are sent, and tasks that a scripted model solves."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from judge.api.options import ScoreOptions
from judge.api.replaying import replay
from judge.cli.infer import infer
from judge.core.replies.extract import extract
from judge.core.verdict import Verdict
from judge.errors import UsageError
from judge.grading.store import RunDirectory
from judge.inference.chat import ChatReply, Message, ToolCall, read_reply, reply_of_json
from judge.inference.conversation import Conversation, converse
from judge.inference.execution import Execution
from judge.inference.pictures import PictureStore
from judge.inference.tools.calls import arguments_of, is_cut, text_calls_in
from judge.inference.tools.episode import ToolEnvironment, is_blocked
from judge.inference.tools.setting import (
    DEFAULT_DEPARTURES,
    ToolMode,
    departures_of,
    load_preset,
)
from judge.tools.box import BoxFile
from judge.tools.contract import ToolFaultError, ToolOutcome, check_arguments, repaired
from judge.tools.episodes import ToolEpisodeWriter, read_tool_episode
from judge.tools.native import MARKER, definitions_of, view_command
from judge.tools.sets import ToolSet, read_names
from tests.conftest import REPOSITORY
from tests.fakes.desktop import tiny_png
from tests.forked_command import ForkedCommand
from tests.inference.scripted import ScriptedServer, Seen, completion, fault

NATIVE = ("python", "bash", "list_sheets", "view_range", "render", "submit")


def call(name: str, number: str = "", /, **arguments: object) -> ToolCall:
    return ToolCall(number or f"call_{name}", name, json.dumps(arguments))


class Tools:
    """Answers each call with its arguments, or with the entry of ``outcomes`` for its text."""

    def __init__(self, answer: str, names: tuple[str, ...] = NATIVE) -> None:
        self.table = {tool.name: tool for tool in definitions_of(names, answer)}
        self.done: list[tuple[str, dict[str, Any]]] = []
        self.outcomes: dict[str, ToolOutcome] = {}
        self.files: dict[str, bytes] = {}
        self.dead = ""
        self.states: list[bytes] = []

    def repaired_arguments(
        self, name: str, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        tool = self.table.get(name)
        return (dict(arguments), []) if tool is None else repaired(tool.schema, arguments)

    def problem_with(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name not in self.table:
            return f"there is no tool {name!r}"
        try:
            check_arguments(self.table[name], arguments)
        except ToolFaultError as error:
            return error.message
        return ""

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        if problem := self.problem_with(name, arguments):
            return ToolOutcome(problem, "argument")
        command = str(arguments.get("command", ""))
        if command.startswith("bash -n"):
            broken = "if if" in command
            return ToolOutcome("syntax error", "tool") if broken else ToolOutcome("")
        self.done.append((name, dict(arguments)))
        if name == "python":
            self.states.append(str(arguments["code"]).encode())
        text = str(next(iter(arguments.values()), name))
        outcome = self.outcomes.get(text, ToolOutcome(text))
        if outcome.error == "died":
            self.dead = outcome.fault
        return outcome

    def workbook(self) -> str | None:
        return self.collect().sha256

    def collect(self) -> BoxFile:
        return BoxFile(self.states[-1]) if self.states else BoxFile(None, "there is no file")

    def read(self, path: str) -> BoxFile:
        data = self.files.get(path)
        return BoxFile(data, "" if data is not None else "there is no file")


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


class Held:
    """Returns a conversation with scripted replies, and its outcome."""

    def __init__(
        self,
        folder: Path,
        *replies: ChatReply,
        preset: str = "native",
        answer: str = "workbook",
        tools: Tools | None = None,
        published: frozenset[str] = frozenset(),
        seconds: float = 0.0,
        **changes: Any,
    ) -> None:
        loaded = load_preset(preset)
        form = "published" if preset == "ssb2" else answer
        self.tools = tools or Tools(form, loaded.tools if preset == "ssb2" else NATIVE)
        setting = replace(loaded.setting, **changes)
        names = tuple(self.tools.table)
        way = ToolMode(
            setting,
            loaded,
            ToolSet(preset, names, answer=form),
            cast("Any", answer),
            True,
            published,
        )
        self.conversation = Conversation()
        self.sent: list[tuple[Message, ...]] = []
        self.clock = 0.0
        left = iter(replies)
        client = SimpleNamespace(calls=[])
        store = RunDirectory(folder / "run")
        head: Any = {"line": "head", "id": "7", "sample": 0, "case": 1, "model": "m"}
        head |= {"setting": "tools/x", "instruction": "", "answer": answer, "tools": "0" * 64}
        head |= {"servers": [], "image": "", "files": {}, "collected": "", "limits": {}}
        head |= {"started": "", "start_s": 0.0, "attempt": 0}

        async def ask(messages: tuple[Message, ...], _: int) -> ChatReply:
            check_wire(messages)
            self.sent.append(messages)
            self.clock += seconds
            reply = next(left)
            client.calls.append(
                {"prompt_tokens": 100, "completion_tokens": 10, "cost": 0.5, "latency_s": 1.0}
            )
            return reply

        async def talk() -> None:
            with ThreadPoolExecutor(1) as threads, ToolEpisodeWriter(folder, head) as writer:
                environment = ToolEnvironment(
                    way,
                    cast("Any", self.tools),
                    self.conversation,
                    1,
                    [{"role": "system", "content": "s"}, {"role": "user", "content": "solve it"}],
                    writer=writer,
                    store=store,
                    pictures=PictureStore(folder / "pictures"),
                    client=cast("Any", client),
                    threads=threads,
                    program=run_program if answer == "program" else None,
                    clock=lambda: self.clock,
                )
                await converse(environment, ask)
                self.end = environment.end(self.tools.collect(), b"before")
                writer.append(self.end)
                self.path = writer.path

        asyncio.run(talk())
        self.store = store
        self.episode = read_tool_episode(self.path)
        self.ended = self.conversation.ended

    @property
    def results(self) -> list[str]:
        messages = self.conversation.messages
        return [str(each["content"]) for each in messages if each["role"] == "tool"]


def run_program(text: str) -> Execution:
    return Execution(False, None, "printed", "", "leave" in text, 0.1)


def says(*calls: ToolCall, text: str = "", finish: str = "tool_calls", **more: Any) -> ChatReply:
    return ChatReply(text, finish, calls=calls, **more)


SUBMITS = says(call("submit"))
QUIET = says(text="Let me think.", finish="stop")


def test_submit_ends_the_episode_and_each_state_of_the_workbook_is_kept(tmp_path: Path) -> None:
    held = Held(tmp_path, says(call("python", code="one"), call("python", code="two")), SUBMITS)
    assert held.ended == "submitted"
    lines = [line for turn in held.episode.turns for line in turn["calls"]]
    assert [line["tool"] for line in lines] == ["python", "python", "submit"]
    states = [line["workbook"] for line in lines]
    assert [held.store.get_workbook(str(state)) for state in states] == [b"one", b"two", b"two"]
    assert held.end["output"] == states[-1]
    assert (held.end["turns"], held.end["calls"], held.end["errors"]) == (2, 3, {})
    assert held.end["tokens"]["prompt"] == 200
    assert held.end["cost"] == 1.0


def test_other_calls_of_a_reply_are_done_before_it_submits(tmp_path: Path) -> None:
    held = Held(tmp_path, says(call("submit"), call("python", code="first")))
    assert [name for name, _ in held.tools.done] == ["python", "submit"]
    assert [message["role"] for message in held.conversation.messages[-3:]] == [
        *("assistant", "tool", "tool"),
    ]


def test_a_program_is_handed_in_by_its_path_and_counts_if_it_leaves_a_workbook(
    tmp_path: Path,
) -> None:
    tools = Tools("program")
    tools.files = {"a.py": b"print(1)", "b.py": b"leave"}
    tries = [says(call("submit", f"c{path}", path=path)) for path in ("none.py", "a.py", "b.py")]
    held = Held(tmp_path, *tries, tools=tools, answer="program")
    assert (held.ended, held.conversation.solution) == ("submitted", "leave")
    assert "there is no file" in held.results[0]
    assert "left no workbook" in held.results[1]
    assert held.end["errors"] == {"argument": 1, "tool": 1}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (call("nope"), "there is no tool 'nope'"),
        (ToolCall("a", "python", '{"code": '), "not JSON"),
        (ToolCall("a", "python", "[1]"), "must be an object"),
        (ToolCall("a", "python", "3"), "must be an object"),
        (ToolCall("a", "python", ""), "needs the argument 'code'"),
        (call("python", code=3), "must be of type string"),
        (ToolCall("", "", ""), "there is no tool ''"),
    ],
)
def test_a_call_that_cannot_be_done_says_why_and_the_next_one_is(
    tmp_path: Path, bad: ToolCall, said: str
) -> None:
    held = Held(tmp_path, says(bad), SUBMITS)
    assert said in held.results[0]
    assert held.episode.turns[0]["calls"][0]["error"] == "argument"
    assert held.ended == "submitted"


def test_doubled_and_missing_identifiers_are_replaced(tmp_path: Path) -> None:
    same = [call("list_sheets", "x"), call("list_sheets", "x"), ToolCall("", "list_sheets", "")]
    held = Held(tmp_path, says(*same), says(call("list_sheets", "x")), SUBMITS)
    lines = [line for turn in held.episode.turns[:2] for line in turn["calls"]]
    assert [line["id_sent"] for line in lines] == ["x", "j00010002", "j00010003", "j00020001"]
    assert [line["id"] for line in lines] == ["x", "x", "", "x"]


def test_habits_of_models_are_mended_and_counted(tmp_path: Path) -> None:
    view = ToolCall("a", "view_range", '{"range": "A1", "max_cells": 20.0}')
    held = Held(tmp_path, says(view, ToolCall("b", "list_sheets", " ")), SUBMITS)
    assert held.tools.done[0] == ("view_range", {"range": "A1", "max_cells": 20})
    lines = held.episode.turns[0]["calls"]
    assert lines[0]["repairs"] == ["max_cells: whole number"]
    assert lines[1]["repairs"] == ["empty arguments"]
    assert held.end["repairs"] == 2
    schema = {"properties": {"rows": {"type": "array"}, "n": {"type": "integer"}}}
    assert repaired(schema, {"rows": "[[1]]", "n": 2.5}) == (
        {"rows": [[1]], "n": 2.5},
        ["rows: text to array"],
    )


@pytest.mark.parametrize(
    ("stated", "given", "mended"),
    [
        ({"type": ["array", "null"]}, "[1]", [1]),
        ({"anyOf": [{"type": "array"}, {"type": "null"}]}, "[1]", [1]),
        ({"anyOf": [{"type": "array"}, {"type": "string"}]}, "[1]", "[1]"),
        ({"anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]}, "[1]", "[1]"),
        ({"type": ["integer", "null"]}, 2.0, 2),
        ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, 2.0, 2.0),
        ({"type": {"a": []}, "anyOf": 7}, "[1]", "[1]"),
        ({"type": [["array"], {}]}, "[1]", "[1]"),
        ({"type": "object"}, "[1]", "[1]"),
        (True, "[1]", "[1]"),
    ],
)
def test_a_repair_needs_a_schema_that_requires_it_and_accepts_any_schema(
    stated: object, given: object, mended: object
) -> None:
    arguments, repairs = repaired({"properties": {"x": stated}}, {"x": given})
    assert (arguments["x"], type(arguments["x"])) == (mended, type(mended))
    assert bool(repairs) is (type(given) is not type(mended))


def test_the_last_call_of_a_reply_that_was_cut_off_is_not_done(tmp_path: Path) -> None:
    calls = call("python", "a", code="one"), call("python", "b", code="tw")
    held = Held(tmp_path, says(*calls, finish="length"), SUBMITS)
    assert [arguments.get("code") for _, arguments in held.tools.done] == ["one", None]
    assert "cut off" in held.results[1]
    assert is_cut(ChatReply("", "tool_calls", completion_tokens=50), 50)
    assert not is_cut(ChatReply("", "tool_calls", completion_tokens=49), 50)


def test_too_many_calls_of_a_reply_are_answered_and_not_done(tmp_path: Path) -> None:
    many = [call("python", f"c{number}", code=f"n{number}") for number in range(20)]
    held = Held(tmp_path, says(*many), SUBMITS)
    assert len(held.tools.done) == 17
    assert sum("At most 16 calls" in each for each in held.results) == 4
    assert held.end["errors"] == {"limit": 4}


def test_replies_without_calls_end_it(tmp_path: Path) -> None:
    held = Held(tmp_path, *[QUIET] * 3)
    assert (held.ended, held.end["turns"]) == ("no-call", 3)
    held = Held(tmp_path, QUIET, QUIET, says(call("list_sheets")), QUIET, SUBMITS)
    assert held.ended == "submitted"
    written = says(text='<tool_call>{"name": "submit", "arguments": {}}</tool_call>', finish="stop")
    held = Held(tmp_path, *[written] * 3)
    assert "--tool-call-parser" in str(held.end["fault"])
    assert Held(tmp_path, written, text_calls=True).ended == "submitted"
    assert text_calls_in(written.text)[0].name == "submit"


def test_text_of_a_tool_never_ends_an_episode(tmp_path: Path) -> None:
    shown = Tools("workbook")
    shown.outcomes["x"] = ToolOutcome(f"{MARKER} submit DONE")
    held = Held(tmp_path, says(call("bash", command="x")), SUBMITS, tools=shown)
    assert held.end["turns"] == 2


@pytest.mark.parametrize(
    ("changes", "ended", "turns"),
    [
        ({"rounds": 2}, "turns", 2),
        ({"episode_tokens": 200}, "tokens", 2),
        ({"episode_cost": 1.4}, "cost", 3),
        ({"minutes": 0.1}, "time", 2),
    ],
)
def test_each_limit_ends_an_episode(
    tmp_path: Path, changes: dict[str, Any], ended: str, turns: int
) -> None:
    looks = [says(call("list_sheets", f"c{number}")) for number in range(5)]
    held = Held(tmp_path, *looks, seconds=4.0, **changes)
    assert (held.ended, held.end["turns"]) == (ended, turns)


def test_timeouts_in_a_row_end_an_episode(tmp_path: Path) -> None:
    tools = Tools("workbook")
    tools.outcomes["slow"] = ToolOutcome("", "timeout")
    calls = [says(call("bash", f"c{n}", command=text)) for n, text in enumerate("xy")]
    slow = [says(call("bash", f"s{number}", command="slow")) for number in range(5)]
    held = Held(tmp_path, slow[0], slow[1], calls[0], *slow[2:], tools=tools)
    assert (held.ended, held.end["turns"], held.end["errors"]) == ("timeouts", 6, {"timeout": 5})


def test_tools_that_are_gone_end_an_episode_and_say_whose_fault_it_was(tmp_path: Path) -> None:
    tools = Tools("workbook")
    tools.outcomes["kill"] = ToolOutcome("gone", "died", fault="the server excel: it ended")
    held = Held(tmp_path, says(call("bash", command="kill")), tools=tools)
    assert held.ended == "tool-set-died"
    assert held.end["fault"] == "the server excel: it ended"


def test_pictures_follow_all_results_or_stand_in_them_or_are_left_out(tmp_path: Path) -> None:
    tools = Tools("workbook")
    own = tiny_png(1)
    bomb = own[:16] + (60_000).to_bytes(4, "big") * 2 + own[24:]
    tools.outcomes["A1:B2"] = ToolOutcome("drawn", pictures=(own, b"no picture", bomb))
    both = says(call("render", "a", range="A1:B2"), call("list_sheets", "b"))
    held = Held(tmp_path, both, SUBMITS, tools=tools)
    roles = [message["role"] for message in held.sent[-1]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [part["type"] for part in held.sent[-1][-1]["content"]] == ["text", "picture"]  # type: ignore[index]
    assert len(held.episode.turns[0]["calls"][0]["pictures"]) == 1
    assert "a picture is left out" in str(held.sent[-1][3]["content"])
    held = Held(tmp_path, both, SUBMITS, tools=tools, pictures="in-result")
    assert isinstance(held.sent[-1][3]["content"], list)
    held = Held(tmp_path, both, SUBMITS, tools=tools, pictures="none")
    assert "not shown" in str(held.sent[-1][3]["content"])
    assert [message["role"] for message in held.sent[-1]] == roles[:-1]


def test_old_results_are_left_out_of_a_long_conversation_and_the_task_never(
    tmp_path: Path,
) -> None:
    looks = [says(call("bash", f"c{number}", command="x" * 4000)) for number in range(4)]
    held = Held(tmp_path, *looks, SUBMITS, context_tokens=2200)
    last = held.sent[-1]
    assert last[1]["content"] == "solve it"
    contents = [str(message["content"]) for message in last if message["role"] == "tool"]
    assert contents[0] == contents[1] == "(left out to save room)"
    assert contents[-1] == "x" * 4000
    sent = held.episode.turns[-1]["sent"]
    assert sent["left_out"]
    assert set(sent["left_out"]) < set(sent["messages"])


def test_reasoning_goes_back_in_the_field_that_it_came_in(tmp_path: Path) -> None:
    message = {
        "content": "",
        "reasoning_content": "because",
        "tool_calls": [{"id": "a", "function": {"name": "list_sheets", "arguments": "{}"}}],
    }
    usage = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 5}}
    body = {"choices": [{"message": message}], "usage": usage}
    reply = read_reply(json.dumps(body).encode(), 0.1)
    assert reply.cached_tokens == 5
    held = Held(tmp_path, reply, SUBMITS)
    assert held.sent[-1][2]["reasoning_content"] == "because"  # type: ignore[typeddict-item]


CALLS = st.builds(
    ToolCall,
    st.sampled_from(["", "a", "b", "a b", "x" * 70]),
    st.sampled_from(["python", "list_sheets", "submit", "no such", "", "\u202e"]),
    st.sampled_from(["", "{", "[]", "null", '"{}"', "{}", '{"code": "x"}', '{"path": "y"}']),
)
REPLIES = st.builds(
    says,
    text=st.sampled_from(["", "words", "<tool_call>{}</tool_call>"]),
    finish=st.sampled_from(["stop", "tool_calls", "length"]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(REPLIES, st.lists(CALLS, max_size=4)), max_size=6),
    st.sampled_from(["native", "ssb2"]),
)
def test_whatever_a_model_replies_the_wire_is_right(
    tmp_path_factory: pytest.TempPathFactory,
    script: list[tuple[ChatReply, list[ToolCall]]],
    preset: str,
) -> None:
    replies = [says(*calls, text=r.text, finish=str(r.finish_reason)) for r, calls in script]
    folder = tmp_path_factory.mktemp("wire")
    Held(folder, *replies, SUBMITS, SUBMITS, rounds=len(replies) + 1, preset=preset)


def test_a_reply_is_read_and_kept_with_its_calls() -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "python", "arguments": "{"}},
            {"function": {"name": "submit", "arguments": {"path": "x"}}},
            "broken",
        ],
    }
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    reply = read_reply(body, 0.1)
    assert reply.calls == (
        ToolCall("a", "python", "{"),
        ToolCall("", "submit", '{"path": "x"}'),
    )
    assert reply_of_json(json.loads(json.dumps(reply.to_json()))) == reply
    assert "calls" not in ChatReply("words").to_json()


def test_arguments_that_are_empty_are_none() -> None:
    assert arguments_of("  ") == {}
    with pytest.raises(ToolFaultError, match="must be an object"):
        arguments_of("3")


# -- the published setting -------------------------------------------------------------------------


def ssb2(folder: Path, *replies: ChatReply, **changes: Any) -> Held:
    return Held(folder, *replies, preset="ssb2", **changes)


def run(command: str, number: int = 0) -> ChatReply:
    return says(call("bash", f"c{number}", command=command))


def test_the_published_tools_are_these_to_the_letter() -> None:
    stored = json.loads((Path(__file__).parent / "ssb2_tools.json").read_text())
    assert ToolSet("ssb2", load_preset("ssb2").tools, answer="published").definitions == stored


def test_the_requests_of_a_published_episode_are_those_of_its_transcript(tmp_path: Path) -> None:
    """Roles, calls and results to the byte; what is our own wording stands as its name.

    The transcript rests on a reading of the published agent (RUCKBReasoning/SpreadsheetBench-2,
    SWE-agent/sweagent/agent/agents.py and models.py at d83edf90): a program of its own, which keeps
    a history and asks again as they do, made it, for a model without a field for reasoning.
    """
    tools = Tools("published", load_preset("ssb2").tools)
    tools.outcomes |= {"slow": ToolOutcome("", "timeout"), "silent": ToolOutcome("")}
    tools.outcomes["long"] = ToolOutcome("a" * 6000 + "b" * 6000)
    held = ssb2(
        tmp_path,
        says(text="I will look.", finish="stop"),
        says(text="Now.", finish="stop"),
        says(call("view_xlsx", "v", file_path="in.xlsx", mode="list")),
        run("slow", 1),
        run("silent", 2),
        says(call("bash", "x", command="a"), call("bash", "y", command="b")),
        run("long", 3),
        SUBMITS,
        tools=tools,
        published=DEFAULT_DEPARTURES,
    )
    words = load_preset("ssb2").words
    own = {words.say("no_call"): "<no-call>", words.say("empty"): "<empty>"}
    own |= {words.say("timeout", seconds="60"): "<timeout>"}
    own |= {words.say("too_many", calls="2"): "<too-many>"}
    transcript = [
        [
            {
                **message,
                "content": own.get(str(message["content"]), _shortened(str(message["content"]))),
            }
            for message in request
        ]
        for request in held.sent
    ]
    stored = Path(__file__).parent / "ssb2_transcript.json"
    assert transcript == json.loads(stored.read_text())


def _shortened(text: str) -> str:
    return re.sub(r"(a{5000})|(b{5000})", lambda match: f"<5,000 {match[0][0]}>", text)


@pytest.mark.parametrize(("length", "cut"), [(9_999, False), (10_000, False), (10_001, True)])
def test_published_results_are_cut_beyond_ten_thousand_characters(
    tmp_path: Path, length: int, cut: bool
) -> None:
    tools = Tools("published", load_preset("ssb2").tools)
    tools.outcomes["x"] = ToolOutcome("y" * length)
    held = ssb2(tmp_path, run("x"), SUBMITS, tools=tools)
    assert ("(1 characters are left out)" in held.results[0]) is cut
    assert (held.results[0] == "y" * length) is not cut


@pytest.mark.parametrize(("replies", "ended"), [(49, "submitted"), (50, "turns"), (51, "turns")])
def test_published_episodes_have_fifty_replies(tmp_path: Path, replies: int, ended: str) -> None:
    script = [run(f"n{number}", number) for number in range(replies)]
    held = ssb2(tmp_path, *script, SUBMITS)
    assert (held.ended, held.end["turns"]) == (ended, 50)
    held = ssb2(tmp_path, *script, SUBMITS, published=frozenset({"call-51"}))
    assert (held.ended, held.end["turns"]) == (ended, 51 if replies > 49 else 50)
    assert len(held.tools.done) == 50


def test_three_replies_that_cannot_be_used_end_a_published_episode(tmp_path: Path) -> None:
    two = says(call("bash", "a", command="x"), call("bash", "b", command="y"))
    blocked, broken = run("python"), run("if if")
    held = ssb2(tmp_path, two, blocked, broken)
    assert (held.ended, held.tools.done) == ("format", [])
    assert [turn["told"][:20] for turn in held.episode.turns] == [
        "2 commands were give",
        *["Your reply cannot be"] * 2,
    ]
    no_object = says(ToolCall("a", "bash", "[1]"))
    assert ssb2(tmp_path, no_object).ended == "format"


def test_mistakes_vanish_from_the_history_as_published_unless_that_is_corrected(
    tmp_path: Path,
) -> None:
    script = [QUIET, run("x", 1), run("y", 2), SUBMITS]
    published = ssb2(tmp_path, *script, published=frozenset({"vanishing-mistakes"}))
    assert [len(request) for request in published.sent] == [2, 4, 4, 6]
    corrected = ssb2(tmp_path, *script)
    assert [len(request) for request in corrected.sent] == [2, 4, 6, 8]
    assert published.end["turns"] == corrected.end["turns"] == 4


def test_a_marker_in_any_output_ends_it_only_as_published(tmp_path: Path) -> None:
    tools = Tools("published", load_preset("ssb2").tools)
    tools.outcomes["cat tool"] = ToolOutcome(f"x{MARKER}y")
    marked = frozenset({"marker"})
    assert ssb2(tmp_path, run("cat tool"), tools=tools, published=marked).ended == "submitted"
    assert ssb2(tmp_path, run("cat tool"), SUBMITS, tools=tools).end["turns"] == 2
    assert ssb2(tmp_path, run("exit")).ended == "submitted"


@pytest.mark.parametrize(
    ("command", "published", "corrected"),
    [
        ("python", True, True),
        ("python script.py", False, False),
        ("vim x", False, True),
        ("v", True, False),
        ("tail", True, False),
        ("tail -f x", False, True),
        ("makeup", False, False),
    ],
)
def test_commands_are_refused_by_one_rule_or_the_other(
    command: str, published: bool, corrected: bool
) -> None:
    assert is_blocked(command, published=True) is published
    assert is_blocked(command, published=False) is corrected


def test_arguments_of_the_viewer_move_up_only_as_published() -> None:
    arguments = {"file_path": "f.xlsx", "mode": "content", "start_row": 1, "end_row": 50}
    assert view_command(True, arguments) == "view_xlsx f.xlsx content 1 50"
    assert view_command(False, arguments) == "view_xlsx f.xlsx content '' 1 50"


def test_departures_are_named_and_belong_to_the_published_setting() -> None:
    published, native = load_preset("ssb2"), load_preset("native")
    assert departures_of(published, (), ()) == {"vanishing-mistakes", "values"}
    assert departures_of(published, ("marker",), ("values",)) == {"vanishing-mistakes", "marker"}
    with pytest.raises(UsageError, match="names no behaviour of the published agent"):
        departures_of(published, ("network",), ())
    with pytest.raises(UsageError, match="can only be used with --tools ssb2"):
        departures_of(native, ("marker",), ())
    shows = [
        ToolMode(published.setting, published, ToolSet("ssb2", ()), as_published=each).shows
        for each in (frozenset({"values"}), frozenset())
    ]
    assert shows[0] == "values and formulas"
    assert "no values" in shows[1]


def test_names_of_tools_are_read() -> None:
    assert read_names("mcp:excel, find ,mcp:excel", ()) == (("find", "submit"), ("excel",))
    assert read_names("native,python", ("bash",))[0] == ("bash", "python", "submit")
    with pytest.raises(UsageError, match="no tool 'nothing'"):
        read_names("nothing", ())
    with pytest.raises(UsageError, match="names no tool"):
        read_names(" , ", ())


# -- whole tasks -----------------------------------------------------------------------------------

SAMPLES = REPOSITORY / "dataset" / "sample" / "submissions.jsonl"
SEARCH = (
    "find / -xdev \\( -name '*answer*' -o -name '*gold*' -o -name dataset.json \\) 2>/dev/null "
    "| grep -vE '^/(usr|proc|sys|opt|lib|etc)' ; echo done"
)


def solutions() -> dict[str, str]:
    """Task of the sample suite -> a program that is accepted, for the first tasks."""
    found: dict[str, str] = {}
    for line in SAMPLES.read_text(encoding="utf-8").splitlines():
        record: dict[str, Any] = json.loads(line)
        program = extract(record.get("solution") or "").code
        if record.get("expected") == ["AC"] and program and "/mnt/data/input" in program:
            found.setdefault(str(record["id"]), program)
    return dict(list(found.items())[:2])


def with_calls(body: dict[str, Any], *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    document = completion(None, body, finish_reason="stop")
    document["choices"][0]["message"]["tool_calls"] = [
        {"id": "same", "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
        for n, a in calls
    ]
    return document


def moved(program: str, prompt: str) -> str:
    """Returns a program of the sample suite with the paths that a prompt gives."""
    for kind, inside in (("input", "in"), ("output", "out")):
        path = re.search(rf"/home/agent/{inside}/[\w-]+\.xlsx", prompt)
        assert path is not None
        program = re.sub(rf"/mnt/data/{kind}/[\w.-]+", path[0], program)
    return program


def test_a_scripted_model_solves_sample_tasks_with_tools(
    tmp_path: Path, forked_command: ForkedCommand, agent_root: None
) -> None:
    programs, out = solutions(), tmp_path / "run"
    assert len(programs) == 2

    def script(seen: Seen) -> dict[str, Any]:
        check_wire(seen.body["messages"])
        if seen.round == 1:
            return with_calls(seen.body, ("list_sheets", {}), ("python", {"code": "kept = 41"}))
        if seen.round == 2:
            program = moved(programs[seen.task], seen.prompt)
            return with_calls(
                seen.body, ("python", {"code": "print(kept + 1)"}), ("bash", {"command": SEARCH}),
                ("python", {"code": program}),
            )  # fmt: skip
        results = [message["content"] for message in seen.messages if message["role"] == "tool"]
        assert results[2:5] == ["42", "done", "(no output)"]
        return with_calls(seen.body, ("submit", {}))

    with ScriptedServer(script) as server:
        asked = forked_command.run(
            ["infer", "-m", "scripted-1", "--base-url", server.url, "--dataset", "sample",
             "--mode", "tools", "--ids", ",".join(programs), "--out", str(out), "--json", "-q",
             "-c", "2", "--sandbox", "bubblewrap"]
        )  # fmt: skip
        assert asked.returncode == 0, asked.stderr
        requests = len(server.seen)
        again = forked_command.run(["infer", "--out", str(out), "--json", "-q"])
        assert again.returncode == 0, again.stderr
        assert len(server.seen) == requests == 18
    records = [json.loads(line) for line in (out / "submissions.jsonl").read_text().splitlines()]
    assert {record["ended"] for record in records} == {"submitted"}
    assert {len(record["outputs"]) for record in records} == {3}
    scored = forked_command.run(["score", str(out), "-q", "--sandbox", "bubblewrap"])
    assert scored.returncode == 0, scored.stderr
    report = json.loads((out / "report.json").read_text())
    assert report["overall"]["hard_restriction"] == 1.0


def test_a_dry_run_shows_the_tools_and_their_cost(tmp_path: Path) -> None:
    options = ["-m", "gpt-4o", "--mode", "tools", "--dry-run", "--limit", "1"]
    shown = CliRunner().invoke(infer, [*options, "--out", str(tmp_path / "o")])
    assert shown.exit_code == 0, shown.output
    assert re.search(r"tools, about [\d,]+ tokens in each request:", shown.output)
    assert re.search(r"  submit\(note\), about \d+ tokens: ", shown.output)
    document = CliRunner().invoke(infer, [*options, "--out", str(tmp_path / "o"), "--json"])
    dry = json.loads(document.stdout)
    assert len(dry["tools"]) == len(load_preset("native").tools)
    assert dry["prompt_tokens"][0] == dry["prompts"][0]["tokens"] + dry["tool_tokens"]


def test_options_of_tools_belong_to_the_mode(tmp_path: Path) -> None:
    options = ["-m", "gpt-4o", "--dry-run", "--out", str(tmp_path / "o")]
    refused = CliRunner().invoke(infer, [*options, "--tools", "native"])
    assert "belongs to --mode tools" in str(refused.exception)
    refused = CliRunner().invoke(infer, [*options, "--mode", "tools", "--dataset", "sample-typed"])
    assert isinstance(refused.exception, UsageError)
    assert "its answer is typed" in refused.exception.message


def test_pictures_that_a_server_refuses_end_the_run_with_the_way_out(
    tmp_path: Path, forked_command: ForkedCommand, agent_root: None
) -> None:
    def script(seen: Seen) -> Any:
        if seen.round == 1:
            code = "import matplotlib.pyplot as p; p.plot([1, 2])"
            return with_calls(seen.body, ("python", {"code": code}))
        assert seen.messages[-1]["role"] == "user"
        return fault(400, "image_url is not supported by this model")

    with ScriptedServer(script) as server:
        asked = forked_command.run(
            ["infer", "-m", "scripted-1", "--base-url", server.url, "--dataset", "sample",
             "--mode", "tools", "--limit", "1", "--out", str(tmp_path / "run"), "-q",
             "--sandbox", "bubblewrap"]
        )  # fmt: skip
    assert asked.returncode == 10, asked.stderr
    assert "--tool-pictures none" in asked.stderr


def swe_agent(prompt: str, *steps: tuple[str, str]) -> str:
    """Writes a ``.traj`` file: actions with their observations."""
    history = [{"role": "system", "content": "You work at a shell."}]
    history.append({"role": "user", "content": prompt})
    made = [{"action": action, "observation": seen, "response": "so"} for action, seen in steps]
    return json.dumps(
        {"trajectory": made, "history": history, "info": {"exit_status": "submitted"}}
    )


@pytest.mark.parametrize("one_folder", [False, True])
def test_a_traj_of_another_agent_is_performed_again(
    tmp_path: Path, one_folder: bool, agent_root: None
) -> None:
    """Its paths are replaced by the sandbox's; it yields a workbook although none was left."""
    programs = solutions()
    task = next(iter(programs))
    given = f"/work/in/1_{task}_input.xlsx"
    left = f"/work/{'in' if one_folder else 'results'}/1_{task}_output.xlsx"
    program = re.sub(r"/mnt/data/input/[\w.-]+", given, programs[task])
    program = re.sub(r"/mnt/data/output/[\w.-]+", left, program)
    steps = [
        ("cd /work/in && kept=41 && ls", f"1_{task}_input.xlsx"),
        (
            f"cat > /tmp/s.py <<'END'\n{program}\nEND",
            "Your command ran and did not produce any output.",
        ),
        ("python3 /tmp/s.py && echo $((kept + 1))", "42"),
        ("echo $RANDOM", "was another number"),
        (f"view_xlsx {left} list", "['none of these']"),
        ("submit", "<<SWE_AGENT_SUBMISSION>>"),
    ]
    (tmp_path / "a.traj").write_text(swe_agent(f"Input: {given}\nOutput: {left}", *steps))
    out = tmp_path / "run"
    imported = CliRunner().invoke(
        infer, ["--import-trajectory", str(tmp_path / "a.traj"), "--ids", task, "--dataset",
                "sample", "--out", str(out)],
    )  # fmt: skip
    assert imported.exit_code == 0, imported.output
    options = ScoreOptions(sandbox="bubblewrap", recalc="never", jobs=1)
    (again,) = replay(out, options)
    assert (again.problem, again.turns, again.before) == ("", 6, Verdict.NO)
    assert again.after is Verdict.AC
    assert [turn.number for turn in again.differing] == [4, 5]


def test_a_traj_that_names_no_workbook_or_needs_other_tools_says_so(tmp_path: Path) -> None:
    for name, text, problem in (
        ("a", swe_agent("Do it.", ("ls", "x")), "name the input"),
        ("b", json.dumps({"steps": [
            {"source": "user", "message": "Do it."},
            {"source": "agent", "message": "", "tool_calls": [
                {"tool_call_id": "1", "function_name": "Edit", "arguments": {}}]},
        ]}), "'Edit'"),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
        out = tmp_path / f"run-{name}"
        imported = ["--import-trajectory", str(tmp_path / name), "--ids", "1001"]
        done = CliRunner().invoke(infer, [*imported, "--dataset", "sample", "--out", str(out)])
        assert done.exit_code == 0, done.output
        (again,) = replay(out, ScoreOptions(sandbox="bubblewrap", recalc="never", jobs=1))
        assert problem in again.problem
        assert not again.agrees
