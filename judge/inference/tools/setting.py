"""How a chat model works with tools: presets, limits, published behaviour, files of a case."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import Any, Literal, cast

from judge.core.records.runs import ServerRecord, ToolsIdentity
from judge.core.task import CaseInput, TaskQuestion
from judge.desktop.contract import CORRECTIONS
from judge.errors import InferenceError, SuiteError, UsageError
from judge.files.documents import MIB, dump_json, read_regular
from judge.files.yaml_documents import read_yaml
from judge.inference.config import Setting, inference_folder
from judge.inference.prompt import Feedback
from judge.suites.desktop import REQUESTED_FILE
from judge.tools.box import HOME
from judge.tools.episodes import SETTING, definitions_bytes
from judge.tools.sets import ToolSet

MODE = "tools"
Answer = Literal["workbook", "program"]
MAX_FILE_BYTES = 64 * MIB

AGENT_DEPARTURES: Mapping[str, str] = {
    "blocklist": "commands are refused by the published rule, whose prefixes are reversed",
    "shifted-arguments": "an argument of view_xlsx that is left out moves later ones up",
    "marker": "the text of a submission in any output ends the episode",
    "vanishing-mistakes": "replies that cannot be used vanish from later requests",
    "call-51": "one more reply is requested, and not used",
    "values": "the prompt promises values, which view_xlsx never shows",
}
"""Differences between SpreadsheetBench 2's published agent and its description: name -> effect.

