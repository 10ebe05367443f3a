"""Reads the desktop episodes of a run for a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from judge.core.statistics import Estimate
from judge.desktop.episodes import EPISODES_FOLDER, Episode, episode_path, read_episode
from judge.errors import StoreError

ENDINGS = {
    "done": "said to be done",
    "fail": "said to be impossible",
    "turns": "all turns used",
    "time": "time limit",
    "context-length": "context too long",
    "closed": "page closed",
}
"""How an episode ended: key in the record -> words for people."""


@dataclass(frozen=True, slots=True)
class EpisodeEntry:
    """One episode, as recorded.

    Attributes:
        model: the chat model; ``human`` for a person.
        observation: the kind of observation that was shown.
        action_space: the language of the actions.
        gui_only: whether actions could only use mouse and keyboard.
        as_published: corrections of the published desktops that were not applied.
        ended: how it ended, a key of :data:`ENDINGS`; None if it was interrupted.
        turns: number of turns.
        steps: number of performed actions.
        failed_steps: number of actions that failed or were refused.
        empty_turns: number of turns whose reply does not contain an action.
        seconds: time from the first observation to the end; None if it was interrupted.
        ready_s: time from the start of the desktop to its first settled state.
        changed: whether the file was changed during the episode; None if the episode was
            interrupted.
        problem: why it did not leave a file; empty if it did.
        screen: size of the screen, such as ``1920x1080``; empty if not on record.
        window: position and size of the window, such as ``100,50,1280x720``; empty for the whole
            screen.
        clutter: other windows that were open.
    """

    model: str
    observation: str
    action_space: str
    gui_only: bool
    as_published: tuple[str, ...]
    ended: str | None
    turns: int
    steps: int
    failed_steps: int
    empty_turns: int
    seconds: float | None
    ready_s: float
    changed: bool | None
    problem: str
    screen: str = ""
    window: str = ""
    clutter: int = 0

    @property
    def setting(self) -> tuple[str, str, str, bool]:
        """The settings that episodes are grouped by."""
        return (self.model, self.observation, self.action_space, self.gui_only)


@dataclass(frozen=True, slots=True)
class SettingCell:
    """The success of one setting on some tasks.

    Attributes:
        heading: the heading that it shares with its neighbours; empty if it has no such heading.
        label: the name of this class of tasks.
        tasks: number of tasks with a scored case.
        solved: the share of these tasks that is solved, with its interval.
    """

    heading: str
    label: str
    tasks: int
    solved: Estimate


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting, as a line of the papers' tables.

    Attributes:
        name: the name of the run if several runs are compared; otherwise empty.
        model: the chat model; ``human`` for a person.
        observation: the kind of observation that was shown.
        action_space: the language of the actions; for a run without episodes, its setting.
        history: earlier turns that a request shows; None if no chat model was used or it is not on
            record.
        instruction: the phrasing of the instructions, ``both`` if there are two; empty in a suite
            without phrasings.
        oracle_plan: whether an expert's steps were given with the instruction.
        gui_only: whether actions could only use mouse and keyboard.
        details: further settings under their names for people, such as ``turns at most``; tables
            show the settings that differ between their rows.
        episodes: number of episodes; 0 for a compared run without episodes.
        mean_turns: mean turns of an episode; None if no episode ended.
        mean_steps: mean actions of an episode; None if no episode ended.
        mean_s: mean seconds of an episode; None if no episode ended.
        cells: the success on all tasks, then on those of each class in the suite's tables.
    """

    name: str
    model: str
    observation: str
    action_space: str
    history: int | None
    instruction: str
    oracle_plan: bool
    gui_only: bool
    details: Mapping[str, str]
    episodes: int
    mean_turns: float | None
    mean_steps: float | None
    mean_s: float | None
    cells: tuple[SettingCell, ...]


@dataclass(frozen=True, slots=True)
class EndingCount:
    """How many episodes ended in one way.

    Attributes:
        ended: the key on record; empty for interrupted episodes.
        description: the same in words.
        episodes: how many episodes ended in this way.
        share: their share of all episodes.
        accepted: how many of them left a file that is accepted.
    """

    ended: str
    description: str
    episodes: int
    share: float
    accepted: int


@dataclass(frozen=True, slots=True)
class EpisodeBin:
    """A bar of a histogram.

    Attributes:
        low: the smallest number that the bar counts.
        high: the largest number that the bar counts.
        episodes: how many episodes have a number in this range.
        accepted: how many of them left a file that is accepted.
    """

    low: int
    high: int
    episodes: int
    accepted: int


