"""Reads trajectories of agents: ATIF, Inspect's messages, SWE-agent's ``.traj``.

A trajectory becomes an episode with tools: turns, calls, results, tokens. A fact that a format does
not contain is null, and is never guessed. :mod:`judge.api.trajectories` writes trajectories.

All input is untrusted: lengths are limited, and a field of the wrong type counts as missing.

Sources: harbor 0.25.0, ``harbor/models/trajectories`` (ATIF-v1.8); inspect_ai 0.3, ``ChatMessage``;
SWE-agent 1.1, ``sweagent/types.py``.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from judge.core.records.tool_episodes import (
    ReceivedCall,
    ResultText,
    TokenRecord,
    ToolCallLine,
    ToolEpisodeEnd,
    ToolEpisodeHead,
    ToolTurn,
)
from judge.desktop.episodes import MAX_TURNS
from judge.errors import StoreError, SubmissionError
from judge.files.documents import MIB, MalformedError, parse_json, read_regular
from judge.files.media import PICTURE_SUFFIXES, PICTURES_FOLDER, image_type
from judge.files.writing import HashedFolder
from judge.tools.episodes import (
    SETTING,
    ToolEpisode,
    ToolEpisodeWriter,
    write_definitions,
)

ATIF, INSPECT, SWE_AGENT = "atif", "inspect", "swe-agent"

_MAX_BYTES = 256 * MIB
_MAX_VALUES = 4_000_000
_MAX_CALLS = 1_000
_MAX_TEXT_CHARS = 1_000_000
_MAX_PICTURE_BYTES = 20 * MIB

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What an agent did, as recorded in a file of another program.

    A fact that the file does not contain has the value None, or is empty where stated.

    Attributes:
        format: ``atif``, ``inspect`` or ``swe-agent``.
        agent: the agent, with its version; empty if missing.
        model: its chat model.
        opening: role and text of the messages before the first reply.
        turns: replies with their calls and results.
        ended: why the agent ended, in the words of the file.
        definitions: the tools, in the format of chat completions.
        tokens: tokens of all turns; each field may be None.
        cost: cost in US dollars.
        seconds: total time in seconds.
        started: time of the start in ISO 8601; empty if missing.
        pictures: SHA-256 -> content of the pictures in results.
    """

    format: str
    agent: str
    model: str | None
    opening: tuple[tuple[str, str], ...]
    turns: tuple[ToolTurn, ...]
    ended: str | None = None
    definitions: Sequence[Object] | None = None
    tokens: TokenRecord = field(default_factory=TokenRecord)
    cost: float | None = None
    seconds: float | None = None
    started: str = ""
    pictures: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def errors(self) -> dict[str, int]:
        """Kind of error -> number of calls that ended with it."""
        calls = (call for turn in self.turns for call in turn["calls"])
        return dict(Counter(call.get("error", "tool") for call in calls if not call["ok"]))


def is_trajectory(path: Path) -> bool:
    """Whether :func:`read_trajectory` can read a file.

    Raises:
        SubmissionError: the file cannot be read, or is not JSON.
    """
    if path.suffix == ".eval":
        return False
    document = _document(path)
    return any(isinstance(document.get(name), list) for name in ("steps", "trajectory"))


def read_trajectory(path: Path) -> Trajectory:
    """Reads a file with a trajectory: ATIF, or SWE-agent's ``.traj``.

    Raises:
        SubmissionError: the file cannot be read, or is of neither format.
    """
    document = _document(path)
    if isinstance(document.get("steps"), list):
        return of_atif(document, path.parent)
    if isinstance(document.get("trajectory"), list):
        return of_swe_agent(document)
    raise SubmissionError(
        f"{path}: is not a trajectory",
        hint="ATIF has `steps`, and SWE-agent's .traj has `trajectory`. Give an Inspect log by "
        "its own path, not by a folder or a pattern.",
    )


def _document(path: Path) -> Object:
    """Returns the JSON object in a file; an empty one if the document is not an object."""
    data = read_regular(path, SubmissionError, max_bytes=_MAX_BYTES)
    if data is None:
        raise SubmissionError(f"{path}: no such file")
    try:
        document = parse_json(data, max_values=_MAX_VALUES)
    except MalformedError as error:
        raise SubmissionError(f"{path}: {error}") from error
    return document if isinstance(document, dict) else {}


# -- reading ATIF ---------------------------------------------------------------------------------


