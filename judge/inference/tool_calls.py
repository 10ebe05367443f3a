"""Conversations in which a chat model calls tools, and what of its calls is used.

Servers differ in what they send: identifiers that are missing or doubled, arguments that are empty
or no JSON, calls in a reply that was cut off. Each call is answered exactly once, under an
identifier that is valid, and what is sent back of its arguments always parses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from judge.core.conversation import Content
from judge.errors import JudgeError, SandboxError
from judge.files.documents import MIB, MalformedError, dump_json, parse_json, read_regular
from judge.inference.chat import ChatReply, Message, ToolCall
from judge.inference.conversation import Conversation, Environment, execution_record
from judge.inference.execution import Execution, WorkbookRunner
from judge.tools.contract import Tool, ToolFaultError, shortened
from judge.tools.workbooks import WorkbookTools

TOOLS = "tools"
"""Name of the setting."""

MAX_CALLS = 16
"""How many calls of a reply are done."""

MAX_SILENT = 3
"""After how many replies in a row without a call the conversation ends."""

RESULT_CHARS = 10_000
"""Longest result of a call; of a longer one the first and the last half are sent."""

_MAX_VALUES = 20_000
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INPUT = "input.xlsx"
_MAX_INPUT_BYTES = 64 * MIB

_NO_CALL = "Call a tool to go on, or submit to hand in your program."
_CUT_OFF = "The reply was cut off here: this call was not done."


class InputWorkbook:
    """The one workbook that the tools of a conversation can look into.

    Args:
        path: where it is; None for definitions alone.
    """

    read_only = True

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def names(self) -> list[tuple[str, int]]:
        """Only the name by which tools read it."""
        return [(_INPUT, 0)]

    def read(self, name: str) -> bytes:
        """Its bytes, whatever it is called.

        Raises:
            ToolFaultError: it cannot be read.
        """
        del name
        if self._path is None:
            raise ToolFaultError("there is no workbook")
        data = read_regular(self._path, ToolFaultError, most_bytes=_MAX_INPUT_BYTES)
        if data is None:
            raise ToolFaultError("the input workbook is missing")
        return data

    def write(self, name: str, data: bytes) -> None:
        """Refused.

        Raises:
            ToolFaultError: always.
        """
        del name, data
        raise ToolFaultError("the input workbook is not written by tools; programs save a copy")


def looking_tools(path: Path | None) -> list[Tool]:
    """The tools that look into the input workbook, without an argument for its path."""

    def never() -> Any:
        raise ToolFaultError("formulas are not computed here")

    tools = {tool.name: tool for tool in WorkbookTools(InputWorkbook(path), never).tools()}
    return [_of_input(tools[name]) for name in ("list_sheets", "view_range", "find")]


def _of_input(tool: Tool) -> Tool:
    return replace(
        tool,
        description=f"{tool.description} It looks at the input workbook as it was given.",
        properties={name: each for name, each in tool.properties.items() if name != "path"},
        required=tuple(name for name in tool.required if name != "path"),
        run=lambda arguments: tool.run({"path": _INPUT, **arguments}),
    )


def _not_run(_: Mapping[str, Any]) -> str:
    raise ToolFaultError("nothing runs programs here")


PYTHON = Tool(
    name="python",
    description="Run Python in an interpreter that keeps its state. Returns what the code prints, "
    "or its traceback. openpyxl, pandas and numpy can be imported.",
    properties={"code": {"type": "string", "description": "The code."}},
    required=("code",),
    run=_not_run,
)

SUBMIT = Tool(
    name="submit",
    description="Hand in the complete program that solves the task. It is run by itself, also on "
    "workbooks with other values. If it leaves a workbook, the conversation ends.",
    properties={"program": {"type": "string", "description": "The complete Python program."}},
    required=("program",),
    run=_not_run,
)


def definitions() -> list[dict[str, Any]]:
    """All tools as chat completions take them; they are a part of every request."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.schema,
            },
        }
        for tool in (PYTHON, *looking_tools(None), SUBMIT)
    ]


