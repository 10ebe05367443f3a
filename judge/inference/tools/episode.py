"""Episodes in which a chat model calls tools, until it or a limit ends the episode.

In each turn, the conversation is sent to the model, and the calls of its reply are executed one
after the other. Each case of a task has a separate episode; if the answer is a program, there is
only one, on the first case. An episode that is recorded is not repeated; if the sandbox breaks at
the start, the episode starts again.

The published agent of SpreadsheetBench 2 has its own rules for replies that it cannot use. Source:
RUCKBReasoning/SpreadsheetBench-2, folder SWE-agent.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from judge.core.conversation import Content, Picture, content_of
from judge.core.records.tool_episodes import (
    ResultText,
    ToolCallLine,
    ToolEpisodeEnd,
    ToolTurn,
)
from judge.grading.store import RunDirectory
from judge.inference.calls import TaskClient
from judge.inference.chat import ChatReply, Message, estimate_content_tokens, writable
from judge.inference.conversation import Conversation, Environment, execution_record
from judge.inference.execution import Execution
from judge.inference.pictures import PictureStore
from judge.inference.prompt import Template
from judge.inference.tools.calls import (
    CallIds,
    ReadCall,
    is_cut,
    looks_like_calls,
    read_calls,
    text_calls_in,
)
from judge.inference.tools.setting import MODE, ToolMode
from judge.tools.box import BoxFile
from judge.tools.contract import ToolOutcome
from judge.tools.episodes import ToolEpisodeWriter
from judge.tools.native import MARKER, SUBMIT
from judge.tools.sets import EpisodeTools

_PREFIXES = (
    *("vim", "vi", "emacs", "nano", "nohup", "gdb", "less", "tail -f"),
    *("python -m venv", "make"),
)
_ALONE = frozenset(
    {"python", "python3", "ipython", "bash", "sh", "/bin/bash", "nohup", "vi", "vim"}
    | {"emacs", "nano", "su"}
)


def is_blocked(command: str, *, published: bool) -> bool:
    """Whether a command is refused because it would wait for a person.

    Args:
        command: the command.
        published: whether prefixes are compared in the wrong direction, as published, so that ``v``
            and ``tail`` are refused but ``vim x`` is allowed.
    """
    action = command.strip()
    if not action:
        return False
    if action in _ALONE:
        return True
    if published:
        return any(entry.startswith(action) for entry in _PREFIXES)
    return any(re.match(rf"{re.escape(entry)}(\s|$)", action) for entry in _PREFIXES)


def why_refused(
    calls: Sequence[ReadCall],
    mode: ToolMode,
    tools: EpisodeTools,
    published: frozenset[str],
    *,
    cut: bool,
) -> str:
    """Returns why a reply cannot be used, as shown to the model; empty if it can be used.

    Args:
        calls: the calls of the reply.
        mode: how the model works.
        tools: checks arguments and the shell's grammar.
        published: the :data:`~judge.inference.tools.setting.AGENT_DEPARTURES` that are kept.
        cut: whether the reply was cut off.
    """
    words = mode.preset.words
    if not calls:
        return words.say("no_call")
    if len(calls) > 1:
        return words.say("too_many", calls=str(len(calls)))
    call = calls[0]
    if call.arguments is None:
        return words.say("format", error=f"{call.fault}." if not cut else "it was cut off.")
    problem = tools.problem_with(call.call.name, call.arguments)
    if problem:
        return words.say("format", error=f"{problem}.")
    command = call.arguments.get("command")
    if call.call.name == "bash" and isinstance(command, str) and command.strip() != "exit":
        if is_blocked(command, published="blocklist" in published):
            shown = command.strip()[:80]
            return words.say("format", error=f"the command {shown!r} is not available here.")
        checked = tools.call("bash", {"command": f"bash -n -c {shlex.quote(command)}"})
        if checked.error == "tool":
            return words.say("format", error=f"bash cannot read the command: {checked.text[:500]}")
    return ""


MAX_KEPT = 60
"""How many states of the collected workbook are kept for an episode."""

_NO_PARSER = (
    "the replies contain calls as text, which the server did not parse: vLLM needs "
    "--enable-auto-tool-choice --tool-call-parser NAME; --text-calls reads them"
)
_MAX_RAW_CHARS = 20_000
_DECIMALS_OF_S = 3  # recorded times are rounded to milliseconds


@dataclass(slots=True)
class _Counts:
    """Counts of an episode: calls, errors, times and so on."""

    calls: int = 0
    repairs: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    model_s: float = 0.0
    tools_s: float = 0.0
    timeouts: int = 0
    silent: int = 0
    unusable: int = 0
    kept: int = 0
    fault: str = ""


class ToolEnvironment(Environment):
    """Tools that a model calls, in a sandbox that lives as long as the episode.

    Args:
        mode: how the model works.
        tools: executes the calls.
        conversation: filled as the episode proceeds; may contain episodes on earlier cases.
        case: number of the case.
        opening: the first messages.
        writer: writes the turns.
        store: the store for states of the workbook.
        pictures: the store for the pictures of results.
        client: the client that asks the model; its records have tokens and cost.
        threads: threads for blocking work.
        program: runs a submitted program; None if a workbook is the answer.
        max_tokens: ``max_tokens`` of each request.
        before: the collected workbook at the beginning; None if it does not exist yet.
        clock: returns the time in seconds.
    """

    out_of_rounds = "turns"

    def __init__(
        self,
        mode: ToolMode,
        tools: EpisodeTools,
        conversation: Conversation,
        case: int,
        opening: Sequence[Message],
        *,
        writer: ToolEpisodeWriter,
        store: RunDirectory,
        pictures: PictureStore,
        client: TaskClient,
        threads: Executor,
        program: Callable[[str], Execution] | None = None,
        max_tokens: int | None = None,
        before: bytes | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        extra = "call-51" in mode.as_published
        super().__init__(conversation, mode.setting.rounds + extra, threads)
        self._mode, self._tools, self._case = mode, tools, case
        self._writer, self._store, self._pictures = writer, store, pictures
        self._client, self._program, self._max_tokens = client, program, max_tokens
        self._clock = clock
        self._started = clock()
        self._asked = self._started
        self._first_call = len(client.calls)
        self._ids = CallIds()
        self._live: list[int] = []
        self._temporary: list[int] = []
        self._left_out: set[int] = set()
        self._sent: list[int] = []
        self._workbook = None if before is None else hashlib.sha256(before).hexdigest()
        self._turns = 0
        self.counts = _Counts()
        for message in opening:
            self._add(message)

    @property
    def seconds(self) -> float:
        """Seconds that the episode has taken so far."""
        return self._clock() - self._started

    # -- requests ---------------------------------------------------------------------------------

    def _add(self, message: Message) -> int:
        self.conversation.messages.append(message)
        self._live.append(len(self.conversation.messages) - 1)
        return self._live[-1]

    async def show(self, number: int) -> tuple[Message, ...] | str:
        """Returns the conversation so far, or the name of the limit that ends it."""
        del number
        if (ended := self._limit_reached()) is not None:
            return ended
        self._leave_out()
        self._sent = list(self._live)
        self._asked = self._clock()
        return tuple(map(self._message, self._sent))

    def _limit_reached(self) -> str | None:
        setting, tokens = self._mode.setting, self.tokens
        if self._tools.dead:
            self.counts.fault = self._tools.dead
            return "tool-set-died"
        minutes = setting.minutes
        if self.counts.tools_s >= setting.calls_s or (
            minutes is not None and self.seconds > minutes * 60
        ):
            return "time"
        used = (tokens["prompt"] or 0) + (tokens["completion"] or 0)
        if setting.episode_tokens is not None and used >= setting.episode_tokens:
            return "tokens"
        if setting.episode_cost is not None and (self.cost or 0.0) >= setting.episode_cost:
            return "cost"
        return None

    def _message(self, number: int) -> Message:
        message = self.conversation.messages[number]
        if number not in self._left_out:
            return message
        return cast("Message", {**message, "content": self._mode.preset.words.say("left_out")})

    def _leave_out(self) -> None:
        """Leaves out results, the oldest first, until the request is short enough."""
        bound = self._mode.setting.context_tokens
        if bound is None:
            return
        messages = self.conversation.messages
        sizes = {n: estimate_content_tokens(self._message(n)["content"]) + 4 for n in self._live}
        total = sum(sizes.values())
        for number in self._live[2:-1]:
            if total <= bound:
                return
            message = messages[number]
            if number in self._left_out or message["role"] == "assistant":
                continue
            self._left_out.add(number)
            total -= sizes[number] - estimate_content_tokens(self._message(number)["content"]) - 4

    def round_facts(self, number: int) -> dict[str, Any]:
        """The case and the turn, and the numbers of the messages that were sent."""
        return {"case": self._case, "turn": number, "sent": self._sent}

    @property
    def tokens(self) -> dict[str, int | None]:
        """Tokens of the episode so far; None for a kind that the server never counts."""
        calls = self._client.calls[self._first_call :]
        totals: dict[str, int | None] = {}
        names = {"prompt": "prompt_tokens", "completion": "completion_tokens"}
        for name, key in (*names.items(), ("cached", "cached_tokens")):
            counted = [call[key] for call in calls if isinstance(call.get(key), int)]
            totals[name] = sum(counted) if counted else None
        return totals

    @property
    def cost(self) -> float | None:
        """Cost of the episode so far in US dollars; None if no price is known."""
        calls = self._client.calls[self._first_call :]
        costs = [call["cost"] for call in calls if call.get("cost") is not None]
        return float(sum(costs)) if costs else None

    # -- replies ----------------------------------------------------------------------------------

    async def act(self, reply: ChatReply, number: int) -> str | None:
        """Executes the calls of a reply, and writes the turn."""
        began = self._clock()
        self.counts.model_s += began - self._asked
        conversation, setting = self.conversation, self._mode.setting
        conversation.note_reply(reply, MODE, **self.round_facts(number))
        conversation.reply, conversation.truncated = reply.text, reply.is_truncated
        self._live.append(len(conversation.messages) - 1)
        if number > setting.rounds:
            self._keep(reply, [], "", began, cut=reply.is_truncated)
            return "turns"
        cut = is_cut(reply, self._max_tokens)
        received = list(reply.calls)
        if not received and setting.text_calls:
            received = text_calls_in(reply.text)
        calls = read_calls(received, self._ids, number)
        if setting.one_call:
            lines, text, ended = await self._act_as_published(reply, calls, cut=cut)
        elif calls:
            self.counts.silent = 0
            lines, ended = await self._do_all(reply, calls, cut=cut)
            text = ""
        else:
            lines = []
            text, ended = self._answer_silence(reply)
        self._keep(reply, lines, text, began, cut=cut)
        if ended is None and self._tools.dead:
            self.counts.fault = self._tools.dead
            return "tool-set-died"
        return ended

    def _answer_silence(self, reply: ChatReply) -> tuple[str, str | None]:
        self.counts.silent += 1
        if looks_like_calls(reply.text):
            self.counts.fault = _NO_PARSER
        if self.counts.silent == self._mode.setting.silent:
            return "", "no-call"
        text = self._mode.preset.words.say("no_call")
        self._add({"role": "user", "content": text})
        return text, None

    async def _do_all(
        self, reply: ChatReply, calls: Sequence[ReadCall], *, cut: bool
    ) -> tuple[list[ToolCallLine], str | None]:
        """Executes the calls of a reply; calls that submit come after all others."""
        words, setting = self._mode.preset.words, self._mode.setting
        results: dict[int, tuple[ToolOutcome, ToolCallLine]] = {}
        ended: str | None = None
        for at in sorted(range(len(calls)), key=lambda at: calls[at].call.name == SUBMIT):
            call = calls[at]
            if ended is not None or self._tools.dead:
                outcome = ToolOutcome("The episode has ended; this call was not done.", "limit")
            elif at >= setting.calls:
                outcome = ToolOutcome(words.say("too_many", calls=str(setting.calls)), "limit")
            elif cut and at == len(calls) - 1:
                outcome = ToolOutcome(words.say("cut_off"), "limit")
            elif self.counts.tools_s >= setting.calls_s:
                outcome = ToolOutcome("The time for calls is used up.", "limit")
            else:
                results[at], ended = await self._one(call)
                continue
            results[at] = outcome, self._line(call, call.arguments, [], outcome, 0.0)
        in_order = [results[at] for at in range(len(calls))]
        lines = self._answer(reply, calls, in_order)
        return lines, ended

    async def _one(self, call: ReadCall) -> tuple[tuple[ToolOutcome, ToolCallLine], str | None]:
        """Executes one call; returns outcome, record, and why the episode ends, if it does."""
        began = self._clock()
        repairs: list[str] = []
        arguments = call.arguments
        ended: str | None = None
        if arguments is None:
            outcome = ToolOutcome(f"Not done: {call.fault}", "argument")
        else:
            if not call.call.arguments.strip():
                repairs.append("empty arguments")
            arguments, count = self._tools.repaired_arguments(call.call.name, arguments)
            repairs += count
            outcome = await self.blocking(partial(self._tools.call, call.call.name, arguments))
            if call.call.name == SUBMIT and not outcome.error:
                outcome, ended = await self._submit(arguments)
        seconds = self._clock() - began
        self.counts.tools_s += seconds
        if outcome.fault:
            self.counts.fault = outcome.fault
        self.counts.timeouts = self.counts.timeouts + 1 if outcome.error == "timeout" else 0
        if self.counts.timeouts >= self._mode.setting.timeouts:
            ended = "timeouts"
        line = self._line(call, arguments, repairs, outcome, seconds)
        line["workbook"] = await self.blocking(self._store_workbook)
        return (outcome, line), ended

    async def _submit(self, arguments: Mapping[str, Any]) -> tuple[ToolOutcome, str | None]:
        """Submits the answer, which ends the episode; a submitted program has to write a workbook.

        If the program does not write a workbook, the episode continues.
        """
        if self._program is None:
            return ToolOutcome("Handed in."), "submitted"
        file = await self.blocking(partial(self._tools.read, str(arguments["path"])))
        if file.data is None:
            return ToolOutcome(f"{arguments['path']!r:.200}: {file.problem}", "argument"), None
        text = writable(file.data.decode("utf-8", "replace"))
        execution = await self.blocking(partial(self._program, text))
        conversation = self.conversation
        conversation.solution, conversation.stands_alone = text, execution.solved
        conversation.rounds[-1]["execution"] = execution_record(execution)
        parts = [execution.printed, execution.error]
        if execution.stopped is not None:
            parts.append(f"It was stopped: {execution.stopped}.")
        left = "left a" if execution.output_exists else "left no"
        parts.append(f"(By itself, the program {left} workbook at the output path.)")
        answer = "\n".join(part for part in parts if part)
        if execution.solved:
            return ToolOutcome(answer), "submitted"
        return ToolOutcome(answer, "tool"), None

    def _store_workbook(self) -> str | None:
        """Returns the hash of the collected workbook; stores the workbook if it has changed."""
        digest = self._tools.workbook()
        if digest is not None and digest != self._workbook and self.counts.kept < MAX_KEPT:
            file = self._tools.collect()
            if file.data is not None:
                self._store.put_workbook(file.data)
                self.counts.kept += 1
        self._workbook = digest
        return digest

    # -- the published setting --------------------------------------------------------------------

    async def _act_as_published(
        self, reply: ChatReply, calls: Sequence[ReadCall], *, cut: bool
    ) -> tuple[list[ToolCallLine], str, str | None]:
        """Executes a reply's single call; if the reply is unusable, asks the model again."""
        published = self._mode.as_published
        fault = await self.blocking(
            partial(why_refused, calls, self._mode, self._tools, published, cut=cut)
        )
        if fault:
            self.counts.unusable += 1
            outcome = ToolOutcome(fault, "argument")
            lines = [self._line(call, call.arguments, [], outcome, 0.0) for call in calls]
            self.conversation.messages[self._live[-1]] = {
                "role": "assistant",
                "content": _plain_text(reply),
            }
            if "vanishing-mistakes" in published:
                # Each request returns to the history without mistakes, and adds only the last one.
                self._forget_mistakes()
            self._temporary += [self._live[-1], self._add({"role": "user", "content": fault})]
            no_object = len(calls) == 1 and calls[0].fault.startswith("the arguments must be")
            ends = no_object or self.counts.unusable == self._mode.setting.silent
            return lines, fault, "format" if ends else None
        self.counts.unusable = 0
        if "vanishing-mistakes" in published:
            self._forget_mistakes()
        self._temporary.clear()
        (outcome, line), ended = await self._one(calls[0])
        lines = self._answer(reply, calls, [(outcome, line)])
        command = str((calls[0].arguments or {}).get("command", "")).strip()
        if ended is None and (
            command == "exit" or ("marker" in published and MARKER in outcome.text)
        ):
            ended = "submitted"
        return lines, "", ended

    def _forget_mistakes(self) -> None:
        self._live = [number for number in self._live if number not in self._temporary]
        self._temporary.clear()

    # -- records, and messages with results -------------------------------------------------------

    def _answer(
        self,
        reply: ChatReply,
        calls: Sequence[ReadCall],
        results: Sequence[tuple[ToolOutcome, ToolCallLine]],
    ) -> list[ToolCallLine]:
        """Adds the calls and their results to the conversation."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": _plain_text(reply),
            "tool_calls": [call.sent(as_received=self._mode.setting.one_call) for call in calls],
        }
        if reply.reasoning and reply.reasoning_field:
            message[reply.reasoning_field] = reply.reasoning
        self.conversation.messages[self._live[-1]] = cast("Message", message)
        after: list[Picture] = []
        lines: list[ToolCallLine] = []
        for call, (outcome, line) in zip(calls, results, strict=True):
            content, pictures = self._content(outcome, line)
            after += pictures
            self._add({"role": "tool", "tool_call_id": call.id_sent, "content": content})
            lines.append(line)
        if after:
            names = ", ".join(picture.name for picture in after)
            text = self._mode.preset.words.say("pictures", names=names)
            self._add({"role": "user", "content": content_of(text, after)})
        return lines

    def _content(self, outcome: ToolOutcome, line: ToolCallLine) -> tuple[Content, list[Picture]]:
        """Returns the content of a result, and the pictures to be shown after it."""
        words, how = self._mode.preset.words, self._mode.setting.pictures
        text = line["text"]["shown"]
        pictures: list[Picture] = []
        for data in outcome.pictures:
            name = f"picture {self.counts.calls}.{len(pictures) + 1}"
            if (picture := self._pictures.add_made(data, name)) is not None:
                pictures.append(picture)
        if len(pictures) < len(outcome.pictures):
            text = self._more(line, words.say("pictures_refused"))
        if not pictures:
            return text, []
        line["pictures"] = [picture.sha256 for picture in pictures]
        names = ", ".join(picture.name for picture in pictures)
        if how == "in-result":
            return content_of(text, pictures), []
        occasion = "pictures_follow" if how == "after" else "pictures_hidden"
        text = self._more(line, words.say(occasion, names=names))
        return text, pictures if how == "after" else []

    @staticmethod
    def _more(line: ToolCallLine, words: str) -> str:
        """Adds words about pictures to the text of a result, and returns the text."""
        text = f"{line['text']['shown']}\n{words}".strip()
        line["text"] = cast("ResultText", {**line["text"], "shown": text})
        return text

    def _line(
        self,
        call: ReadCall,
        arguments: Mapping[str, Any] | None,
        repairs: list[str],
        outcome: ToolOutcome,
        seconds: float,
    ) -> ToolCallLine:
        """Counts a call, and returns its record."""
        counts = self.counts
        counts.calls += 1
        counts.repairs += len(repairs)
        if outcome.error:
            counts.errors[outcome.error] = counts.errors.get(outcome.error, 0) + 1
        text = writable(outcome.text)
        line: ToolCallLine = {
            "id": call.call.id[:200],
            "id_sent": call.id_sent,
            "tool": call.call.name[:200],
            "ok": not outcome.error,
            "text": {
                "sha256": hashlib.sha256(text.encode()).hexdigest(),
                "chars": len(text),
                "shown": self._shown(text, outcome.error),
            },
            "seconds": round(seconds, _DECIMALS_OF_S),
            "workbook": self._workbook,
        }
        if arguments is None:
            line["raw"], line["fault"] = call.call.arguments[:_MAX_RAW_CHARS], call.fault
        else:
            line["arguments"] = dict(arguments)
        if repairs:
            line["repairs"] = repairs
        if outcome.error:
            line["error"] = outcome.error
        return line

    def _shown(self, text: str, error: str) -> str:
        """Returns a result as the model sees it; the middle of a long one is left out."""
        words, most = self._mode.preset.words, self._mode.setting.result_chars
        if self._mode.setting.one_call and error == "timeout":
            return words.say("timeout", seconds=f"{self._mode.setting.call_s:g}")
        if not text.strip():
            return words.say("empty")
        if len(text) <= most:
            return text
        half = most // 2
        template = Template("long", words.texts["long"])
        left_out = f"{len(text) - 2 * half:,}"
        return template.fill({"head": text[:half], "tail": text[-half:], "left_out": left_out})

    def _keep(
        self, reply: ChatReply, lines: list[ToolCallLine], text: str, began: float, *, cut: bool
    ) -> None:
        """Writes a turn."""
        self._turns += 1
        self.conversation.rounds[-1]["calls"] = [
            {"id": line["id_sent"], "tool": line["tool"], "ok": line["ok"]} for line in lines
        ]
        last_call: dict[str, Any] = dict(self._client.calls[-1]) if self._client.calls else {}
        turn: ToolTurn = {
            "line": "turn",
            "number": self._turns,
            "reply": {
                "text": reply.text,
                **({"reasoning": reply.reasoning} if reply.reasoning else {}),  # type: ignore[typeddict-item]
                "calls": [
                    {"id": call.id, "name": call.name, "arguments": call.arguments}
                    for call in reply.calls
                ],
            },
            "sent": {"messages": self._sent, "left_out": sorted(self._left_out)},
            "tokens": {
                "prompt": reply.prompt_tokens,
                "completion": reply.completion_tokens,
                "cached": reply.cached_tokens,
            },
            "cost": last_call.get("cost"),
            "latency_s": last_call.get("latency_s"),
            "cut": cut,
            "told": text,
            "calls": lines,
            "seconds": round(self._clock() - began, _DECIMALS_OF_S),
        }
        self._writer.append(turn)

    def end(self, collected: BoxFile, before: bytes | None) -> ToolEpisodeEnd:
        """Returns the last line of the episode's record.

        Args:
            collected: the collected workbook.
            before: the input workbook.
        """
        counts = self.counts
        return {
            "line": "end",
            "ended": self.conversation.ended or "",
            "turns": self._turns,
            "calls": counts.calls,
            "errors": dict(counts.errors),
            "repairs": counts.repairs,
            "tokens": cast("Any", self.tokens),
            "cost": self.cost,
            "seconds": round(self.seconds, _DECIMALS_OF_S),
            "model_s": round(counts.model_s, _DECIMALS_OF_S),
            "tools_s": round(counts.tools_s, _DECIMALS_OF_S),
            "output": collected.sha256,
            "output_bytes": 0 if collected.data is None else len(collected.data),
            "changed": collected.data is not None and collected.data != before,
            "problem": collected.problem,
            "fault": counts.fault,
        }


_CALLS_AS_TEXT = re.compile(r"<tool_call>.*</tool_call>", re.DOTALL)


def _plain_text(reply: ChatReply) -> str:
    """Returns the text of a reply; empty if the text only repeats the calls."""
    return "" if _CALLS_AS_TEXT.fullmatch(reply.text.strip()) else reply.text
