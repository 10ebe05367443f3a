"""Performs recorded episodes again in a fresh sandbox, and compares the outcome with the record."""

from __future__ import annotations

import contextlib
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Generic, TypeVar

from judge.api.options import ScoreOptions
from judge.api.resources import JudgingResources
from judge.api.scoring import backend_of
from judge.api.tools import named_set
from judge.core.records.runs import RunDocument
from judge.core.records.tool_episodes import ToolCallLine, ToolTurn
from judge.core.submission import KeptOutput
from judge.core.task import Task, TestCase
from judge.core.verdict import Verdict
from judge.desktop.choices import OBSERVATION_FORMS
from judge.desktop.contract import Desktop, DesktopHost, Signal
from judge.desktop.episodes import (
    Episode,
    EpisodeFiles,
    TurnRecord,
    action_of,
    options_of,
    read_episodes,
)
from judge.desktop.sandboxed import open_desktops
from judge.errors import JudgeError, StoreError, SuiteError, UsageError
from judge.files.documents import MalformedError
from judge.grading.case import CaseJudge
from judge.grading.running import episode_outcome
from judge.grading.store import RunDirectory
from judge.inference.chat import writable
from judge.inference.desktop.episode import look, table_of
from judge.inference.desktop.setting import (
    MODE,
    DesktopMode,
    desktop_task,
    load_desktop_setting,
    load_words,
)
from judge.inference.tools.setting import ToolTask, tool_task
from judge.sandbox import open_sandbox
from judge.sandbox.contract import Sandbox
from judge.suites import Suite, load_suite
from judge.tools.box import HOME
from judge.tools.episodes import ToolEpisode, has_tool_episodes, read_tool_episodes
from judge.tools.native import SUBMIT, VIEW_XLSX
from judge.tools.sets import EpisodeTools, SharedCalculator, ToolSet


@dataclass(frozen=True, slots=True)
class ReplayedTurn:
    """A turn whose outcome differs from the record.

    Attributes:
        number: number of the turn, from 1.
        lines: number of lines that are in only one of the two accessibility tables; 0 if the tables
            are equal.
        outcomes: numbers, from 1, of the actions that failed in only one of the two performances;
            with tools, also of the calls whose results differ.
        workbooks: how many calls left a workbook with a different hash (some store the time).
    """

    number: int
    lines: int
    outcomes: tuple[int, ...] = ()
    workbooks: int = 0


@dataclass(frozen=True, slots=True)
class ReplayedEpisode:
    """An episode performed again.

    Attributes:
        task_id: the task.
        sample: number of the submission among those of its task.
        case: number of the case.
        turns: how many turns were performed.
        differing: the turns whose outcome differs from the record.
        before: the verdict on the stored file; None if there is no file to judge.
        after: the verdict on the new file.
        same_file: whether both files are the same, byte for byte.
        problem: why it could not be performed again; empty if it was.
    """

    task_id: str
    sample: int
    case: int
    turns: int = 0
    differing: tuple[ReplayedTurn, ...] = ()
    before: Verdict | None = None
    after: Verdict | None = None
    same_file: bool = False
    problem: str = ""

    @property
    def agrees(self) -> bool:
        """Whether it was performed again, with the same verdict."""
        return not self.problem and self.before is self.after


_Episode = TypeVar("_Episode", Episode, ToolEpisode)


@dataclass(frozen=True, slots=True)
class _Replayer(ABC, Generic[_Episode]):
    """Performs episodes of a run again."""

    run: RunDocument
    store: RunDirectory
    suite: Suite
    host: DesktopHost | None
    judge: CaseJudge
    trusts_values: bool = False

    def replay(self, episode: _Episode) -> ReplayedEpisode:
        """Performs an episode again; anything that prevents it is returned as its problem."""
        replayed = ReplayedEpisode(*episode.key)
        try:
            return self._performed(replayed, episode)
        except (MalformedError, JudgeError) as error:
            return replace(replayed, problem=str(error))

    @abstractmethod
    def _performed(self, replayed: ReplayedEpisode, episode: _Episode) -> ReplayedEpisode: ...

    def _case(self, episode: _Episode) -> tuple[Task, TestCase]:
        task_id, _, number = episode.key
        if task_id not in self.suite:
            raise SuiteError(f"the suite has no task {task_id}")
        task = self.suite.task(task_id)
        case = next((candidate for candidate in task.cases if candidate.number == number), None)
        if case is None:
            raise SuiteError(f"task {task_id} has no case {number}")
        return task, case

    def _judged(
        self,
        replayed: ReplayedEpisode,
        parts: tuple[Task, TestCase],
        before: KeptOutput,
        data: bytes | None,
        problem: str,
    ) -> ReplayedEpisode:
        """The episode with the verdicts on both files."""
        digest = None if data is None else hashlib.sha256(data).hexdigest()
        after = replace(before, sha256=digest, problem=problem)
        return replace(
            replayed,
            before=self._verdict(*parts, before, None),
            after=self._verdict(*parts, after, data),
            same_file=digest == before.sha256,
        )

    def _verdict(
        self, task: Task, case: TestCase, output: KeptOutput, data: bytes | None
    ) -> Verdict | None:
        if not task.answer.is_file:
            return None
        outcome = episode_outcome(output, data, trusts_values=self.trusts_values)
        return self.judge.conclude(task, 0, case, outcome).verdict


