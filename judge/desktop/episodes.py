"""Writes and reads episodes: lines of :mod:`judge.desktop.records`, pictures and tables by hash."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from judge.closable import Closable
from judge.desktop.contract import Action, ActionOutcome, Collected, Observation
from judge.desktop.recording import MAX_CHARS, action_record
from judge.desktop.records import (
    EPISODES_FOLDER,
    TABLES_FOLDER,
    EpisodeEnd,
    EpisodeHead,
    SeenRecord,
    TurnRecord,
)
from judge.errors import StoreError
from judge.files.documents import MIB, MalformedError, dump_json
from judge.files.forms import Document, checked
from judge.files.hashed import HashedFolder
from judge.files.json_lines import LineAppender, read_json_lines
from judge.files.media import PICTURES_FOLDER, image_size
from judge.files.writing import naming_what_is_written

PNG = ".png"
TABLE = ".txt"
MAX_EPISODE_BYTES = 256 * MIB
MAX_TURNS = 10_000
MAX_SCREENSHOT_BYTES = 20 * MIB
MAX_TABLE_BYTES = 16 * MIB


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode on record.

    Attributes:
        path: its file.
        head: what it is.
        turns: in order.
        end: how it ended; None if it was interrupted, or is still under way.
    """

    path: Path
    head: EpisodeHead
    turns: tuple[TurnRecord, ...]
    end: EpisodeEnd | None

    @property
    def key(self) -> tuple[str, int, int]:
        """(task id, sample, case)."""
        return str(self.head["id"]), self.head["sample"], self.head["case"]


def episode_path(run: Path, task_id: str, sample: int, case: int) -> Path:
    """Where the episode of a case is in a run's directory."""
    return (
        run
        / EPISODES_FOLDER
        / f"{quote(task_id, safe=' ', errors='surrogatepass')}.{sample}.{case}.jsonl"
    )


class EpisodeFiles:
    """Screenshots and tables of a run's episodes, each kept once under its hash.

    Args:
        run: the run's directory.
    """

    def __init__(self, run: Path) -> None:
        self._screenshots = HashedFolder(run / PICTURES_FOLDER, "picture", MAX_SCREENSHOT_BYTES)
        self._tables = HashedFolder(run / TABLES_FOLDER, "table", MAX_TABLE_BYTES)

    def keep(self, seen: Observation, table: str | None, *, cut: bool = False) -> SeenRecord:
        """Keeps what there was to see.

        Args:
            seen: the observation.
            table: the table of its tree; None where there is none.
            cut: whether the table was cut.

        Raises:
            StoreError: it cannot be written.
        """
        picture = seen.screenshot
        record: SeenRecord = {
            "screenshot": None if picture is None else self._screenshots.add(picture, PNG),
            "table": None if table is None else self._tables.add(_bytes(table), TABLE),
            "cut": cut,
            "cursor": list(seen.cursor),
            "windows": [title[:MAX_CHARS] for title in seen.windows],
            "tree_s": seen.tree_s,
            "screenshot_s": seen.screenshot_s,
        }
        size = None if picture is None else image_size(picture)
        if size is not None:
            record["width"], record["height"] = size
        return record

    def screenshot(self, sha256: str) -> bytes | None:
        """A screenshot; None where it is missing, or was changed.

        Raises:
            StoreError: it cannot be read.
        """
        return self._screenshots.read(sha256, PNG)

    def screenshot_path(self, sha256: str) -> Path:
        """Where a screenshot is kept."""
        return self._screenshots.path(sha256, PNG)

    def table(self, sha256: str) -> str | None:
        """A table; None where it is missing, or was changed.

        Raises:
            StoreError: it cannot be read.
        """
        data = self._tables.read(sha256, TABLE)
        return None if data is None else data.decode("utf-8", "replace")


