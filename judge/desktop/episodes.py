"""Recorded episodes: the types of their lines, and how they are written and read.

An episode is one file, ``RUN/episodes/{task id, quoted}.{sample}.{case}.jsonl``: a line for its
head, one for each turn, and one for its end. A file without the last line belongs to an interrupted
episode, which is started again. Screenshots are in ``RUN/pictures`` and tables of the accessibility
tree in ``RUN/tables``; both are named by their SHA-256. The workbook from an episode is stored
among the outputs of the run.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NotRequired, TypedDict, TypeVar, cast
from urllib.parse import quote

from judge.closable import Closable
from judge.desktop.contract import (
    Action,
    ActionOutcome,
    CollectedFile,
    DesktopInfo,
    DesktopOptions,
    DesktopTask,
    Observation,
    Signal,
    WindowBounds,
)
from judge.errors import StoreError
from judge.files.documents import MIB, MalformedError, dump_json
from judge.files.forms import Amount, Count, Document, Sha256, TaskId, checked
from judge.files.json_lines import LineAppender, read_json_lines
from judge.files.media import PICTURES_FOLDER, image_size
from judge.files.writing import HashedFolder, naming_what_is_written

EPISODES_FOLDER = "episodes"
TABLES_FOLDER = "tables"


class PlaceRecord(TypedDict):
    """Position and size of a window, in pixels."""

    x: Count
    y: Count
    width: Count
    height: Count


class OptionsRecord(TypedDict):
    """The fields of :class:`judge.desktop.contract.DesktopOptions`."""

    width: Count
    height: Count
    as_published: list[str]
    gui_only: bool
    window: PlaceRecord | None
    clutter: Count
    action_s: Amount
    memory_bytes: Count


class EpisodeHead(TypedDict):
    """The first line of an episode's file."""

    line: str
    """``head``"""
    id: TaskId
    sample: Count
    case: Count
    model: str
    """The name of the chat model; ``human`` for a person."""
    setting: str
    """``desktop/`` with observation and action space, such as ``desktop/screenshot/pyautogui``."""
    instruction: str
    options: dict[str, object]
    """The fields of :class:`judge.desktop.contract.DesktopOptions`, as JSON."""
    image: str
    office: str
    ready_s: Amount
    started: str
    """ISO 8601, UTC."""
    files: NotRequired[dict[str, Sha256]]
    """Path on the desktop -> SHA-256, of the files with which it was opened."""
    opened: NotRequired[str]
    """Path of the file that the spreadsheet program opened."""
    collected: NotRequired[str]
    """Path of the file that is retrieved at the end."""
    attempt: NotRequired[Count]
    """How many desktops broke during this episode."""


class SeenRecord(TypedDict):
    """The state of a desktop in a turn, whether or not the setting shows it to the model."""

    screenshot: Sha256 | None
    """SHA-256 of the screenshot, with marks if the setting has them; None if there was none."""
    width: NotRequired[Count]
    height: NotRequired[Count]
    table: Sha256 | None
    """SHA-256 of the table of the tree, cut as it was for the model; None if there was none."""
    cut: bool
    """Whether the table was cut at its limit."""
    cursor: list[int]
    windows: list[str]
    tree_s: Amount
    screenshot_s: Amount


class ActionRecord(TypedDict):
    """An action and its outcome."""

    code: NotRequired[str]
    call: NotRequired[dict[str, object]]
    signal: NotRequired[str]
    error: str
    refused: bool
    printed: str
    events: list[list[object]]
    """Mouse and keyboard events, each as ``[kind, x, y, detail]``."""
    settled: bool
    seconds: Amount


class TurnRecord(TypedDict):
    """A line for one turn: observation, reply, actions."""

    line: str
    """``turn``"""
    number: Count
    """The number of the turn, from 1."""
    seen: SeenRecord
    reply: str
    """The unchanged reply; empty for a person."""
    problem: str
    """Why the reply contains no action; empty if it contains one."""
    told: NotRequired[str]
    """The feedback on the actions in the next message; empty if there is none."""
    actions: list[ActionRecord]
    seconds: Amount
    """Seconds from the observation to the last outcome."""