class ToolEnvironment(Environment):
    """Rounds of calls and their results, until a program is submitted that leaves a workbook.

    Args:
        conversation: filled as the conversation proceeds.
        prompt: the first message.
        rounds: how often the model may reply.
        workbook: the input workbook, for tools that look into it.
        runner: runs the programs.
        threads: run what blocks.
    """

    def __init__(
        self,
        conversation: Conversation,
        prompt: Content,
        rounds: int,
        workbook: Path,
        runner: WorkbookRunner,
        threads: Executor,
    ) -> None:
        super().__init__(conversation, rounds, threads)
        self._prompt = prompt
        self._runner = runner
        python, submit = replace(PYTHON, run=self._python), replace(SUBMIT, run=self._submit)
        self._tools = {tool.name: tool for tool in (python, *looking_tools(workbook), submit)}
        self._ids: set[str] = set()
        self._silent = 0
        self._submitted = False

    async def show(self, number: int) -> tuple[Message, ...]:
        """All messages so far."""
        if number == 1:
            self.conversation.messages.append({"role": "user", "content": self._prompt})
        return tuple(self.conversation.messages)

    async def act(self, reply: ChatReply, number: int) -> str | None:
        """Does the calls of a reply, those that submit after all others."""
        conversation = self.conversation
        conversation.note_reply(reply, TOOLS)
        conversation.reply = reply.text
        if not reply.calls:
            return self._answer_silence(number)
        self._silent = 0
        calls = [(call, self._id(call, number, at)) for at, call in enumerate(reply.calls, 1)]
        results = await self._results(reply, [call for call, _ in calls])
        conversation.messages[-1] = {
            "role": "assistant",
            "content": "" if reply.text.startswith("<tool_call>") else reply.text,
            "tool_calls": [_sent(call, given) for call, given in calls],
        }
        records = []
        for (call, given), (text, error) in zip(calls, results, strict=True):
            conversation.messages.append(
                {"role": "tool", "tool_call_id": given, "content": shortened(text, RESULT_CHARS)}
            )
            said = {"id": given, "tool": call.name[:64], "chars": len(text)}
            records.append({**said, **({"error": error} if error else {})})
        conversation.rounds[-1]["calls"] = records
        return "submitted" if self._submitted else None

    def _answer_silence(self, number: int) -> str | None:
        self._silent += 1
        if self._silent == MAX_SILENT:
            return "no-call"
        if number < self.rounds:
            self.conversation.messages.append({"role": "user", "content": _NO_CALL})
        return None

    def _id(self, call: ToolCall, number: int, at: int) -> str:
        """The identifier of a call, or one of our own where it is missing or used before."""
        given = call.id
        if not _ID.fullmatch(given) or given in self._ids:
            # Nine letters and digits, which the templates of all servers take.
            given = f"j{number:04d}{at:04d}"
        self._ids.add(given)
        return given

    async def _results(self, reply: ChatReply, calls: Sequence[ToolCall]) -> list[tuple[str, str]]:
        """Text for the model, and the kind of error, for each call."""
        results: dict[int, tuple[str, str]] = {}
        order = sorted(range(len(calls)), key=lambda at: calls[at].name == SUBMIT.name)
        for at in order:
            if at >= MAX_CALLS:
                results[at] = f"At most {MAX_CALLS} calls of a reply are done.", "limit"
            elif reply.is_truncated and at == len(calls) - 1:
                results[at] = _CUT_OFF, "limit"
            elif self._submitted:
                results[at] = "A program was submitted already.", "limit"
            else:
                results[at] = await self.blocking(partial(self._do, calls[at]))
        return [results[at] for at in range(len(calls))]

    def _do(self, call: ToolCall) -> tuple[str, str]:
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(self._tools)
            return f"There is no tool {call.name!r:.80}. Tools: {known}.", "argument"
        try:
            return tool(arguments_of(call.arguments)), ""
        except ToolFaultError as error:
            return error.message + (f" {error.hint}" if error.hint else ""), "argument"
        except SandboxError:
            raise
        except JudgeError as error:
            return error.message, "tool"

    def _python(self, arguments: Mapping[str, Any]) -> str:
        return _told(self._runner.execute(arguments["code"]))

    def _submit(self, arguments: Mapping[str, Any]) -> str:
        program: str = arguments["program"]
        execution = self._runner.execute_alone(program)
        conversation = self.conversation
        conversation.solution, conversation.stands_alone = program, execution.solved
        conversation.rounds[-1]["execution"] = execution_record(execution)
        self._submitted = execution.solved
        return _told(execution)


def arguments_of(text: str) -> dict[str, Any]:
    """The arguments of a call; none where the text is empty, as some servers send it.

    Raises:
        ToolFaultError: it is not JSON, or not an object.
    """
    if not text.strip():
        return {}
    try:
        document = parse_json(text, most_values=_MAX_VALUES)
    except MalformedError as error:
        raise ToolFaultError(f"the arguments are {error}: {text[:200]!r}") from None
    if not isinstance(document, dict):
        raise ToolFaultError(f"the arguments must be an object: {text[:200]!r}")
    return document


def _sent(call: ToolCall, given: str) -> dict[str, Any]:
    """A call as it is sent back: servers parse the arguments of earlier calls again."""
    try:
        arguments = dump_json(arguments_of(call.arguments))
    except ToolFaultError:
        arguments = "{}"
    name = call.name if _ID.fullmatch(call.name) else "unknown"
    return {"id": given, "type": "function", "function": {"name": name, "arguments": arguments}}


def _told(execution: Execution) -> str:
    """What a program did, for the model."""
    said = [execution.printed, execution.error]
    if execution.stopped is not None:
        said.append(f"It was stopped: {execution.stopped}. The interpreter lost its state.")
    left = "There is" if execution.output_exists else "There is not yet"
    said.append(f"({left} a workbook at the output path.)")
    return "\n".join(each for each in said if each)