The network, which the published agent has, is never offered."""

DEFAULT_DEPARTURES = frozenset({"vanishing-mistakes", "values"})
"""The :data:`AGENT_DEPARTURES` that are kept unless an option corrects them, because the model sees
them."""

AS_PUBLISHED: Mapping[str, str] = {**CORRECTIONS, **AGENT_DEPARTURES}
"""The names that ``--as-published`` accepts, on desktops and with tools."""

_WORDS = frozenset(
    {"no_call", "cut_off", "too_many", "timeout", "long", "empty", "left_out", "format"}
    | {"pictures", "pictures_follow", "pictures_hidden", "pictures_refused"}
)
_SSB2 = "ssb2"
PRESETS = ("native", _SSB2)


@dataclass(frozen=True, slots=True)
class ToolSetting(Setting):
    """The setting of the mode ``tools``; ``rounds`` are replies.

    Attributes:
        call_s: time limit of a call, in seconds.
        slow_call_s: time limit of a call of recalc or render, in seconds.
        calls_s: time limit of all calls of an episode, in seconds; no reply is requested after it.
        minutes: time limit of an episode, in minutes; no reply is requested after it. None for no
            limit.
        timeouts: the episode ends after this many calls in a row that take too long.
        calls: how many calls of a reply are executed.
        silent: the episode ends after this many replies in a row without a call.
        reply_tokens: maximum number of tokens of a reply; None for the server's own limit.
        result_chars: how many characters of a result the model sees.
        one_call: whether the model is asked again if a reply is not exactly one valid call.
        pictures: how pictures of results are shown: ``after`` all results of a reply, ``in-result``
            or ``none``.
        context_tokens: approximate number of tokens that a request may have; None for no limit.
        episode_tokens: tokens of an episode after which no reply is requested; None for no limit.
        episode_cost: US dollars after which no reply is requested; None for no limit.
        text_calls: whether calls that a server leaves in the text are read.
    """

    call_s: float
    slow_call_s: float
    calls_s: float
    minutes: float | None
    timeouts: int
    calls: int
    silent: int
    reply_tokens: int | None
    result_chars: int
    one_call: bool
    pictures: str = "after"
    context_tokens: int | None = None
    episode_tokens: int | None = None
    episode_cost: float | None = None
    text_calls: bool = False

    @property
    def limits(self) -> dict[str, float | None]:
        """The limits, for the record of the run."""
        names = ("rounds", "call_s", "slow_call_s", "calls_s", "minutes", "timeouts", "calls")
        more = ("silent", "reply_tokens", "result_chars", "context_tokens", "episode_tokens")
        return {name: getattr(self, name) for name in (*names, *more, "episode_cost")}


@dataclass(frozen=True, slots=True)
class Preset:
    """A preset: the content of a file in ``inference/tools``.

    Attributes:
        name: the name of the preset.
        tools: the tools that it names.
        setting: its rules.
        system: the system message.
        prompts: the prompt ``workbook``, and ``program`` or ``visualisation`` if the file has them.
        words: the messages about calls and results that the model gets.
        shows: the prompt's sentences about the output of view_xlsx: ``published`` and
            ``corrected``; empty if the preset has no such tool.
        digest: SHA-256 of the file.
    """

    name: str
    tools: tuple[str, ...]
    setting: ToolSetting
    system: str
    prompts: Mapping[str, str]
    words: Feedback
    shows: Mapping[str, str]
    digest: str


def load_preset(name: str) -> Preset:
    """Reads a preset by its name.

    Raises:
        InferenceError: the file is broken.
    """
    path = inference_folder() / "tools" / f"{name}.yaml"
    document = read_yaml(path, InferenceError)
    if not isinstance(document, dict):
        raise InferenceError(f"{path}: must have entries such as tools and rounds")
    entries: dict[str, Any] = {str(key): value for key, value in document.items()}
    words = entries.get("words")
    if not isinstance(words, dict) or words.keys() != _WORDS:
        raise InferenceError(f"{path}: words must have exactly {', '.join(sorted(_WORDS))}")
    names = {field.name for field in fields(ToolSetting)} & entries.keys()
    try:
        setting = ToolSetting(
            **{
                "name": f"{SETTING}{name}",
                "prompt": f"{SETTING}{name}",
                "rows": 0,
                "content": "pandas",
                "executes": True,
                **{key: entries[key] for key in names},
            }
        )
        prompts: dict[str, str] = {
            key: str(entries[key])
            for key in ("workbook", "program", "visualisation")
            if key in entries
        }
        return Preset(
            name=name,
            tools=tuple(map(str, entries["tools"])),
            setting=setting,
            system=str(entries["system"]),
            prompts=prompts,
            words=Feedback({str(key): str(value) for key, value in words.items()}),
            shows=dict(entries.get("shows") or {}),
            digest=hashlib.sha256(dump_json(entries).encode()).hexdigest(),
        )
    except (KeyError, TypeError) as error:
        raise InferenceError(f"{path}: an entry is missing or has another form: {error}") from error


@dataclass(frozen=True, slots=True)
class ToolMode:
    """How a model works on tasks with tools.

    Attributes:
        setting: the rules, with the options applied.
        preset: the preset whose wording is used.
        tools: the tools.
        answer: ``workbook`` or ``program``.
        instructions: whether the system message includes the instructions that servers send.
        as_published: names of the :data:`AGENT_DEPARTURES` that are kept.
    """

    setting: ToolSetting
    preset: Preset
    tools: ToolSet
    answer: Answer = "workbook"
    instructions: bool = True
    as_published: frozenset[str] = frozenset()

    @property
    def is_published(self) -> bool:
        """Whether the preset is a published setting, to which :data:`AGENT_DEPARTURES` apply."""
        return self.preset.name == _SSB2

    @property
    def begins_with_copy(self) -> bool:
        """Whether the collected workbook is a copy of the input at the beginning."""
        return self.answer == "workbook" and not self.is_published

    @property
    def identity(self) -> ToolsIdentity:
        """Settings that must not change when a run is continued."""
        definitions = self.tools.definitions
        corrected = AGENT_DEPARTURES.keys() - self.as_published if self.is_published else set()
        return {
            "asked": self.tools.requested,
            "preset": self.preset.name,
            "answer": self.answer,
            "names": [str(definition["function"]["name"]) for definition in definitions],
            "definitions": hashlib.sha256(definitions_bytes(definitions)).hexdigest(),
            "schemas": {
                str(definition["function"]["name"]): hashlib.sha256(
                    dump_json(definition).encode("utf-8", "replace")
                ).hexdigest()
                for definition in definitions
            },
            "servers": [_lasting(server.record) for server in self.tools.servers],
            "licences": {server.name: server.licences for server in self.tools.servers},
            "limits": self.setting.limits,
            "as_published": sorted(self.as_published),
            "corrected": sorted(corrected),
            "preset_sha256": self.preset.digest,
            "pictures": self.setting.pictures,
            "instructions": self.instructions,
        }

    def prompt_text(self, question: TaskQuestion) -> str:
        """Returns the template of the first message about a task."""
        if self.answer == "program":
            return self.preset.prompts["program"]
        wants_chart = "visual" in (question.kind or "").lower()
        if wants_chart and "visualisation" in self.preset.prompts:
            return self.preset.prompts["visualisation"]
        return self.preset.prompts["workbook"]

    @property
    def shows(self) -> str:
        """What the prompt says about the output of view_xlsx; empty if it says nothing."""
        if not self.preset.shows:
            return ""
        return self.preset.shows["published" if "values" in self.as_published else "corrected"]


def _lasting(record: ServerRecord) -> ServerRecord:
    """Returns the facts about a server that are the same at every start."""
    passing = ("start_s", "noise", "list_changed", "restarts")
    return cast("ServerRecord", {k: v for k, v in record.items() if k not in passing})


def departures_of(
    preset: Preset, as_published: Sequence[str], corrected: Sequence[str]
) -> frozenset[str]:
    """Returns the names of the :data:`AGENT_DEPARTURES` that are kept.

    Raises:
        UsageError: a name is unknown, or the tools are not a published setting.
    """
    if preset.name != _SSB2:
        if as_published or corrected:
            raise UsageError("--as-published and --corrected can only be used with --tools ssb2")
        return frozenset()
    for name in (*as_published, *corrected):
        if name not in AGENT_DEPARTURES:
            raise UsageError(
                f"{name[:80]!r} names no behaviour of the published agent",
                hint=f"Give one of: {', '.join(AGENT_DEPARTURES)}. Its network is never offered.",
            )
    return (DEFAULT_DEPARTURES | frozenset(as_published)) - frozenset(corrected)


def why_not_asked(question: TaskQuestion) -> str | None:
    """Returns why a model cannot work on a task with tools; None if it can."""
    if not question.answer.is_file:
        return "its answer is typed"
    problems = (case.obstacle for case in question.inputs)
    return next((problem for problem in problems if problem is not None), None)


@dataclass(frozen=True, slots=True)
class ToolTask:
    """The files of an episode.

    Attributes:
        files: path inside the sandbox -> content.
        opened: path of the input workbook.
        collected: path of the workbook that is collected as the answer.
    """

    files: Mapping[str, bytes]
    opened: str
    collected: str


def tool_paths(question: TaskQuestion, case: CaseInput) -> tuple[str, str]:
    """Returns the paths of the input workbook, and of the workbook that is the answer."""
    opened = case.opened
    if opened is None:
        raise SuiteError(f"task {question.id}, case {case.number}: it has no workbook")
    requested = question.details.get(REQUESTED_FILE)
    name = PurePosixPath(requested).name if requested else opened
    return f"{HOME}/in/{opened}", f"{HOME}/out/{name}"


def tool_task(question: TaskQuestion, case: CaseInput, *, copied: bool) -> ToolTask:
    """Returns the files of an episode on a case.

    Args:
        question: the task.
        case: the case.
        copied: whether to put a copy of the input where the answer is expected, since few servers
            can copy a file.

    Raises:
        SuiteError: a file cannot be read.
    """
    opened, collected = tool_paths(question, case)
    files: dict[str, bytes] = {}
    for file in case.files:
        data = read_regular(file.path, SuiteError, max_bytes=MAX_FILE_BYTES)
        if data is None:
            raise SuiteError(f"{file.path}: the file is missing")
        files[f"{HOME}/in/{file.path.name}"] = data
    if copied:
        files[collected] = files[opened]
    return ToolTask(files, opened, collected)