@dataclass(frozen=True, slots=True)
class _ToolReplayer(_Replayer[ToolEpisode]):
    """Repeats the calls of a run's episodes."""

    sandbox: Sandbox | None = None
    tools: ToolSet | None = None
    calculator: SharedCalculator | None = None

    def _performed(self, replayed: ReplayedEpisode, episode: ToolEpisode) -> ReplayedEpisode:
        assert self.sandbox is not None
        assert self.tools is not None
        assert self.calculator is not None
        if episode.end is None or episode.head["answer"] != "workbook":
            raise StoreError("the episode was interrupted, or left a program")
        task, case = self._case(episode)
        collected, limits = episode.head["collected"], episode.head["limits"]
        copied = collected in episode.head["files"]
        opened = tool_task(task.question, case.question, copied=copied)
        foreign = _Foreign.of(episode, opened) if episode.head.get("imported") else None
        if foreign is not None:
            opened = foreign.task
        else:
            _check_files(episode.head.get("files"), opened.files)
        recorded = (self.run.get("inference") or {}).get("tools")
        published = () if recorded is None else recorded.get("as_published", ())
        tools = EpisodeTools(
            self.tools,
            self.sandbox,
            opened.files,
            opened.opened,
            opened.collected,
            self.calculator,
            call_s=float(limits.get("call_s") or 60),
            slow_call_s=float(limits.get("slow_call_s") or 120),
            marker="marker" in published,
            shifted="shifted-arguments" in published,
        )
        with tools:
            tools.start()
            turns = [
                differing
                for turn in episode.turns
                for differing in (
                    _again(tools, turn) if foreign is None else foreign.again(tools, turn)
                )
            ]
            output_file = tools.collect()
        end = episode.end
        before = KeptOutput(
            self.store.path,
            end["output"],
            ended=end["ended"],
            gui_only=False,
            problem=end["problem"],
        )
        judged = self._judged(replayed, (task, case), before, output_file.data, output_file.problem)
        return replace(judged, turns=len(episode.turns), differing=tuple(turns))


def _again(tools: EpisodeTools, turn: ToolTurn) -> Iterator[ReplayedTurn]:
    """Repeats the calls of a turn, in their original order."""
    outcomes, states = [], 0
    numbered = list(enumerate(turn["calls"], start=1))
    for number, line in sorted(numbered, key=lambda pair: pair[1]["tool"] == SUBMIT):
        arguments = line.get("arguments")
        if arguments is None or line.get("error") in {"limit", "argument"}:
            continue
        outcome = tools.call(line["tool"], arguments)
        digest = hashlib.sha256(writable(outcome.text).encode()).hexdigest()
        same = line["tool"] == SUBMIT or digest == line["text"]["sha256"]
        if bool(outcome.error) is line["ok"] or not same:
            outcomes.append(number)
        states += tools.workbook() != line["workbook"]
    if outcomes or states:
        yield ReplayedTurn(turn["number"], 0, tuple(outcomes), states)


# -- trajectories of other agents -----------------------------------------------------------------

_SHELLS = frozenset(
    {"bash", "shell", "execute_bash", "bash_command", "run_shell_command", "run_command"}
)
"""Names of other agents' tools that run a command line, in small letters."""

