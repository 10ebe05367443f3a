"""Writes episodes of tools as ATIF documents, which :mod:`judge.tools.trajectories` reads back.

Reading a document back gives the same turns: facts for which ATIF has no field go into ``extra``.
Source: harbor 0.25.0, ``harbor/models/trajectories`` (ATIF-v1.8).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from judge.core.records.tool_episodes import ReceivedCall, TokenRecord, ToolCallLine, ToolTurn
from judge.tools.episodes import SETTING, ToolEpisode
from judge.tools.trajectories import Object, result_text, without_none
from judge.version import __version__

_ATIF_VERSION = "ATIF-v1.8"

FindPicture = Callable[[str], tuple[str, str] | None]
"""SHA-256 of a picture -> media type and path of its file; None if the file is missing."""


def to_atif(
    episode: ToolEpisode,
    definitions: Sequence[Object] | None,
    *,
    system: str = "",
    facts: Object | None = None,
    picture: FindPicture | None = None,
) -> dict[str, Any]:
    """Converts an episode to an ATIF document.

    Args:
        episode: the episode.
        definitions: its tools, in the format of chat completions; None if they are unknown.
        system: the system message; empty if there is none.
        facts: further facts, such as the verdict; they must not quote a gold.
        picture: finds the files of pictures; if None, pictures are left out.
    """
    head, end = episode.head, episode.end
    steps: list[dict[str, Any]] = []
    if system:
        steps.append({"source": "system", "message": system})
    steps.append({"source": "user", "message": head["instruction"]})
    if head["started"]:
        steps[0]["timestamp"] = head["started"]
    steps += [_step_of_turn(turn, picture) for turn in episode.turns]
    name, _, version = head["setting"].removeprefix(SETTING).rpartition(" ")
    own = not head.get("imported")
    agent: dict[str, Any] = {
        "name": f"judge {head['setting']}" if own else name or version,
        "version": __version__ if own else (version if name else "unknown"),
    }
    if head["model"]:
        agent["model_name"] = head["model"]
    if definitions:
        agent["tool_definitions"] = list(definitions)
    extra: dict[str, Any] = {"task": head["id"], "sample": head["sample"], "case": head["case"]}
    document: dict[str, Any] = {
        "schema_version": _ATIF_VERSION,
        "session_id": f"{head['id']}.{head['sample']}.{head['case']}",
        "agent": agent,
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, start=1)],
    }
    if end is not None:
        tokens = end.get("tokens") or TokenRecord()
        totals = {
            "total_prompt_tokens": tokens.get("prompt"),
            "total_completion_tokens": tokens.get("completion"),
            "total_cached_tokens": tokens.get("cached"),
            "total_cost_usd": end.get("cost"),
            "total_steps": len(steps),
        }
        document["final_metrics"] = without_none(totals)
        extra |= without_none(
            {"ended": end["ended"] or None, "errors": end["errors"], "seconds": end["seconds"]}
        )
    document["extra"] = extra | dict(facts or {})
    return document


def _step_of_turn(turn: ToolTurn, picture: FindPicture | None) -> dict[str, Any]:
    reply, tokens = turn["reply"], turn.get("tokens") or TokenRecord()
    metrics = without_none(
        {
            "prompt_tokens": tokens.get("prompt"),
            "completion_tokens": tokens.get("completion"),
            "cached_tokens": tokens.get("cached"),
            "cost_usd": turn.get("cost"),
        }
    )
    step: dict[str, Any] = {"source": "agent", "message": reply["text"], "llm_call_count": 1}
    if reply.get("reasoning"):
        step["reasoning_content"] = reply["reasoning"]
    if metrics:
        step["metrics"] = metrics
    results: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for number, line in enumerate(turn["calls"]):
        received = reply["calls"][number] if number < len(reply["calls"]) else None
        calls.append(_atif_call(line, received))
        results.append(_atif_result(line, picture))
    if turn.get("told"):
        results.append({"content": turn["told"]})
    if calls:
        step["tool_calls"] = calls
    if results:
        step["observation"] = {"results": results}
    sent = turn["sent"]
    step["extra"] = without_none(
        {
            "seconds": turn["seconds"],
            "latency_s": turn.get("latency_s"),
            "cut": turn["cut"] or None,
            "sent": dict(sent) if sent["messages"] else None,
        }
    )
    return step


def _atif_call(line: ToolCallLine, received: ReceivedCall | None) -> dict[str, Any]:
    arguments = line.get("arguments", {})
    plain = json.dumps(arguments, ensure_ascii=False)
    extra = {
        "id": line["id"] if line["id"] != line["id_sent"] else None,
        "raw": line.get("raw"),
        "fault": line.get("fault"),
        "repairs": line.get("repairs") or None,
    }
    if received is not None:
        extra["name"] = received["name"] if received["name"] != line["tool"] else None
        extra["received"] = received["arguments"] if received["arguments"] != plain else None
    call = {
        "tool_call_id": line["id_sent"],
        "function_name": line["tool"],
        "arguments": dict(arguments),
    }
    known = without_none(extra)
    return {**call, "extra": known} if known else call


def _atif_result(line: ToolCallLine, picture: FindPicture | None) -> dict[str, Any]:
    text = line["text"]
    parts = [file for digest in line.get("pictures", ()) if picture and (file := picture(digest))]
    content: object = text["shown"]
    if parts:
        content = [{"type": "text", "text": text["shown"]}] + [
            {"type": "image", "source": {"media_type": media_type, "path": path}}
            for media_type, path in parts
        ]
    whole = result_text(text["shown"]) != text
    return {
        "source_call_id": line["id_sent"],
        "content": content,
        "extra": without_none(
            {
                "ok": line["ok"],
                "error": line.get("error"),
                "seconds": line["seconds"],
                "workbook": line["workbook"],
                "sha256": text["sha256"] if whole else None,
                "chars": text["chars"] if whole else None,
            }
        ),
    }
