"""What the runs of desktop episodes were set to, for the lines of the papers' tables. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from judge.core.records.runs import InferenceIdentity, RunDocument
from judge.core.task import Task
from judge.desktop.episodes import HUMAN
from judge.report.episode_model import EpisodeEntry, SettingRow

SEVERAL = "several"
_LONGEST = 200
_OF_SETTING = {
    "turns at most": "rounds",
    "minutes at most": "minutes",
    "tokens of a tree": "tree_tokens",
}
"""Name for people -> key of the desktop's setting on record."""
_OF_REQUESTS = {
    "tokens of a reply": "max_tokens",
    "temperature": "temperature",
    "top p": "top_p",
}
"""Name for people -> key of the parameters of requests on record."""


@dataclass(frozen=True, slots=True)
class AskedSetting:
    """How the tasks of a line of a table were asked.

    Attributes:
        history: earlier turns that a request shows; None where not known.
        instruction: the phrasing of the instructions; ``both`` where there are two.
        oracle_plan: whether the steps of an expert were given.
        details: further settings by their names for people.
    """

    history: int | None
    instruction: str
    oracle_plan: bool
    details: Mapping[str, str]


def asked_setting(
    run: RunDocument, entries: Sequence[EpisodeEntry], tasks: Iterable[Task | None]
) -> AskedSetting:
    """What is on record of how tasks were asked.

    Args:
        run: the document of run.json.
        entries: the episodes.
        tasks: the tasks that they are about; None where the suite is not available.
    """
    asked = run.get("inference") or InferenceIdentity()
    if any(entry.model == HUMAN for entry in entries):
        asked = InferenceIdentity()  # people work as they like, whatever a model was told
    desktop = asked.get("desktop")
    setting = desktop.get("setting") if isinstance(desktop, Mapping) else None
    setting = setting if isinstance(setting, Mapping) else {}
    history = setting.get("history")
    phrasings = {task.phrasing.name for task in tasks if task is not None and task.phrasing}
    return AskedSetting(
        history=history if isinstance(history, int) else None,
        instruction="both" if len(phrasings) > 1 else "".join(phrasings)[:_LONGEST],
        oracle_plan=asked.get("oracle_plan") is True,
        details={**_said_of_models(asked, setting), **_said_of_desktops(entries)},
    )


def _said_of_models(asked: InferenceIdentity, setting: Mapping[str, object]) -> dict[str, str]:
    if not asked:
        return {}
    params = asked.get("params") or {}
    said = {name: setting.get(key) for name, key in _OF_SETTING.items()}
    said |= {name: params.get(key) for name, key in _OF_REQUESTS.items()}
    said["execution feedback"] = asked.get("execution_feedback") is not False
    said["documents"] = asked.get("documents") or False
    prompt = asked.get("prompt")
    said["prompt"] = prompt.get("name") if isinstance(prompt, Mapping) else None
    return {name: _text(value) for name, value in said.items() if value is not None}


def _said_of_desktops(entries: Sequence[EpisodeEntry]) -> dict[str, str]:
    if not entries:
        return {}
    return {
        "screen": common(entry.screen for entry in entries),
        "window": common(entry.window or "whole screen" for entry in entries),
        "other windows": common(str(entry.clutter) for entry in entries),
        "as published": common(", ".join(entry.as_published) or "nothing" for entry in entries),
    }


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)[:_LONGEST]


def common(names: Iterable[str]) -> str:
    """What all have; ``several`` if they differ, empty if there are none."""
    different = set(names)
    return SEVERAL if len(different) > 1 else "".join(different)


def plan_in_words(row: SettingRow) -> str:
    """What the instruction says of the steps: its phrasing, and whether a plan came with it."""
    return " + ".join(filter(None, [row.instruction, "plan" if row.oracle_plan else ""])) or "-"


def differing(rows: Sequence[SettingRow]) -> tuple[str, ...]:
    """The further settings in which the rows of a table differ, in the order of their records."""
    named = dict.fromkeys(name for row in rows for name in row.details)
    return tuple(
        name
        for name in named
        if len({row.details[name] for row in rows if name in row.details}) > 1
    )