class EpisodeEnd(TypedDict):
    """The last line of an episode's file."""

    line: str
    """``end``"""
    ended: str
    """``done``, ``fail``, ``turns`` (all used), ``time`` (the limit), ``context-length``, or
    ``closed`` (a person closed the page)."""
    seconds: Amount
    turns: Count
    steps: Count
    """How many actions were performed."""
    output: Sha256 | None
    """SHA-256 of the collected file; None if there is none."""
    output_bytes: Count
    changed: bool
    problem: str
    """Why there is no file; empty if there is one."""


HUMAN = "human"
"""The model name that is recorded for a person."""

MAX_CHARS = 20_000
"""How many characters a string in a record may have; longer strings are cut."""

_MAX_EVENTS = 1_000


def head_of(
    task_id: int | str,
    sample: int,
    case: int,
    *,
    model: str,
    setting: str,
    instruction: str,
    task: DesktopTask,
    options: DesktopOptions,
    info: DesktopInfo,
    started: str,
    attempt: int = 0,
) -> EpisodeHead:
    """Makes the first line of an episode.

    Args:
        task_id: the id of the task, as its suite writes it.
        sample: the 0-based number of the sample.
        case: the 1-based number of the case.
        model: the chat model, or :data:`HUMAN`.
        setting: the name of the setting.
        instruction: the instruction of the task.
        task: the files with which the desktop was opened.
        options: the options of the desktop.
        info: the versions of the desktop.
        started: the start time, in ISO 8601, UTC.
        attempt: how many desktops broke in this episode before.
    """
    return {
        "line": "head",
        "id": task_id,
        "sample": sample,
        "case": case,
        "model": model,
        "setting": setting,
        "instruction": instruction,
        "options": options_record(options),
        "image": info.image,
        "office": info.office,
        "ready_s": info.ready_s,
        "started": started,
        "files": {path: hashlib.sha256(data).hexdigest() for path, data in task.files.items()},
        "opened": task.opened,
        "collected": task.collected,
        "attempt": attempt,
    }


def options_record(options: DesktopOptions) -> dict[str, object]:
    """Converts the options of a desktop to JSON."""
    return {**asdict(options), "as_published": sorted(options.as_published)}


def options_of(head: EpisodeHead) -> DesktopOptions:
    """Reads the options of the desktop from the head of an episode.

    Raises:
        MalformedError: they are not the options of a desktop.
    """
    options: dict[str, Any] = {**head["options"]}
    window = options.get("window")
    try:
        checked(options, OptionsRecord)
        return DesktopOptions(
            **{
                **options,
                "as_published": frozenset(options["as_published"]),
                "window": None if window is None else WindowBounds(**window),
            }
        )
    except TypeError as error:
        raise MalformedError(f"the options of the desktop: {error}") from error


def action_of(record: ActionRecord) -> Action:
    """Reads an action from its record.

    Raises:
        MalformedError: it is not an action.
    """
    signal = record.get("signal")
    if signal is not None:
        if signal not in tuple(Signal):
            raise MalformedError(f"{signal[:40]!r} is not a signal of a desktop")
        return Action(signal=Signal(signal))
    if (code := record.get("code")) is not None:
        return Action(code=code)
    call = record.get("call")
    if call is None:
        raise MalformedError("an action without code, call or signal")
    return Action(call=call)


def action_record(action: Action, outcome: ActionOutcome) -> ActionRecord:
    """Makes the record of an action and its outcome, with long fields cut."""
    record: dict[str, Any] = {}
    if action.code is not None:
        record["code"] = action.code
    if action.call is not None:
        record["call"] = dict(action.call)
    if action.signal is not None:
        record["signal"] = action.signal.value
    record |= {
        "error": outcome.error[-MAX_CHARS:],
        "refused": outcome.refused,
        "printed": outcome.printed[:MAX_CHARS],
        "events": [
            [event.kind, event.x, event.y, event.detail[:MAX_CHARS]]
            for event in outcome.events[:_MAX_EVENTS]
        ],
        "settled": outcome.settled,
        "seconds": round(outcome.seconds, 3),
    }
    return cast("ActionRecord", record)


