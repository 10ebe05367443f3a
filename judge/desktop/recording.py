"""Heads, options and actions of episodes: as :mod:`judge.desktop.records` hold them, and back."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any, cast

from judge.desktop.contract import (
    Action,
    ActionOutcome,
    DesktopInfo,
    DesktopOptions,
    DesktopTask,
    Signal,
    WindowPlace,
)
from judge.desktop.records import (
    EPISODES_FOLDER,
    ActionRecord,
    EpisodeEnd,
    EpisodeHead,
    OptionsRecord,
)
from judge.files.documents import MalformedError
from judge.files.forms import checked

HUMAN = "human"
"""What is recorded as the model where a person worked."""

MAX_CHARS = 20_000
"""Of one text in a record; what is longer is cut."""

_MAX_EVENTS = 1_000


def head_of(
    task_id: int | str,
    sample: int,
    case: int,
    *,
    model: str,
    setting: str,
    instruction: str,
    task: DesktopTask,
    options: DesktopOptions,
    info: DesktopInfo,
    started: str,
    attempt: int = 0,
) -> EpisodeHead:
    """The first line of an episode.

    Args:
        task_id: of the task, as its suite writes it.
        sample: its 0-based number.
        case: the 1-based number of the case.
        model: the chat model, or :data:`HUMAN`.
        setting: its name.
        instruction: what is asked.
        task: what the desktop was opened for.
        options: what the desktop is like.
        info: what the desktop is.
        started: when, in ISO 8601, UTC.
        attempt: how many desktops broke in this episode before.
    """
    return {
        "line": "head",
        "id": task_id,
        "sample": sample,
        "case": case,
        "model": model,
        "setting": setting,
        "instruction": instruction,
        "options": options_record(options),
        "image": info.image,
        "office": info.office,
        "ready_s": info.ready_s,
        "started": started,
        "files": {path: hashlib.sha256(data).hexdigest() for path, data in task.files.items()},
        "opened": task.opened,
        "collected": task.collected,
        "attempt": attempt,
    }


def options_record(options: DesktopOptions) -> dict[str, object]:
    """The options of a desktop as JSON."""
    return {**asdict(options), "as_published": sorted(options.as_published)}


def options_of(head: EpisodeHead) -> DesktopOptions:
    """The options of a desktop that the head of an episode names.

    Raises:
        MalformedError: they are not those of a desktop.
    """
    found: dict[str, Any] = {**head["options"]}
    place = found.get("window")
    try:
        checked(found, OptionsRecord)
        return DesktopOptions(
            **{
                **found,
                "as_published": frozenset(found["as_published"]),
                "window": None if place is None else WindowPlace(**place),
            }
        )
    except TypeError as error:
        raise MalformedError(f"the options of the desktop: {error}") from error


def action_of(record: ActionRecord) -> Action:
    """An action on record.

    Raises:
        MalformedError: it is not one.
    """
    signal = record.get("signal")
    if signal is not None:
        if signal not in tuple(Signal):
            raise MalformedError(f"{signal[:40]!r} is not said on a desktop")
        return Action(signal=Signal(signal))
    if (code := record.get("code")) is not None:
        return Action(code=code)
    call = record.get("call")
    if call is None:
        raise MalformedError("an action without code, call or signal")
    return Action(call=call)


def action_record(action: Action, outcome: ActionOutcome) -> ActionRecord:
    """An action and its outcome as they are kept, bounded."""
    record: dict[str, Any] = {}
    if action.code is not None:
        record["code"] = action.code
    if action.call is not None:
        record["call"] = dict(action.call)
    if action.signal is not None:
        record["signal"] = action.signal.value
    record |= {
        "error": outcome.error[-MAX_CHARS:],
        "refused": outcome.refused,
        "printed": outcome.printed[:MAX_CHARS],
        "events": [
            [event.kind, event.x, event.y, event.detail[:MAX_CHARS]]
            for event in outcome.events[:_MAX_EVENTS]
        ],
        "settled": outcome.settled,
        "seconds": round(outcome.seconds, 3),
    }
    return cast("ActionRecord", record)


def output_record(
    end: EpisodeEnd, task: DesktopTask, options: DesktopOptions, path: Path
) -> dict[str, object]:
    """What a record of submissions.jsonl says of an episode that has ended.

    Args:
        end: its last line.
        task: what the desktop was opened for.
        options: what the desktop was like.
        path: the episode's file.
    """
    return {
        "sha256": end["output"],
        "bytes": end["output_bytes"],
        "name": PurePosixPath(task.collected).name,
        "ended": end["ended"],
        "gui_only": options.gui_only,
        "changed": end["changed"],
        "problem": end["problem"],
        "turns": end["turns"],
        "steps": end["steps"],
        "seconds": end["seconds"],
        "episode": f"{EPISODES_FOLDER}/{path.name}",
    }
