"""One episode of a person or a step list at a desktop, judged immediately.

The episode leaves the same files as a chat model's: the record of turns, the workbook, a line in
submissions.jsonl. So `judge score`, `judge report` and `judge compare-runs` can read such a run.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from judge.api.commands import score
from judge.api.options import ScoreOptions
from judge.compare.cells.render import difference_overview
from judge.core.submission import AnswerForm
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult
from judge.desktop.contract import (
    CollectedFile,
    Desktop,
    DesktopHost,
    DesktopOptions,
    DesktopTask,
    Signal,
)
from judge.desktop.episodes import EpisodeEnd, EpisodeWriter, episode_path, head_of, output_record
from judge.desktop.observations import tree_table
from judge.desktop.steps import PlayedStep, Say, Step, play
from judge.errors import SandboxError, StoreError, UsageError
from judge.files.documents import utc_now
from judge.files.paths import GivenPath, as_path, hold_paths
from judge.grading.store import SUBMISSIONS_FILE, RunDirectory
from judge.inference.conversation import MAX_SANDBOXES
from judge.inference.desktop.setting import desktop_task
from judge.sessions.live import Ending, LiveSession, Result, SessionTask
from judge.suites import Suite, load_suite

STEP_LIST = "step-list"
"""The name that is recorded as the model if a step list was played."""

PERSON = "desktop/screenshot/computer_13"
STEPS = "desktop/screenshot+tree/pyautogui"
"""The setting in records: the observation, and the language of the recorded actions."""

MAX_DIFFERENCES = 20
_SAID = {Ending.DONE: Signal.DONE.value, Ending.FAIL: Signal.FAIL.value}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOptions:
    """Options of a trial on a desktop.

    Attributes:
        task_id: the task.
        dataset: its suite: a folder, an archive or a name.
        case: number of the case; None for the first one.
        out: the results directory; None keeps nothing.
        sandbox: ``auto``, ``docker`` or ``bubblewrap``.
        desktop: options of the desktop.
    """

    task_id: str
    dataset: str | Path = "sample-desktop"
    case: int | None = None
    out: GivenPath | None = None
    sandbox: str = "auto"
    desktop: DesktopOptions = field(default_factory=lambda: DesktopOptions(gui_only=True))

    def __post_init__(self) -> None:
        hold_paths(self)


class Trial:
    """One episode on a case of a task.

    Args:
        suite: the suite.
        options: the options of the trial.
        run: the results directory.
        model: the text recorded as the model.
        setting: the text recorded as the setting.

    Attributes:
        task: the task.
        case: the case.
        opening: describes the files and settings that the desktop is opened with.
        sample: the number of the episode, from 0, among those of the task in the directory.
        result: the result of the episode; None before it is judged.

    Raises:
        UsageError: there is no such task or case.
        SuiteError: no desktop can be opened for it.
    """

    def __init__(
        self, suite: Suite, options: TrialOptions, run: Path, *, model: str, setting: str
    ) -> None:
        self.task: Task = suite.task(options.task_id)
        self.case = _case(self.task, options.case)
        self.opening: DesktopTask = desktop_task(self.task.question, self.case.question)
        self.result: CaseResult | None = None
        self._suite = suite
        self._options = options
        self._run = run
        self._model = model
        self._setting = setting
        self.sample = self._free_sample()

    @property
    def assignment(self) -> SessionTask:
        """The task that the person is asked to do."""
        return SessionTask(self._suite.name, self.task.id, self.case.number, self.task.instruction)

    def writer(self, desktop: Desktop) -> EpisodeWriter:
        """Begins the record of the episode.

        Raises:
            StoreError: it cannot be written.
        """
        head = head_of(
            self.task.written_id,
            self.sample,
            self.case.number,
            model=self._model,
            setting=self._setting,
            instruction=self.task.instruction,
            task=self.opening,
            options=self._options.desktop,
            info=desktop.info,
            started=utc_now(),
        )
        return EpisodeWriter(self._run, head)

    def keep(self, collected: CollectedFile) -> None:
        """Stores the file that the episode left."""
        if collected.data is not None:
            with RunDirectory(self._run) as store:
                store.put_workbook(collected.data)

    def judge(self, end: EpisodeEnd) -> Result:
        """Records the submission, and judges it as `judge score` does.

        Raises:
            JudgeError: it cannot be judged, but it is recorded.
        """
        self._hand_in(end)
        options = ScoreOptions(dataset=self._options.dataset, sandbox=self._options.sandbox)
        (scored,) = score(self._run, options)
        key = self.task.id, self.sample, self.case.number
        self.result = next(
            result
            for result in scored.results
            if (result.task_id, result.sample, result.case) == key
        )
        verdict = self.result.verdict
        lines = difference_overview(self.result.comparison, MAX_DIFFERENCES)
        return Result(verdict.value, verdict.description, self.result.cause or "", tuple(lines))

    # -- submissions ------------------------------------------------------------------------------

    def _records(self) -> list[dict[str, Any]]:
        with RunDirectory(self._run) as store:
            return list(store.read_records(SUBMISSIONS_FILE))

    def _free_sample(self) -> int:
        """The number of the task's first sample that has no episode on this case."""
        sample = 0
        for record in self._records():
            if str(record.get("id")) != self.task.id:
                continue
            if record.get("model") != self._model:
                raise StoreError(
                    f"{self._run}: holds the run of {str(record.get('model'))[:60]!r}",
                    hint="Give another --out.",
                )
            if self.task.answer is AnswerForm.TEXT or str(self.case.number) in _outputs(record):
                sample = max(sample, int(record.get("sample") or 0) + 1)
        return sample

    def _hand_in(self, end: EpisodeEnd) -> None:
        """Adds the episode to submissions.jsonl: to the line of its sample, if there is one."""
        path = episode_path(self._run, self.task.id, self.sample, self.case.number)
        records = self._records()
        key = self.task.id, self.sample
        record = next((candidate for candidate in records if _key(candidate) == key), None)
        if record is None:
            record = {
                "id": self.task.written_id,
                "sample": self.sample,
                "instruction_type": self.task.kind,
                "model": self._model,
                "setting": self._setting,
                "ended": end["ended"],
                "rounds": 0,
                "seconds": 0.0,
            }
            records.append(record)
        record["rounds"] += end["turns"]
        record["seconds"] = round(record["seconds"] + end["seconds"], 3)
        if self.task.answer is AnswerForm.TEXT:
            record["response"] = _SAID.get(Ending(end["ended"]), "")
        else:
            record["solution"] = None
        record["outputs"] = {
            **_outputs(record),
            str(self.case.number): output_record(end, self.opening, self._options.desktop, path),
        }
        with RunDirectory(self._run) as store:
            store.replace_records(SUBMISSIONS_FILE, records)