def output_record(
    end: EpisodeEnd, task: DesktopTask, options: DesktopOptions, path: Path
) -> dict[str, object]:
    """Makes the record of an ended episode for the line of its submission in submissions.jsonl.

    Args:
        end: the last line of the episode.
        task: the files with which the desktop was opened.
        options: the options of the desktop.
        path: the episode's file.
    """
    return {
        "sha256": end["output"],
        "bytes": end["output_bytes"],
        "name": PurePosixPath(task.collected).name,
        "ended": end["ended"],
        "gui_only": options.gui_only,
        "changed": end["changed"],
        "problem": end["problem"],
        "turns": end["turns"],
        "steps": end["steps"],
        "seconds": end["seconds"],
        "episode": f"{EPISODES_FOLDER}/{path.name}",
    }


PNG = ".png"
TABLE = ".txt"
MAX_EPISODE_BYTES = 256 * MIB
MAX_TURNS = 10_000
MAX_SCREENSHOT_BYTES = 20 * MIB
MAX_TABLE_BYTES = 16 * MIB


Head = TypeVar("Head")
Turn = TypeVar("Turn")
End = TypeVar("End")


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode on record.

    Attributes:
        path: its file.
        head: its first line.
        turns: its turns, in order.
        end: its last line; None if it was interrupted or is still running.
    """

    path: Path
    head: EpisodeHead
    turns: tuple[TurnRecord, ...]
    end: EpisodeEnd | None

    @property
    def key(self) -> tuple[str, int, int]:
        """The key of the episode: (task id, sample, case)."""
        return str(self.head["id"]), self.head["sample"], self.head["case"]


def episode_path(run: Path, task_id: str, sample: int, case: int) -> Path:
    """Returns the path of the episode of a case in a run's directory."""
    return (
        run
        / EPISODES_FOLDER
        / f"{quote(task_id, safe=' ', errors='surrogatepass')}.{sample}.{case}.jsonl"
    )