def of_atif(document: Object, folder: Path) -> Trajectory:
    """Reads a trajectory in ATIF.

    Steps that were copied from an earlier trajectory are left out. Messages of the user between two
    replies belong to the turn before them.

    Args:
        document: the document.
        folder: the folder with the files of its pictures.
    """
    agent, own = _object(document, "agent"), _object(document, "extra")
    opening: list[tuple[str, str]] = []
    turns: list[ToolTurn] = []
    pictures = _Pictures(folder)
    steps = [step for step in _objects(document, "steps") if not step.get("is_copied_context")]
    for step in steps:
        if step.get("source") == "agent":
            if len(turns) < MAX_TURNS:
                turns.append(_turn_of_step(step, len(turns) + 1, pictures))
        elif not turns:
            opening.append((_text(step, "source"), pictures.text(step.get("message"))))
        else:
            _add_told(turns[-1], pictures.text(step.get("message")))
    total = _object(document, "final_metrics")
    version = _text(agent, "version")
    stamps = [_text(step, "timestamp") for step in steps]
    return Trajectory(
        format=ATIF,
        agent=" ".join(part for part in (_text(agent, "name"), version) if part),
        model=_text(agent, "model_name") or None,
        opening=tuple(opening),
        turns=tuple(turns),
        ended=_text(own, "ended") or None,
        definitions=_objects(agent, "tool_definitions") or None,
        tokens=_total(
            turns,
            prompt=_count(total.get("total_prompt_tokens")),
            completion=_count(total.get("total_completion_tokens")),
            cached=_count(total.get("total_cached_tokens")),
        ),
        cost=_first(_amount(total.get("total_cost_usd")), _sum(turn.get("cost") for turn in turns)),
        seconds=_amount(own.get("seconds")),
        started=next((stamp for stamp in stamps if stamp), ""),
        pictures=pictures.content,
    )


def _turn_of_step(step: Object, number: int, pictures: _Pictures) -> ToolTurn:
    extra = _object(step, "extra")
    metrics, texts = _object(step, "metrics"), []
    results: dict[str, list[Object]] = {}
    for result in _objects(_object(step, "observation"), "results"):
        results.setdefault(_text(result, "source_call_id"), []).append(result)
    calls, received = [], []
    for call in _objects(step, "tool_calls")[:_MAX_CALLS]:
        identifier = _text(call, "tool_call_id")
        call_extra = _object(call, "extra")
        answer = next(iter(results.pop(identifier, [])), None)
        arguments = _object(call, "arguments")
        line = _call_line(identifier, _text(call, "function_name"), arguments, answer, pictures)
        for name in ("raw", "fault"):
            if isinstance(call_extra.get(name), str):
                line.pop("arguments", None)
                line[name] = call_extra[name]
        if isinstance(call_extra.get("repairs"), list):
            line["repairs"] = [str(repair) for repair in call_extra["repairs"]]
        line["id"] = _text(call_extra, "id") if "id" in call_extra else identifier
        calls.append(line)
        received.append(
            ReceivedCall(
                id=line["id"],
                name=_text(call_extra, "name") or line["tool"],
                arguments=call_extra["received"]
                if isinstance(call_extra.get("received"), str)
                else json.dumps(arguments, ensure_ascii=False),
            )
        )
    texts = [pictures.text(result.get("content")) for left in results.values() for result in left]
    sent = _object(extra, "sent")
    turn = ToolTurn(
        line="turn",
        number=number,
        reply={"text": pictures.text(step.get("message")), "calls": received},
        sent={"messages": _counts(sent.get("messages")), "left_out": _counts(sent.get("left_out"))},
        tokens={
            "prompt": _count(metrics.get("prompt_tokens")),
            "completion": _count(metrics.get("completion_tokens")),
            "cached": _count(metrics.get("cached_tokens")),
        },
        cost=_amount(metrics.get("cost_usd")),
        latency_s=_amount(extra.get("latency_s")),
        cut=extra.get("cut") is True,
        told="",
        calls=calls,
        seconds=_amount(extra.get("seconds")),
    )
    if reasoning := _text(step, "reasoning_content"):
        turn["reply"]["reasoning"] = reasoning
    for text in texts:
        _add_told(turn, text)
    return turn