def _case(task: Task, number: int | None) -> TestCase:
    for case in task.cases:
        if number in {None, case.number}:
            return case
    raise UsageError(f"task {task.id} has no case {number}")


def _key(record: Mapping[str, Any]) -> tuple[str, int]:
    return str(record.get("id")), int(record.get("sample") or 0)


def _outputs(record: Mapping[str, Any]) -> Mapping[str, Any]:
    outputs = record.get("outputs")
    return outputs if isinstance(outputs, dict) else {}


@contextlib.contextmanager
def opened_trial(options: TrialOptions, *, model: str, setting: str) -> Iterator[Trial]:
    """A trial in its results directory; if none is given, in a temporary one.

    Raises:
        UsageError: there is no such task or case.
        SuiteError: the suite is missing or broken, or no desktop can be opened for the task.
        StoreError: the results directory belongs to another run.
    """
    suite = load_suite(options.dataset)
    with contextlib.ExitStack() as stack:
        run = as_path(options.out)
        if run is None:
            folder = tempfile.TemporaryDirectory(prefix="judge-desktop-")
            run = Path(stack.enter_context(folder)) / "run"
        yield Trial(suite, options, run, model=model, setting=setting)


def open_desktop(host: DesktopHost, trial: Trial, options: TrialOptions) -> Desktop:
    """Opens the desktop of a trial; if it breaks before it is ready, opens another one.

    Raises:
        SandboxError: no desktop gets ready.
    """
    for _ in range(MAX_SANDBOXES - 1):
        with contextlib.suppress(SandboxError):
            return host.open(trial.opening, options.desktop)
    return host.open(trial.opening, options.desktop)


@contextlib.contextmanager
def live_session(trial: Trial, host: DesktopHost, options: TrialOptions) -> Iterator[LiveSession]:
    """A person's session at a fresh desktop, which is closed at the end.

    Raises:
        SandboxError: the desktop does not start.
        StoreError: the record cannot be written.
    """
    with open_desktop(host, trial, options) as desktop:
        session = LiveSession(
            desktop, options.desktop, trial.assignment, trial.writer(desktop), aftermath=trial
        )
        with contextlib.closing(session):
            yield session


def play_trial(
    trial: Trial,
    host: DesktopHost,
    options: TrialOptions,
    steps: tuple[Step, ...],
    on_step: Callable[[int, PlayedStep], None] = lambda _number, _played: None,
) -> Result:
    """Plays a step list at a fresh desktop, and judges the resulting file.

    Args:
        trial: the trial.
        host: opens the desktop.
        options: the options of the trial.
        steps: the step list.
        on_step: called with each step that was played, and its number from 1.

    Raises:
        UsageError: a step cannot be played; the record of the episode stays without an end.
        SandboxError: the desktop broke.
        JudgeError: the file that it left cannot be judged.
    """
    with open_desktop(host, trial, options) as desktop, trial.writer(desktop) as writer:
        took_s = 0.0
        for number, played in enumerate(play(desktop, steps, screenshots=True), start=1):
            elements = played.seen.elements or ()
            table = tree_table(elements, as_published=options.desktop.as_published)
            screen = writer.files.keep(played.seen, table.text, cut=table.cut)
            actions = [(played.action, played.outcome)]
            writer.turn(screen, actions, seconds=played.outcome.seconds)
            took_s += played.outcome.seconds
            on_step(number, played)
        last = steps[-1]
        failed = isinstance(last, Say) and last.signal is Signal.FAIL
        ending = Ending.FAIL if failed else Ending.DONE
        collected = desktop.collect() if failed else desktop.save()
        trial.keep(collected)
        end = writer.end(ending.value, collected, took_s)
    return trial.judge(end)