_FOREIGN_TOOLS = ToolSet("imported", ("bash", VIEW_XLSX, SUBMIT), answer="published")
_PATH = re.compile(r"[^\s'\"`<>|;&()=,:\\{}\[\]]*\.xls[xm]\b")
_EXIT_CODE = re.compile(r"(^|\n)\(exit code \d+\)\Z")
_NOT_FOLDERS = frozenset({".", "/", "/tmp", "/root", "/home"})  # noqa: S108 - nothing is written there
"""Folders that never count as the folder of the workbooks: they hold an agent's other files."""

_MAX_OBSERVATION = 10_000
"""Longest output that a ``.traj`` of SWE-agent holds; the middle of longer ones is left out."""


@dataclass(frozen=True, slots=True)
class _Foreign:
    """The episode of another agent, with the paths of its sandbox replaced by those of this one.

    Attributes:
        task: the files of the episode.
        paths: a path in the agent's sandbox -> the path here, the longest first.
    """

    task: ToolTask
    paths: Mapping[str, str]

    @classmethod
    def of(cls, episode: ToolEpisode, task: ToolTask) -> _Foreign:
        """Finds the paths of the workbooks in the instruction of the agent, and in its calls.

        Raises:
            StoreError: no path of the input occurs, or the judge lacks a tool that was used.
        """
        calls = [line for turn in episode.turns for line in turn["calls"]]
        unknown = {line["tool"] for line in calls if _here(line) is None}
        if unknown:
            names = ", ".join(sorted(map(repr, unknown)))[:200]
            raise StoreError(
                f"the agent used tools that the judge does not have ({names}): only command lines, "
                f"{VIEW_XLSX} and {SUBMIT} can be repeated"
            )
        stated = _PATH.findall(episode.head["instruction"])
        used = [path for line in calls for path in _PATH.findall(_text_of(line))]
        name = PurePosixPath(task.opened).name
        named = [path for path in (*stated, *used) if PurePosixPath(path).name == name]
        given = next((path for path in named if "/" in path), next(iter([*named, *stated]), None))
        if given is None:
            raise StoreError("neither the agent's instruction nor its calls name the input")
        # The instruction names the answer last; without one, the last workbook of a call is it.
        left = next((path for path in (*reversed(stated), *reversed(used)) if path != given), None)
        paths = {given: task.opened} | ({} if left is None else {left: task.collected})
        files = dict(task.files)
        for path, here in list(paths.items()):
            folder = str(PurePosixPath(path).parent)
            if folder not in _NOT_FOLDERS:
                paths[folder] = str(PurePosixPath(here).parent)
        if left is not None and PurePosixPath(given).parent == PurePosixPath(left).parent:
            # One folder there is one folder here: that of the answer, with the input in it.
            paths[given] = f"{HOME}/out/{PurePosixPath(given).name}"
            files[paths[given]] = task.files[task.opened]
        ordered = dict(sorted(paths.items(), key=lambda pair: -len(pair[0])))
        return cls(ToolTask(files, task.opened, task.collected), ordered)

    def again(self, tools: EpisodeTools, turn: ToolTurn) -> Iterator[ReplayedTurn]:
        """Repeats the calls of a turn; results are compared as far as the file has them."""
        outcomes = []
        for number, line in enumerate(turn["calls"], start=1):
            call = _here(line)
            if call is None or call[0] == SUBMIT or line.get("arguments") is None:
                continue
            name, arguments = call
            moved = {
                key: self._moved(value) if isinstance(value, str) else value
                for key, value in arguments.items()
            }
            outcome = tools.call(name, moved)
            if not self._agrees(line["text"]["shown"], writable(outcome.text)):
                outcomes.append(number)
        if outcomes:
            yield ReplayedTurn(turn["number"], 0, tuple(outcomes))

    def _moved(self, text: str) -> str:
        pattern = "|".join(map(re.escape, self.paths))
        return re.sub(rf"(?<![\w./-])(?:{pattern})(?![\w-])", lambda m: self.paths[m[0]], text)

    def _agrees(self, recorded: str, printed: str) -> bool:
        """Whether a recorded result equals what a call has printed now."""
        printed = _EXIT_CODE.sub("", printed)
        recorded, printed = _plain(self._moved(recorded)), _plain(printed)
        if recorded == printed:
            return True
        if not printed:
            return "not produce any output" in recorded or "no output" in recorded
        half = _MAX_OBSERVATION // 2
        ends = printed[: half // 2], printed[-half // 2 :]
        return len(printed) > _MAX_OBSERVATION and all(end in recorded for end in ends)


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _here(line: ToolCallLine) -> tuple[str, Mapping[str, Any]] | None:
    """Returns the equivalent call of one of our own tools; None if there is none."""
    arguments, name = line.get("arguments") or {}, line["tool"]
    if name == SUBMIT:
        return SUBMIT, {}
    if name == VIEW_XLSX:
        return name, arguments
    command = arguments.get("command", arguments.get("cmd"))
    if name.casefold() in _SHELLS and isinstance(command, str):
        # The end of a here-document needs a line of its own; SWE-agent's submit is a shell command.
        return (SUBMIT, {}) if command.strip() == SUBMIT else ("bash", {"command": command})
    return None


def _text_of(line: ToolCallLine) -> str:
    return "\n".join(str(value) for value in (line.get("arguments") or {}).values())


@dataclass(frozen=True, slots=True)
class _DesktopReplayer(_Replayer[Episode]):
    """Performs episodes on desktops of a run again."""

    def _performed(self, replayed: ReplayedEpisode, episode: Episode) -> ReplayedEpisode:
        if episode.end is None:
            raise StoreError("the episode was interrupted")
        task, case = self._case(episode)
        opened = desktop_task(task.question, case.question)
        _check_files(episode.head.get("files"), opened.files)
        assert self.host is not None
        options = options_of(episode.head)
        mode = self._way(episode)
        turns: list[ReplayedTurn] = []
        with self.host.open(opened, options) as desktop:
            for turn in episode.turns:
                turns += self._turn(desktop, mode, turn)
            collected = desktop.save()
        end = episode.end
        before = KeptOutput(
            self.store.path,
            end["output"],
            ended=end["ended"],
            gui_only=options.gui_only,
            problem=end["problem"],
        )
        judged = self._judged(replayed, (task, case), before, collected.data, collected.problem)
        return replace(judged, turns=len(episode.turns), differing=tuple(turns))

    def _way(self, episode: Episode) -> DesktopMode:
        """How tables were made in an episode; unrecorded fields have their defaults."""
        inference = self.run.get("inference") or {}
        recorded = (inference.get("desktop") or {}).get("setting")
        setting = load_desktop_setting(self.suite.format)
        if isinstance(recorded, dict) and isinstance(recorded.get("tree_tokens"), int):
            setting = replace(setting, tree_tokens=recorded["tree_tokens"])
        parts = episode.head["setting"].split("/")
        if parts[0] == MODE and len(parts) == 3 and parts[1] in OBSERVATION_FORMS:
            setting = replace(setting, observation=parts[1])
        return DesktopMode(setting, load_words(), options_of(episode.head))

    def _turn(
        self, desktop: Desktop, mode: DesktopMode, turn: TurnRecord
    ) -> Iterator[ReplayedTurn]:
        """Performs a turn again; yields the differences from the record."""
        seen = look(desktop, mode.setting.form)
        table = table_of(mode, seen).text
        was = turn["seen"]["table"]
        lines = 0
        if was is not None and hashlib.sha256(table.encode()).hexdigest() != was:
            lines = self._differing_lines(was, table)
        outcomes = []
        for number, record in enumerate(turn["actions"], start=1):
            action = action_of(record)
            if action.signal in {Signal.DONE, Signal.FAIL}:
                break
            outcome = desktop.perform(action)
            if bool(outcome.error) != bool(record["error"]):
                outcomes.append(number)
        if lines or outcomes:
            yield ReplayedTurn(turn["number"], lines, tuple(outcomes))

    def _differing_lines(self, was: str, table: str) -> int:
        before = EpisodeFiles(self.store.path).table(was)
        if before is None:
            raise StoreError(f"tables/{was}.txt: the table is missing, or was changed")
        return len(set(before.splitlines()) ^ set(table.splitlines()))


def replay(
    run: Path | str,
    options: ScoreOptions | None = None,
    *,
    desktops: DesktopHost | None = None,
    on_episode: Callable[[ReplayedEpisode, int], None] = lambda _episode, _total: None,
) -> list[ReplayedEpisode]:
    """Performs the episodes of a run again, in fresh sandboxes; nothing is written.

    Args:
        run: the results directory.
        options: how to judge, which tasks, and how many desktops at a time (``jobs``).
        desktops: opens desktops; None for desktops of the sandbox.
        on_episode: called with each episode, and with the total number of episodes.

    Returns:
        One entry for each episode, in the order of their files.

    Raises:
        UsageError: the run has no episodes, or an option has no meaning here.
        StoreError: a record was not written by the judge.
        SuiteError: the suite is missing.
        SandboxError: there is no sandbox with desktops.
    """
    options = options or ScoreOptions()
    _check_options(options)
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(RunDirectory(Path(run)))
        document = store.read_run() or RunDocument()
        resources = JudgingResources(options, stack)
        suite = resources.adapt(_suite_of(store, document, options))
        chosen = {task.id for task in suite.select(options.ids, options.limit).tasks}
        with_tools = has_tool_episodes(document.get("setting"))
        read = read_tool_episodes if with_tools else read_episodes
        episodes = [episode for episode in read(store.path) if episode.key[0] in chosen]
        if not episodes:
            raise UsageError(
                f"{store.path}: has no episodes of these tasks",
                hint="--replay is for runs of `judge infer --mode desktop` and `--mode tools`.",
            )
        tasks = [suite.task(task_id) for task_id in {episode.key[0] for episode in episodes}]
        settings = resources.settings_for(tasks, runs=False, remembered=backend_of(document))
        judge = CaseJudge(settings.recalculator, settings.rules)
        replayer: _DesktopReplayer | _ToolReplayer
        if with_tools:
            common = (document, store, suite, None, judge, options.trust_values)
            imported = all(episode.head.get("imported") for episode in episodes)
            tools = _open_tools(document, options, stack, imported=imported)
            replayer = _ToolReplayer(*common, *tools)
        else:
            host = desktops or open_desktops(options.sandbox, options.jobs, stack)
            replayer = _DesktopReplayer(document, store, suite, host, judge, options.trust_values)
        again: Callable[[Any], ReplayedEpisode] = replayer.replay
        replayed: list[ReplayedEpisode] = []
        with ThreadPoolExecutor(options.jobs, thread_name_prefix="judge-replay") as threads:
            for one in threads.map(again, episodes):
                replayed.append(one)
                on_episode(one, len(episodes))
        return replayed


_NOT_HERE = {
    "cluster": "desktops are opened on this machine, and their files judged here",
    "out": "nothing is written",
    "suspects": "nothing is written",
    "reward": "nothing is written",
    "reference": "an action gets the time that it had",
    "outputs": "the files are those of the episodes",
    "programs": "the files are those of the episodes",
    "trajectories": "the episodes are those of the run",
    "every_task": "the files are those of the episodes",
    "best_of": "each episode is compared with itself",
}
"""Options of `judge score` -> why they do not apply to episodes that are performed again."""


def _check_options(options: ScoreOptions) -> None:
    for name, why in _NOT_HERE.items():
        if getattr(options, name):
            option = f"--{name.replace('_', '-')}"
            raise UsageError(
                f"--replay with {option}: {why}", hint=f"Leave out {option}, or --replay."
            )


def _open_tools(
    run: RunDocument, options: ScoreOptions, stack: contextlib.ExitStack, *, imported: bool
) -> tuple[Sandbox, ToolSet, SharedCalculator]:
    """The sandbox, the tools of a run, and the engines that compute formulas for them.

    Args:
        run: the run's document.
        options: which sandbox, and how many at a time.
        stack: closes what is opened.
        imported: whether all episodes are other agents' trajectories.

    Raises:
        StoreError: the run does not say which tools it had.
        SandboxError: a server was not built, or there is no sandbox.
    """
    recorded = (run.get("inference") or {}).get("tools")
    if recorded is None and not imported:
        raise StoreError("run.json does not say which tools the episodes had")
    sandbox = stack.enter_context(
        contextlib.closing(open_sandbox(options.sandbox, jobs=options.jobs))
    )
    tools = (
        _FOREIGN_TOOLS
        if recorded is None
        else named_set(recorded["asked"], recorded["answer"], lambda: sandbox)
    )
    return sandbox, tools, stack.enter_context(SharedCalculator(options.sandbox))


def _check_files(recorded: Mapping[str, str] | None, files: Mapping[str, bytes]) -> None:
    now = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    if recorded is not None and recorded != now:
        raise SuiteError("the files of the task are not those of the episode")


def _suite_of(store: RunDirectory, run: RunDocument, options: ScoreOptions) -> Suite:
    remembered = run.get("suite")
    name = options.dataset or (None if remembered is None else remembered.get("source"))
    if name is None:
        raise UsageError(
            f"{store.path}: which suite are these episodes of?", hint="Give --dataset SUITE."
        )
    return load_suite(name)