def _call_line(
    identifier: str,
    tool: str,
    arguments: Object,
    answer: Object | None,
    pictures: _Pictures,
) -> ToolCallLine:
    """Reads a call with its result; if there is no result, its text is empty."""
    extra = _object(answer or {}, "extra")
    text = pictures.text((answer or {}).get("content"))
    line = ToolCallLine(
        id=identifier,
        id_sent=identifier,
        tool=tool,
        arguments=dict(arguments),
        ok=extra.get("ok") is not False,
        text=result_text(text, extra),
        seconds=_amount(extra.get("seconds")),
        workbook=_text(extra, "workbook") or None,
    )
    if shown := pictures.taken():
        line["pictures"] = shown
    if not line["ok"]:
        line["error"] = _text(extra, "error") or "tool"
    return line


class _Pictures:
    """Reads contents of messages; their pictures are files next to the trajectory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken: list[str] = []
        self.content: dict[str, bytes] = {}

    def text(self, content: object) -> str:
        """Returns the text of a content, and stores its pictures."""
        if isinstance(content, str):
            return content[:_MAX_TEXT_CHARS]
        parts = (
            [part for part in content if isinstance(part, dict)]
            if isinstance(content, list)
            else []
        )
        for part in parts:
            if part.get("type") == "image":
                self._take(_text(_object(part, "source"), "path"))
        return "\n".join(_text(part, "text") for part in parts if part.get("type") == "text")

    def _take(self, name: str) -> None:
        path = self._folder / name
        inside = name and not Path(name).is_absolute() and ".." not in Path(name).parts
        try:
            data = read_regular(path, StoreError, max_bytes=_MAX_PICTURE_BYTES) if inside else None
        except StoreError:
            return
        if data is not None and image_type(data) in PICTURE_SUFFIXES:
            digest = hashlib.sha256(data).hexdigest()
            self.content[digest] = data
            self._taken.append(digest)

    def taken(self) -> list[str]:
        """Returns the pictures that were read since the last call of this method."""
        taken, self._taken = self._taken, []
        return taken


# -- reading Inspect ------------------------------------------------------------------------------


_INSPECT_ERRORS = {"parsing": "argument", "timeout": "timeout", "limit": "limit"}


def of_inspect(sample: Object, header: Object) -> Trajectory:
    """Reads a sample of an Inspect log: messages with their calls, and the model's tokens.

    Args:
        sample: the sample, as JSON.
        header: the header of the log, as JSON.
    """
    task = _object(header, "eval")
    attachments = _object(sample, "attachments")

    def text(content: object) -> str:
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        words = (part.get("text") for part in parts if isinstance(part, dict))
        whole = "\n".join(word for word in words if isinstance(word, str))
        return str(attachments.get(whole.removeprefix("attachment://"), whole))[:_MAX_TEXT_CHARS]

    opening: list[tuple[str, str]] = []
    turns: list[ToolTurn] = []
    open_calls: dict[str, ToolCallLine] = {}
    for message in _objects(sample, "messages"):
        role = message.get("role")
        if role == "assistant" and len(turns) < MAX_TURNS:
            turns.append(_turn_of_message(message, len(turns) + 1, text))
            open_calls = {line["id"]: line for line in turns[-1]["calls"]}
        elif role == "tool" and (line := open_calls.get(_text(message, "tool_call_id"))):
            fault = _object(message, "error")
            line["text"] = result_text(text(message.get("content")) or _text(fault, "message"))
            if fault:
                line["ok"] = False
                line["error"] = _INSPECT_ERRORS.get(_text(fault, "type"), "tool")
        elif turns:
            _add_told(turns[-1], text(message.get("content")))
        else:
            opening.append((str(role), text(message.get("content"))))
    usage = [
        record for record in _object(sample, "model_usage").values() if isinstance(record, dict)
    ]
    _note_times(sample, turns)
    return Trajectory(
        format=INSPECT,
        agent=_text(task, "solver"),
        model=_text(task, "model") or None,
        opening=tuple(opening),
        turns=tuple(turns),
        ended=_text(_object(sample, "limit"), "type") or None,
        tokens={
            "prompt": _count(_sum(_amount(record.get("input_tokens")) for record in usage)),
            "completion": _count(_sum(_amount(record.get("output_tokens")) for record in usage)),
            "cached": _count(
                _sum(_amount(record.get("input_tokens_cache_read")) for record in usage)
            ),
        },
        cost=_sum(_amount(record.get("total_cost")) for record in usage),
        seconds=_amount(sample.get("total_time")),
        started=_text(sample, "started_at") or _text(task, "created"),
    )


def _turn_of_message(message: Object, number: int, text: Callable[[object], str]) -> ToolTurn:
    calls, received = [], []
    for call in _objects(message, "tool_calls")[:_MAX_CALLS]:
        identifier, arguments = _text(call, "id"), _object(call, "arguments")
        line = _empty_call(identifier, _text(call, "function"), arguments)
        if fault := _text(call, "parse_error"):
            line["fault"] = fault
        calls.append(line)
        received.append(
            ReceivedCall(id=identifier, name=line["tool"], arguments=json.dumps(arguments))
        )
    return _turn(number, text(message.get("content")), calls, received)


def _note_times(sample: Object, turns: Sequence[ToolTurn]) -> None:
    """Adds the seconds of the calls whose events are in the log."""
    lines = {line["id"]: line for turn in turns for line in turn["calls"]}
    for event in _objects(sample, "events"):
        line = lines.get(_text(event, "id"))
        if event.get("event") == "tool" and line is not None:
            line["seconds"] = _amount(event.get("working_time"))


# -- reading SWE-agent ----------------------------------------------------------------------------


def of_swe_agent(document: Object) -> Trajectory:
    """Reads a ``.traj`` of SWE-agent.

    A step is a reply and one action. The call of a step is that of the reply in the history that
    has the same action; if there is no such reply, the command line itself is the call.
    """
    history, info = _objects(document, "history"), _object(document, "info")
    opening: list[tuple[str, str]] = []
    for message in history:
        if message.get("role") == "assistant":
            break
        opening.append((_text(message, "role"), _plain(message.get("content"))))
    replies = [message for message in history if message.get("role") == "assistant"]
    turns: list[ToolTurn] = []
    at = 0
    for step in _objects(document, "trajectory")[:MAX_TURNS]:
        action = _text(step, "action")
        match = next(
            (n for n in range(at, len(replies)) if _text(replies[n], "action") == action), None
        )
        call: Object = {}
        if match is not None:
            at = match + 1
            call = next(iter(_objects(replies[match], "tool_calls")), {})
        turns.append(_turn_of_action(step, action, call, len(turns) + 1))
    stats = _object(info, "model_stats")
    return Trajectory(
        format=SWE_AGENT,
        agent="SWE-agent",
        model=None,
        opening=tuple(opening),
        turns=tuple(turns),
        ended=_text(info, "exit_status") or None,
        tokens={
            "prompt": _count(stats.get("tokens_sent")),
            "completion": _count(stats.get("tokens_received")),
            "cached": None,
        },
        cost=_amount(stats.get("instance_cost")),
    )


def _turn_of_action(step: Object, action: str, call: Object, number: int) -> ToolTurn:
    function = _object(call, "function")
    written = function.get("arguments")
    name = _text(function, "name") or "bash"
    arguments: Object = {"command": action}
    if isinstance(written, dict):
        arguments = written
    elif isinstance(written, str):
        try:
            parsed = parse_json(written.encode())
        except MalformedError:
            parsed = None
        arguments = parsed if isinstance(parsed, dict) else arguments
    calls, received = [], []
    if action or call:
        line = _empty_call(_text(call, "id"), name, arguments)
        line["text"] = result_text(_text(step, "observation"))
        line["seconds"] = _amount(step.get("execution_time"))
        calls.append(line)
        sent = written if isinstance(written, str) else json.dumps(arguments, ensure_ascii=False)
        received.append(ReceivedCall(id=line["id"], name=name, arguments=sent))
    turn = _turn(number, _text(step, "response") or _text(step, "thought"), calls, received)
    if not calls:
        _add_told(turn, _text(step, "observation"))
    return turn


def _plain(content: object) -> str:
    if isinstance(content, str):
        return content[:_MAX_TEXT_CHARS]
    parts = content if isinstance(content, list) else []
    return "\n".join(_text(part, "text") for part in parts if isinstance(part, dict))


# -- into a run -----------------------------------------------------------------------------------


def write_trajectory(
    run: Path,
    trajectory: Trajectory,
    *,
    task_id: int | str,
    sample: int,
    case: int,
    output: bytes | None,
    changed: bool,
) -> ToolEpisode:
    """Writes a trajectory to a run, as an episode of tools.

    Args:
        run: the run's directory.
        trajectory: the trajectory.
        task_id: the id of the task, as written in its suite.
        sample: 0-based number of the sample.
        case: 1-based number of the case.
        output: the workbook that the agent left; None if it left none.
        changed: whether the workbook differs from the input.

    Raises:
        StoreError: the episode cannot be written.
    """
    pictures = HashedFolder(run / PICTURES_FOLDER, "picture", _MAX_PICTURE_BYTES)
    for data in trajectory.pictures.values():
        pictures.add(data, PICTURE_SUFFIXES[image_type(data) or ""])
    head = ToolEpisodeHead(
        line="head",
        id=task_id,
        sample=sample,
        case=case,
        model=trajectory.model or "",
        setting=SETTING + (trajectory.agent or trajectory.format),
        instruction="\n\n".join(text for role, text in trajectory.opening if role != "system"),
        answer="workbook",
        tools=write_definitions(run, trajectory.definitions or []),
        servers=[],
        image="",
        files={},
        collected="",
        limits={},
        started=trajectory.started,
        start_s=None,
        attempt=0,
        imported=trajectory.format,
    )
    end = _end_of(trajectory, output, changed=changed)
    with ToolEpisodeWriter(run, head) as writer:
        for turn in trajectory.turns:
            writer.append(turn)
        writer.append(end)
        return ToolEpisode(writer.path, head, trajectory.turns, end)


def _end_of(trajectory: Trajectory, output: bytes | None, *, changed: bool) -> ToolEpisodeEnd:
    calls = [call for turn in trajectory.turns for call in turn["calls"]]
    return ToolEpisodeEnd(
        line="end",
        ended=trajectory.ended or "",
        turns=len(trajectory.turns),
        calls=len(calls),
        errors=trajectory.errors,
        repairs=sum(len(call.get("repairs", ())) for call in calls),
        tokens=trajectory.tokens,
        cost=trajectory.cost,
        seconds=trajectory.seconds,
        output=None if output is None else hashlib.sha256(output).hexdigest(),
        output_bytes=0 if output is None else len(output),
        changed=changed,
        problem="" if output is not None else "the agent left no workbook",
    )


# -- fields ---------------------------------------------------------------------------------------


def _empty_call(identifier: str, tool: str, arguments: Object) -> ToolCallLine:
    return ToolCallLine(
        id=identifier,
        id_sent=identifier,
        tool=tool,
        arguments=dict(arguments),
        ok=True,
        text=result_text(""),
        seconds=None,
        workbook=None,
    )


def _turn(
    number: int, text: str, calls: list[ToolCallLine], received: list[ReceivedCall]
) -> ToolTurn:
    return ToolTurn(
        line="turn",
        number=number,
        reply={"text": text, "calls": received},
        sent={"messages": [], "left_out": []},
        tokens={"prompt": None, "completion": None, "cached": None},
        cost=None,
        latency_s=None,
        cut=False,
        told="",
        calls=calls,
        seconds=None,
    )


def result_text(shown: str, full: Object | None = None) -> ResultText:
    """Returns the record of a result's text.

    If the text was cut before, ``full`` has the hash and the length of the whole text.
    """
    digest, chars = _text(full or {}, "sha256"), _count((full or {}).get("chars"))
    return {
        "sha256": digest or hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest(),
        "chars": len(shown) if chars is None else chars,
        "shown": shown,
    }


def _add_told(turn: ToolTurn, words: str) -> None:
    if words:
        turn["told"] = "\n\n".join(part for part in (turn.get("told"), words) if part)


def _total(turns: Sequence[ToolTurn], **stated: int | None) -> TokenRecord:
    total: dict[str, int | None] = {}
    for name, value in stated.items():
        counts = ((turn.get("tokens") or TokenRecord()).get(name) for turn in turns)
        total[name] = _first(value, _count(_sum(counts)))
    return cast("TokenRecord", total)


def _sum(values: Iterator[Any]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) if there else None


def _first(value: Any, other: Any) -> Any:
    return other if value is None else value


def without_none(fields: Object) -> dict[str, Any]:
    """Returns the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _object(document: Object, name: str) -> Object:
    value = document.get(name)
    return value if isinstance(value, dict) else {}


def _objects(document: Object, name: str) -> list[Object]:
    value = document.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(document: Object, name: str) -> str:
    value = document.get(name)
    return value[:_MAX_TEXT_CHARS] if isinstance(value, str) else ""


def _amount(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _count(value: object) -> int | None:
    amount = _amount(value)
    return None if amount is None or amount != int(amount) else int(amount)


def _counts(value: object) -> list[int]:
    numbers = map(_count, value) if isinstance(value, list) else ()
    return [number for number in numbers if number is not None]
