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

from judge.closable import Closable
from judge.core.records.tool_episodes import ToolEpisodeEnd, ToolEpisodeHead, ToolTurn
from judge.desktop.episodes import EPISODES_FOLDER, episode_path
from judge.errors import StoreError
from judge.files.documents import MIB, MalformedError, dump_json, parse_json, read_regular
from judge.files.forms import Document, checked
from judge.files.json_lines import LineAppender, read_json_lines
from judge.files.writing import naming_what_is_written, write_whole

TOOLS_FOLDER = "tools"
SETTING = "tools/"
"""Settings of episodes of tools begin with it."""

MAX_EPISODE_BYTES = 256 * MIB
MAX_TURNS = 10_000
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


class ToolEpisodeWriter(Closable):
    """Writes an episode line by line, in place of the previous content of its file.

    Args:
        run: the run's directory.
        head: the first line.

    Raises:
        StoreError: it cannot be written.
    """

    def __init__(self, run: Path, head: ToolEpisodeHead) -> None:
        self.path = episode_path(run, str(head["id"]), head["sample"], head["case"])
        with naming_what_is_written(self.path, StoreError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.unlink(missing_ok=True)
            self._appender = LineAppender(self.path, mode=0o644)
        self.append(head)

    def append(self, record: ToolEpisodeHead | ToolTurn | ToolEpisodeEnd) -> None:
        """Appends a line.

        Raises:
            StoreError: it cannot be written.
        """
        with naming_what_is_written(self.path, StoreError):
            self._appender.append(_bytes(dump_json(record)))

    def close(self) -> None:
        """Closes the file; safe to call twice."""
        self._appender.close()


def read_tool_episode(path: Path) -> ToolEpisode:
    """Reads an episode, without a last line that is incomplete.

    Raises:
        StoreError: there is none, or the judge did not write it; the message names the line.
    """
    head: ToolEpisodeHead | None = None
    turns: list[ToolTurn] = []
    end: ToolEpisodeEnd | None = None
    if path.is_file() and path.stat().st_size > MAX_EPISODE_BYTES:
        raise StoreError(
            f"{path}: longer than {MAX_EPISODE_BYTES // MIB} MiB",
            hint="Episodes are never that long: the judge did not write this file.",
        )
    for number, record in read_json_lines(path, StoreError, whole=True):
        match record.get("line"):
            case "head" if head is None:
                head = _checked(record, ToolEpisodeHead, path, number)
            case "turn" if head is not None and end is None and len(turns) < MAX_TURNS:
                turns.append(_checked(record, ToolTurn, path, number))
                if turns[-1]["number"] != len(turns):
                    raise _foreign(path, number, f"turn {len(turns)} is expected here")
            case "end" if head is not None and end is None:
                end = _checked(record, ToolEpisodeEnd, path, number)
            case other:
                raise _foreign(path, number, f"a line {str(other)[:40]!r} cannot be here")
    if head is None:
        raise StoreError(
            f"{path}: holds no episode",
            hint="An episode begins with a line that says what it is; the command that made the "
            "run makes what is missing again.",
        )
    return ToolEpisode(path, head, tuple(turns), end)


def read_tool_episodes(run: Path) -> Iterator[ToolEpisode]:
    """The episodes of tools of a run in the order of their file names.

    Those that did not end are among them; a file without a whole first line is not.

    Raises:
        StoreError: a file cannot be read, or was not written by the judge.
    """
    folder = run / EPISODES_FOLDER
    try:
        names = sorted(path for path in folder.iterdir() if path.suffix == ".jsonl")
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{folder}: cannot be read: {error.strerror}") from error
    for path in names:
        if path.is_file() and path.stat().st_size > 0:
            yield read_tool_episode(path)


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
    return _bytes(dump_json(list(definitions)))


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


def _checked(record: object, declared: type[Document], path: Path, number: int) -> Document:
    try:
        return checked(record, declared)
    except MalformedError as problem:
        raise _foreign(path, number, str(problem)) from problem


def _foreign(path: Path, number: int, problem: str) -> StoreError:
    return StoreError(
        f"{path}, line {number}: {problem}",
        hint="The judge did not write this line. Remove the file, and the command that made the "
        "run makes the episode again.",
    )


def _bytes(text: str) -> bytes:
    # Half a surrogate pair has no UTF-8, and must not end an episode.
    return text.encode("utf-8", "replace")
