"""Episodes in which a chat model calls tools, as types: the lines of ``episodes/*.jsonl``.

An episode is one file with a line for its head, one for each turn, and one for its end. The
definitions of the tools are kept once, as a JSON array in the form of chat completions, in
``tools/HASH.json``, where HASH is the SHA-256 of the file. Pictures are in ``pictures``, workbooks
among the outputs of the run, both under their SHA-256.
"""

from __future__ import annotations

from typing import NotRequired, Required, TypedDict

from judge.files.forms import Amount, Count, Sha256, TaskId

ERROR_KINDS = ("argument", "tool", "protocol", "timeout", "died", "limit")
"""Why a call has no result: its arguments do not fit; the tool says that it failed; its server sent
something that is not an answer, did not answer in time, or ended; or the call was one too many, or
was cut off."""

ENDS = (
    *("submitted", "turns", "tokens", "cost", "time", "no-call", "format", "timeouts"),
    *("context-length", "tool-set-died", "refused"),
)
"""Why episodes end. ``format`` and ``timeouts`` come from the published SpreadsheetBench 2."""


class ServerRecord(TypedDict, total=False):
    """An MCP server of a tool set."""

    name: Required[str]
    """As in ``mcp:NAME``."""
    root: Required[Sha256 | None]
    """The hash of its packages, interpreter and entry; None if it is not built."""
    era: str
    """``handshake`` or ``stateless``."""
    protocol: str
    """The version of the protocol, such as ``2025-11-25``."""
    server_name: str
    server_version: str
    renamed: dict[str, str]
    """Name that the model sees -> the server's own."""
    left_out: dict[str, str]
    """Tool that is not offered -> why."""
    start_s: Amount
    problem: str
    """Why it cannot be used, which is its own fault; empty if it can."""
    noise: Count
    """Lines from it that answer nothing."""
    list_changed: Count
    """How often it said that its tools have changed; the list of the start is kept."""
    restarts: Count


class ToolsIdentity(TypedDict, total=False):
    """``inference.tools`` of run.json: the tools, and the rules of the conversation."""

    asked: Required[str]
    """The value of ``--tools``."""
    preset: str | None
    answer: Required[str]
    """``workbook`` or ``program``; figures of the two are not comparable."""
    names: Required[list[str]]
    definitions: Required[Sha256]
    schemas: dict[str, Sha256]
    """Tool -> SHA-256 of its definition."""
    servers: list[ServerRecord]
    limits: dict[str, float | None]
    as_published: list[str]
    """Departures that are as published."""
    corrected: list[str]
    """Departures that are corrected."""
    licences: dict[str, dict[str, str]]
    """Server -> package -> licence."""
    preset_sha256: Sha256
    pictures: str
    """How the model sees pictures: ``after`` all results, ``in-result`` or ``none``."""
    instructions: bool
    """Whether the words of servers about themselves are in the system message."""


class ToolEpisodeHead(TypedDict):
    """The first line."""

    line: str
    """``head``"""
    id: TaskId
    sample: Count
    case: Count
    model: str
    setting: str
    """``tools/`` with the tool set, such as ``tools/native``."""
    instruction: str
    answer: str
    """``workbook`` or ``program``"""
    tools: Sha256
    """The definitions, in ``tools/HASH.json``."""
    servers: list[ServerRecord]
    image: str
    """What the tools run in."""
    files: dict[str, Sha256]
    """Path inside -> SHA-256 of what the episode began with."""
    collected: str
    """Path of the workbook that counts."""
    limits: dict[str, float | None]
    started: str
    """ISO 8601, UTC."""
    start_s: Amount | None
    attempt: Count
    """How many sandboxes have broken in this episode."""
    imported: NotRequired[str]
    """Where an imported trajectory comes from, such as ``atif``."""


class ReceivedCall(TypedDict):
    """A call exactly as the server sent it."""

    id: str
    name: str
    arguments: str


class ToolReply(TypedDict):
    """A reply."""

    text: str
    reasoning: NotRequired[str]
    calls: list[ReceivedCall]


class SentMessages(TypedDict):
    """The messages of a request, as numbers of messages of the conversation's file."""

    messages: list[Count]
    left_out: list[Count]
    """Those of which only one line was sent, in place of the full text."""


class TokenRecord(TypedDict, total=False):
    """Tokens; None where the server did not count."""

    prompt: Count | None
    completion: Count | None
    cached: Count | None


class ResultText(TypedDict):
    """The text of a result."""

    sha256: Sha256
    """Hash of the whole text."""
    chars: Count
    """Length of the whole text."""
    shown: str
    """As the model sees it."""


class ToolCallLine(TypedDict, total=False):
    """A call and its result."""

    id: Required[str]
    """As the server sent it; empty if it sent none."""
    id_sent: Required[str]
    """As it is sent back."""
    tool: Required[str]
    arguments: dict[str, object]
    raw: str
    """What was sent in place of arguments that can be read."""
    fault: str
    """Why they cannot be read, or do not fit."""
    repairs: list[str]
    ok: Required[bool]
    error: str
    """One of :data:`ERROR_KINDS`, if it is not ok."""
    text: Required[ResultText]
    pictures: list[Sha256]
    seconds: Required[Amount | None]
    workbook: Required[Sha256 | None]
    """Of the file that counts, after the call; None if there is none or it is too long. If the call
    changed it, the file is among the outputs of the run, as long as they are few."""


class ToolTurn(TypedDict, total=False):
    """A line for each turn: a reply, its calls and their results."""

    line: Required[str]
    """``turn``"""
    number: Required[Count]
    """From 1."""
    reply: Required[ToolReply]
    sent: Required[SentMessages]
    tokens: TokenRecord
    cost: Amount | None
    latency_s: Amount | None
    cut: Required[bool]
    """Whether the reply was cut off."""
    told: str
    """Words to the model besides the results of calls; empty for none."""
    calls: Required[list[ToolCallLine]]
    seconds: Required[Amount | None]
    """From the reply to the last result; None where an imported trajectory does not say."""


class ToolEpisodeEnd(TypedDict, total=False):
    """The last line."""

    line: Required[str]
    """``end``"""
    ended: Required[str]
    """One of :data:`ENDS`; of an imported trajectory, its own word, or nothing."""
    turns: Required[Count]
    calls: Required[Count]
    errors: Required[dict[str, int]]
    """Kind -> calls."""
    repairs: Required[Count]
    tokens: TokenRecord
    cost: Amount | None
    seconds: Required[Amount | None]
    model_s: Amount
    """Seconds that the model took to reply."""
    tools_s: Amount
    """Seconds that the calls took."""
    output: Required[Sha256 | None]
    output_bytes: Required[Count]
    changed: Required[bool]
    problem: Required[str]
    """Why there is no file; empty if there is one."""
    fault: str
    """What broke, and whose fault it was; empty if nothing did."""
