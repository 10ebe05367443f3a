"""Episodes of tools on record: how their files are written and read.

The types are in :mod:`judge.core.records.tool_episodes`. An episode has the name that one on a
desktop has; a run holds one kind or the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from judge.core.records.tool_episodes import ToolEpisodeEnd, ToolEpisodeHead, ToolTurn
from judge.desktop.episodes import EpisodeLines, episode_paths, read_parts, record_bytes
from judge.errors import StoreError
from judge.files.documents import MIB, MalformedError, dump_json, parse_json, read_regular
from judge.files.writing import naming_what_is_written, write_whole

TOOLS_FOLDER = "tools"
SETTING = "tools/"
"""Settings of episodes of tools begin with it."""

_MAX_DEFINITIONS_BYTES = 16 * MIB


@dataclass(frozen=True, slots=True)
class ToolEpisode:
    """An episode on record.

    Attributes:
        path: its file.
        head: its first line.
        turns: in order.
        end: its last line; None if it was interrupted, or is still under way.
    """

    path: Path
    head: ToolEpisodeHead
    turns: tuple[ToolTurn, ...]
    end: ToolEpisodeEnd | None

    @property
    def key(self) -> tuple[str, int, int]:
        """(task id, sample, case)."""
        return str(self.head["id"]), self.head["sample"], self.head["case"]


class ToolEpisodeWriter(EpisodeLines):
    """Writes an episode line by line, in place of the previous content of its file.

    Args:
        run: the run's directory.
        head: the first line.

    Raises:
        StoreError: it cannot be written.
    """

    def __init__(self, run: Path, head: ToolEpisodeHead) -> None:
        super().__init__(run, head)


def read_tool_episode(path: Path) -> ToolEpisode:
    """Reads an episode, without a last line that is incomplete.

    Raises:
        StoreError: there is none, or the judge did not write it; the message names the line.
    """
    return ToolEpisode(path, *read_parts(path, ToolEpisodeHead, ToolTurn, ToolEpisodeEnd))


def read_tool_episodes(run: Path) -> Iterator[ToolEpisode]:
    """The episodes of tools of a run in the order of their file names.

    Those that did not end are among them; a file without a whole first line is not.

    Raises:
        StoreError: a file cannot be read, or was not written by the judge.
    """
    return (read_tool_episode(path) for path in episode_paths(run) if path.is_file())


def has_tool_episodes(setting: str | None) -> bool:
    """Whether the episodes of a run are those of tools, by the setting in its run.json."""
    return (setting or "").startswith(SETTING)


def keep_definitions(run: Path, definitions: Sequence[Mapping[str, Any]]) -> str:
    """Keeps the definitions of tools in a run's directory, once.

    Returns:
        Their SHA-256, under which :func:`read_definitions` finds them.

    Raises:
        StoreError: they cannot be written.
    """
    data = definitions_bytes(definitions)
    digest = hashlib.sha256(data).hexdigest()
    path = run / TOOLS_FOLDER / f"{digest}.json"
    if not path.exists():
        with naming_what_is_written(path, StoreError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, data)
    return digest


def definitions_bytes(definitions: Sequence[Mapping[str, Any]]) -> bytes:
    """The definitions of tools as they are hashed and kept."""
    return record_bytes(dump_json(list(definitions)))


def read_definitions(run: Path, sha256: str) -> list[dict[str, Any]] | None:
    """The definitions of tools of a run; None if they are missing, or were changed.

    Raises:
        StoreError: they cannot be read.
    """
    data = read_regular(
        run / TOOLS_FOLDER / f"{sha256}.json", StoreError, most_bytes=_MAX_DEFINITIONS_BYTES
    )
    if data is None or hashlib.sha256(data).hexdigest() != sha256:
        return None
    try:
        document = parse_json(data)
    except MalformedError:
        return None
    return cast("list[dict[str, Any]]", document) if isinstance(document, list) else None
