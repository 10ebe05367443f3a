"""Types for episodes in which a chat model calls tools: the lines of ``episodes/*.jsonl``.

An episode is one file with a line for its head, one for each turn, and one for its end. The
definitions of the tools are stored once, as a JSON array in the format of chat completions, in
``tools/HASH.json``, where HASH is the SHA-256 of the file. Pictures are in ``pictures`` and
workbooks among the outputs of the run; both are named by their SHA-256.
"""

from __future__ import annotations

from typing import NotRequired, Required, TypedDict

from judge.core.records.runs import ServerRecord
from judge.files.forms import Amount, Count, Sha256, TaskId

ERROR_KINDS = ("argument", "tool", "protocol", "timeout", "died", "limit")
"""Why a call has no result: its arguments are invalid; the tool reports a failure; its server sent
no valid answer, did not answer in time, or ended; or the call was beyond the limit on calls, or was
cut off."""

ENDS = (
    *("submitted", "turns", "tokens", "cost", "time", "no-call", "format", "timeouts"),
    *("context-length", "tool-set-died", "refused"),
)
"""Why an episode ends. ``format`` and ``timeouts`` come from the published SpreadsheetBench 2."""


class ToolEpisodeHead(TypedDict):
    """The first line of an episode's file."""

    line: str
    """``head``"""
    id: TaskId
    sample: Count
    case: Count
    model: str
    setting: str
    """``tools/`` and the name of the tool set, such as ``tools/native``."""
    instruction: str
    answer: str
    """``workbook`` or ``program``"""
    tools: Sha256
    """The HASH of the tool definitions in ``tools/HASH.json``."""
    servers: list[ServerRecord]
    image: str
    """The image of the sandbox that the tools run in."""
    files: dict[str, Sha256]
    """Path in the sandbox -> SHA-256, of the files at the start of the episode."""
    collected: str
    """Path of the workbook that is judged."""
    limits: dict[str, float | None]
    started: str
    """ISO 8601, UTC."""
    start_s: Amount | None
    attempt: Count
    """How many sandboxes broke during this episode."""
    imported: NotRequired[str]
    """The format of an imported trajectory, such as ``atif``."""


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
    """The messages of a request, as message numbers in the conversation's file."""

    messages: list[Count]
    left_out: list[Count]
    """The messages whose text was replaced by one line in this request."""


class TokenRecord(TypedDict, total=False):
    """Token counts; None if the server did not report them."""

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
    """The tool's name that the model sees."""


class ToolCallLine(TypedDict, total=False):
    """A call and its result."""

    id: Required[str]
    """The call's id as the server sent it; empty if it sent none."""
    id_sent: Required[str]
    """The id to send back with the result."""
    tool: Required[str]
    arguments: dict[str, object]
    raw: str
    """The unreadable text that was sent as arguments."""
    fault: str
    """Why the arguments cannot be read, or are invalid."""
    repairs: list[str]
    ok: Required[bool]
    error: str
    """One of :data:`ERROR_KINDS`, if the call failed."""
    text: Required[ResultText]
    pictures: list[Sha256]
    seconds: Required[Amount | None]
    workbook: Required[Sha256 | None]
    """SHA-256 of the judged file after the call; None if there is no file or it is too long. If the
    call changed the file, a copy is among the outputs of the run, up to a limit on their number."""


class ToolTurn(TypedDict, total=False):
    """A line for one turn: a reply, its calls and their results."""

    line: Required[str]
    """``turn``"""
    number: Required[Count]
    """The number of the turn, from 1."""
    reply: Required[ToolReply]
    sent: Required[SentMessages]
    tokens: TokenRecord
    cost: Amount | None
    latency_s: Amount | None
    cut: Required[bool]
    """Whether the reply was cut off."""
    told: str
    """Messages to the model besides the results of calls."""
    calls: Required[list[ToolCallLine]]
    seconds: Required[Amount | None]
    """Seconds from the reply to the last result; None if an imported trajectory does not say."""


class ToolEpisodeEnd(TypedDict, total=False):
    """The last line of an episode's file."""

    line: Required[str]
    """``end``"""
    ended: Required[str]
    """One of :data:`ENDS`; an imported trajectory may have another value or none."""
    turns: Required[Count]
    calls: Required[Count]
    errors: Required[dict[str, int]]
    """Kind of error -> how many calls had it."""
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
    """Why there is no file; empty if there is a file."""
    fault: str
    """What broke, and whose fault it was; empty if nothing broke."""