class EpisodeWriter(Closable):
    """Writes an episode line by line; what is in its file from before is gone.

    Args:
        run: the run's directory.
        head: the first line.

    Raises:
        StoreError: it cannot be written.
    """

    def __init__(self, run: Path, head: EpisodeHead) -> None:
        self.files = EpisodeFiles(run)
        self.path = episode_path(run, str(head["id"]), head["sample"], head["case"])
        self._turns = 0
        self._steps = 0
        with naming_what_is_written(self.path, StoreError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.unlink(missing_ok=True)
            self._appender = LineAppender(self.path, mode=0o644)
        self._append(head)

    def turn(
        self,
        seen: SeenRecord,
        actions: Sequence[tuple[Action, ActionOutcome]],
        *,
        reply: str = "",
        problem: str = "",
        feedback: str = "",
        seconds: float = 0.0,
    ) -> TurnRecord:
        """Appends a turn.

        Args:
            seen: what there was to see, from :meth:`EpisodeFiles.keep`.
            actions: what was done, with the outcomes.
            reply: the reply as it came.
            problem: why it holds no action.
            feedback: what the next message says of the actions.
            seconds: from the observation to the last outcome.

        Raises:
            StoreError: it cannot be written.
        """
        self._turns += 1
        self._steps += sum(not outcome.refused for _, outcome in actions)
        record: TurnRecord = {
            "line": "turn",
            "number": self._turns,
            "seen": seen,
            "reply": reply,
            "problem": problem,
            "told": feedback,
            "actions": [action_record(action, outcome) for action, outcome in actions],
            "seconds": round(seconds, 3),
        }
        self._append(record)
        return record

    def end(self, ended: str, collected: Collected, seconds: float) -> EpisodeEnd:
        """Appends the line of the end. The collected file is kept by the caller, before.

        Args:
            ended: why, as in :class:`judge.desktop.records.EpisodeEnd`.
            collected: the file that is left.
            seconds: of the whole episode.

        Raises:
            StoreError: it cannot be written.
        """
        data = collected.data
        record: EpisodeEnd = {
            "line": "end",
            "ended": ended,
            "seconds": round(seconds, 3),
            "turns": self._turns,
            "steps": self._steps,
            "output": None if data is None else hashlib.sha256(data).hexdigest(),
            "output_bytes": 0 if data is None else len(data),
            "changed": collected.changed,
            "problem": collected.problem,
        }
        self._append(record)
        return record

    def close(self) -> None:
        """Closes the file; safe to call twice."""
        self._appender.close()

    def _append(self, record: Mapping[str, object]) -> None:
        with naming_what_is_written(self.path, StoreError):
            self._appender.append(_bytes(dump_json(record)))


def read_episode(path: Path) -> Episode:
    """Reads an episode; a torn last line is left out.

    Raises:
        StoreError: there is none, or it was not written by the judge; names the line.
    """
    head: EpisodeHead | None = None
    turns: list[TurnRecord] = []
    end: EpisodeEnd | None = None
    _check_length(path)
    for number, record in read_json_lines(path, StoreError, whole=True):
        match record.get("line"):
            case "head" if head is None:
                head = _checked(record, EpisodeHead, path, number)
            case "turn" if head is not None and end is None and len(turns) < MAX_TURNS:
                turns.append(_checked(record, TurnRecord, path, number))
                if turns[-1]["number"] != len(turns):
                    raise _foreign(path, number, f"turn {len(turns)} is expected here")
            case "end" if head is not None and end is None:
                end = _checked(record, EpisodeEnd, path, number)
            case other:
                raise _foreign(path, number, f"a line {str(other)[:40]!r} cannot be here")
    if head is None:
        raise StoreError(
            f"{path}: holds no episode",
            hint="An episode begins with a line that says what it is; the command that made the "
            "run makes what is missing again.",
        )
    return Episode(path, head, tuple(turns), end)


def read_episodes(run: Path) -> Iterator[Episode]:
    """The episodes of a run, in the order of their files' names; one that was only begun too.

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
        if _is_empty(path):  # the process died before its first line
            continue
        yield read_episode(path)


def _is_empty(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.is_file() and path.stat().st_size == 0
    return False


def _check_length(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.stat().st_size > MAX_EPISODE_BYTES:
            raise StoreError(
                f"{path}: longer than {MAX_EPISODE_BYTES // MIB} MiB",
                hint="Episodes are never that long: the judge did not write this file.",
            )


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
    # Half a surrogate pair has no UTF-8, and what cannot be shown ends no episode.
    return text.encode("utf-8", "replace")