class EpisodeFiles:
    """Stores screenshots and tables of a run's episodes, each once under its hash.

    Args:
        run: the run's directory.
    """

    def __init__(self, run: Path) -> None:
        self._screenshots = HashedFolder(run / PICTURES_FOLDER, "picture", MAX_SCREENSHOT_BYTES)
        self._tables = HashedFolder(run / TABLES_FOLDER, "table", MAX_TABLE_BYTES)

    def keep(self, seen: Observation, table: str | None, *, cut: bool = False) -> SeenRecord:
        """Stores the screenshot and the accessibility table of an observation.

        Args:
            seen: the observation.
            table: its accessibility tree as a table; None if there is none.
            cut: whether the table was shortened.

        Raises:
            StoreError: it cannot be written.
        """
        picture = seen.screenshot
        record: SeenRecord = {
            "screenshot": None if picture is None else self._screenshots.add(picture, PNG),
            "table": None if table is None else self._tables.add(record_bytes(table), TABLE),
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
        """Reads a screenshot; None if it is missing or was changed.

        Raises:
            StoreError: it cannot be read.
        """
        return self._screenshots.read(sha256, PNG)

    def table(self, sha256: str) -> str | None:
        """Reads a table; None if it is missing or was changed.

        Raises:
            StoreError: it cannot be read.
        """
        data = self._tables.read(sha256, TABLE)
        return None if data is None else data.decode("utf-8", "replace")


class EpisodeLines(Closable):
    """Writes the lines of any kind of episode; replaces the previous content of its file.

    Args:
        run: the run's directory.
        head: the first line, with ``id``, ``sample`` and ``case``.

    Raises:
        StoreError: it cannot be written.
    """

    def __init__(self, run: Path, head: Mapping[str, Any]) -> None:
        self.path = episode_path(run, str(head["id"]), head["sample"], head["case"])
        with naming_what_is_written(self.path, StoreError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.unlink(missing_ok=True)
            self._appender = LineAppender(self.path, mode=0o644)
        self.append(head)

    def append(self, record: Mapping[str, object]) -> None:
        """Appends a line.

        Raises:
            StoreError: it cannot be written.
        """
        with naming_what_is_written(self.path, StoreError):
            self._appender.append(record_bytes(dump_json(record)))

    def close(self) -> None:
        """Closes the file; safe to call twice."""
        self._appender.close()


class EpisodeWriter(EpisodeLines):
    """Writes an episode line by line; replaces the previous content of its file.

    Args:
        run: the run's directory.
        head: the first line.

    Raises:
        StoreError: it cannot be written.
    """

    def __init__(self, run: Path, head: EpisodeHead) -> None:
        self.files = EpisodeFiles(run)
        self._turns = 0
        self._steps = 0
        super().__init__(run, head)

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
            seen: the record from :meth:`EpisodeFiles.keep`.
            actions: the actions, with their outcomes.
            reply: the unchanged reply.
            problem: why the reply contains no action.
            feedback: the feedback on the actions in the next message.
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
        self.append(record)
        return record

    def end(self, ended: str, collected: CollectedFile, seconds: float) -> EpisodeEnd:
        """Appends the last line. Before that, the caller keeps the collected file.

        Args:
            ended: why the episode ended, as in :class:`judge.desktop.episodes.EpisodeEnd`.
            collected: the file that was collected at the end.
            seconds: how long the whole episode took.

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
        self.append(record)
        return record


def read_episode(path: Path) -> Episode:
    """Reads an episode; an incomplete last line is ignored.

    Raises:
        StoreError: there is no episode, or the judge did not write it; the message names the line.
    """
    return Episode(path, *read_parts(path, EpisodeHead, TurnRecord, EpisodeEnd))


def read_parts(
    path: Path, of_head: type[Head], of_turn: type[Turn], of_end: type[End]
) -> tuple[Head, tuple[Turn, ...], End | None]:
    """Reads the lines of any kind of episode; an incomplete last line is ignored.

    Args:
        path: its file.
        of_head: the type of its first line.
        of_turn: the type of a turn, which has ``number``.
        of_end: the type of its last line.

    Returns:
        The first line, the turns in order, and the last line; None if it is missing.

    Raises:
        StoreError: there is no episode, or the judge did not write it; the message names the line.
    """
    head: Head | None = None
    turns: list[Turn] = []
    end: End | None = None
    _check_length(path)
    for number, record in read_json_lines(path, StoreError, whole=True):
        match record.get("line"):
            case "head" if head is None:
                head = _checked(record, of_head, path, number)
            case "turn" if head is not None and end is None and len(turns) < MAX_TURNS:
                turns.append(_checked(record, of_turn, path, number))
                if record["number"] != len(turns):
                    raise _foreign(path, number, f"turn {len(turns)} is expected here")
            case "end" if head is not None and end is None:
                end = _checked(record, of_end, path, number)
            case other:
                raise _foreign(path, number, f"a line {str(other)[:40]!r} is not allowed here")
    if head is None:
        raise StoreError(
            f"{path}: contains no episode",
            hint="The first line of an episode describes it. The command that made the run makes "
            "missing episodes again.",
        )
    return head, tuple(turns), end


def read_episodes(run: Path) -> Iterator[Episode]:
    """Yields a run's episodes in the order of their file names, including unfinished ones.

    Raises:
        StoreError: a file cannot be read, or was not written by the judge.
    """
    return map(read_episode, episode_paths(run))


def episode_paths(run: Path) -> Iterator[Path]:
    """Returns the files of a run's episodes in the order of their names, without empty files.

    Raises:
        StoreError: the folder cannot be read.
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
        yield path


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


def record_bytes(text: str) -> bytes:
    """Encodes text as UTF-8 for the records."""
    # A lone surrogate cannot be encoded as UTF-8, but must not end an episode.
    return text.encode("utf-8", "replace")
