"""Writes and reads the files of episodes of tools.

The types are in :mod:`judge.core.records.tool_episodes`. Episodes of tools have the same file names
as episodes on a desktop; a run has only one of the two kinds.
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
"""Prefix of the settings of episodes of tools."""

_MAX_DEFINITIONS_BYTES = 16 * MIB


@dataclass(frozen=True, slots=True)
class ToolEpisode:
    """A recorded episode.

    Attributes:
        path: the file.
        head: the first line.
        turns: the turns, in order.
        end: the last line; None if the episode was interrupted, or is still under way.
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
    """Writes an episode line by line; the previous content of its file is replaced.

    Args:
        run: the run's directory.
        head: the first line.

    Raises:
        StoreError: the file cannot be written.
    """

    def __init__(self, run: Path, head: ToolEpisodeHead) -> None:
        super().__init__(run, head)


def read_tool_episode(path: Path) -> ToolEpisode:
    """Reads an episode; an incomplete last line is ignored.

    Raises:
        StoreError: there is no such file, or the judge did not write it; the message names the
            line.
    """
    return ToolEpisode(path, *read_parts(path, ToolEpisodeHead, ToolTurn, ToolEpisodeEnd))


def read_tool_episodes(run: Path) -> Iterator[ToolEpisode]:
    """Yields the episodes of tools of a run, in the order of their file names.

    Unfinished episodes are included; a file without a complete first line is skipped.

    Raises:
        StoreError: a file cannot be read, or was not written by the judge.
    """
    return (read_tool_episode(path) for path in episode_paths(run) if path.is_file())


def has_tool_episodes(setting: str | None) -> bool:
    """Whether a run has episodes of tools, according to the setting in its run.json."""
    return (setting or "").startswith(SETTING)


def write_definitions(run: Path, definitions: Sequence[Mapping[str, Any]]) -> str:
    """Writes the definitions of tools to a run's directory, unless they already exist.

    Returns:
        Their SHA-256, under which :func:`read_definitions` finds them.

    Raises:
        StoreError: the definitions cannot be written.
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
    """Returns the definitions of tools as the bytes that are hashed and stored."""
    return record_bytes(dump_json(list(definitions)))


def read_definitions(run: Path, sha256: str) -> list[dict[str, Any]] | None:
    """Reads the definitions of tools of a run; returns None if they are missing or were changed.

    Raises:
        StoreError: the definitions cannot be read.
    """
    data = read_regular(
        run / TOOLS_FOLDER / f"{sha256}.json", StoreError, max_bytes=_MAX_DEFINITIONS_BYTES
    )
    if data is None or hashlib.sha256(data).hexdigest() != sha256:
        return None
    try:
        document = parse_json(data)
    except MalformedError:
        return None
    return cast("list[dict[str, Any]]", document) if isinstance(document, list) else None