@dataclass(frozen=True, slots=True)
class EpisodesSummary:
    """The episodes of a run.

    Attributes:
        episodes: number of episodes.
        settings: the success by setting.
        endings: how they ended, most common first.
        steps: histogram of the number of actions of finished episodes.
        turns: histogram of the number of turns of finished episodes.
    """

    episodes: int
    settings: tuple[SettingRow, ...]
    endings: tuple[EndingCount, ...]
    steps: tuple[EpisodeBin, ...]
    turns: tuple[EpisodeBin, ...]


@dataclass(frozen=True, slots=True)
class PairedMean:
    """Turns, actions or seconds of the episodes of two runs, on the tasks that both have.

    Attributes:
        key: ``steps``, ``turns`` or ``seconds``.
        tasks: number of tasks on which both have an episode that ended.
        first: mean of the first run, the baseline; samples of a task are averaged first.
        second: mean of the second run, which is compared with the first.
        difference: the second minus the first.
        low: lower end of its interval; None with fewer than two tasks.
        high: upper end of its interval.
    """

    key: str
    tasks: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class EpisodePair:
    """The episodes of one run compared with the episodes of another.

    Attributes:
        first: name of the first run, the baseline.
        second: name of the second run, which is compared with the first.
        means: mean turns, actions and seconds of both.
    """

    first: str
    second: str
    means: tuple[PairedMean, ...]


Key = tuple[str, int, int]
"""Task id, sample, case."""

_MAX_NAME_CHARS = 200
_SETTING_PARTS = 3
_MAX_PIXELS = 100_000


def read_entries(run: Path, keys: Iterable[Key]) -> tuple[dict[Key, EpisodeEntry], tuple[str, ...]]:
    """Reads the episodes of some cases, without their turns.

    Args:
        run: the results directory.
        keys: the keys of the cases.

    Returns:
        The entries of the cases that have an episode, and a note if some cannot be read.
    """
    if not (run / EPISODES_FOLDER).is_dir():
        return {}, ()
    entries: dict[Key, EpisodeEntry] = {}
    problems: list[str] = []
    for key in keys:
        path = episode_path(run, *key)
        if not path.exists():
            continue
        try:
            entries[key] = entry_of(read_episode(path))
        except StoreError as error:
            problems.append(error.message)
    if not problems:
        return entries, ()
    return entries, (f"{len(problems)} episodes cannot be shown ({problems[0]})",)


def entry_of(episode: Episode) -> EpisodeEntry:
    """The entry of an episode in a report."""
    head, end = episode.head, episode.end
    options = head["options"]
    published = options.get("as_published")
    actions = [action for turn in episode.turns for action in turn["actions"]]
    observation, action_space = setting_parts(head["setting"])
    return EpisodeEntry(
        model=head["model"][:_MAX_NAME_CHARS],
        observation=observation,
        action_space=action_space,
        gui_only=options.get("gui_only") is True,
        as_published=tuple(map(str, published)) if isinstance(published, list) else (),
        ended=None if end is None else end["ended"],
        turns=len(episode.turns),
        steps=sum(not action["refused"] for action in actions) if end is None else end["steps"],
        failed_steps=sum(bool(action["error"]) or action["refused"] for action in actions),
        empty_turns=sum(bool(turn["problem"]) for turn in episode.turns),
        seconds=None if end is None else end["seconds"],
        ready_s=head["ready_s"],
        changed=None if end is None else end["changed"],
        problem="" if end is None else end["problem"],
        screen=_size(options),
        window=_window_text(options.get("window")),
        clutter=_count(options.get("clutter")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < _MAX_PIXELS else 0


def _size(options: Mapping[str, object]) -> str:
    """A size such as ``1920x1080``; empty if it is not on record."""
    width, height = _count(options.get("width")), _count(options.get("height"))
    return f"{width}x{height}" if width and height else ""


def _window_text(window: object) -> str:
    """A window such as ``100,50,1280x720``, as for ``--window``; empty for the whole screen."""
    if not isinstance(window, Mapping):
        return ""
    return f"{_count(window.get('x'))},{_count(window.get('y'))},{_size(window)}"


def setting_parts(setting: str) -> tuple[str, str]:
    """Observation and action space, as in ``desktop/screenshot/pyautogui``; empty if not named."""
    parts = [*setting[:_MAX_NAME_CHARS].split("/"), "", "", ""]
    return parts[1], "/".join(filter(None, parts[2:_SETTING_PARTS]))


def ending_in_words(ended: str | None) -> str:
    """The end of an episode, in words."""
    return ENDINGS.get(ended, ended[:_MAX_NAME_CHARS]) if ended else "interrupted"
