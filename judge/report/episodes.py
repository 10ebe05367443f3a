"""The desktop episodes of a run, read for a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from judge.desktop.episodes import EPISODES_FOLDER, Episode, episode_path, read_episode
from judge.errors import StoreError
from judge.report.episode_model import ENDINGS, EpisodeEntry

Key = tuple[str, int, int]
"""Task id, sample, case."""

_MAX_NAME_LENGTH = 200
_SETTING_PARTS = 3
_MAX_PIXELS = 100_000


def read_entries(run: Path, keys: Iterable[Key]) -> tuple[dict[Key, EpisodeEntry], tuple[str, ...]]:
    """The episodes of some cases, without their turns.

    Args:
        run: the results directory.
        keys: of the cases.

    Returns:
        The entries of those that have an episode; and a note if some cannot be read.
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
    """What a report says of an episode."""
    head, end = episode.head, episode.end
    options = head["options"]
    published = options.get("as_published")
    actions = [action for turn in episode.turns for action in turn["actions"]]
    observation, action_space = setting_parts(head["setting"])
    return EpisodeEntry(
        model=head["model"][:_MAX_NAME_LENGTH],
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
        window=_place(options.get("window")),
        clutter=_count(options.get("clutter")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < _MAX_PIXELS else 0


def _size(place: Mapping[str, object]) -> str:
    """``1920x1080``; empty where a record does not say."""
    width, height = _count(place.get("width")), _count(place.get("height"))
    return f"{width}x{height}" if width and height else ""


def _place(window: object) -> str:
    """``100,50,1280x720``, as ``--window`` has it; empty for the whole screen."""
    if not isinstance(window, Mapping):
        return ""
    return f"{_count(window.get('x'))},{_count(window.get('y'))},{_size(window)}"


def setting_parts(setting: str) -> tuple[str, str]:
    """Observation and action space of ``desktop/screenshot/pyautogui``; empty where not named."""
    parts = [*setting[:_MAX_NAME_LENGTH].split("/"), "", "", ""]
    return parts[1], "/".join(filter(None, parts[2:_SETTING_PARTS]))


def ending_in_words(ended: str | None) -> str:
    """How an episode ended."""
    return ENDINGS.get(ended, ended[:_MAX_NAME_LENGTH]) if ended else "interrupted"
