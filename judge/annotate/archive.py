"""The archive in a suite's folder: saved cases, drafts, and every workbook that they name.

Records are appended one by one and files are replaced as a whole; when a function of this module
returns, its changes are on the disk. A suite may come from a stranger, with its records and drafts.
Opening a suite finishes saves that a crash interrupted, which writes files. The record of such a
save is followed only if the judge itself could have written it.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from judge.annotate.edits import Edit, edit_from_json, edit_to_json
from judge.console import visible
from judge.errors import StoreError, UsageError
from judge.files.documents import dump_json, json_type, read_regular, utc_now
from judge.files.json_lines import LineAppender, read_json_lines
from judge.files.writing import naming_what_is_written, take_lock, write_whole
from judge.workbook.budget import DEFAULT_LIMITS
from judge.workbook.reader import Workbook, open_workbook


@dataclass(frozen=True)
class CaseData:
    """The two workbooks of a case; each is opened only once, however many new cases start from it.

    Attributes:
        number: number of the case.
        input: the input workbook.
        gold: the gold workbook.
    """

    number: int
    input: bytes
    gold: bytes

    @cached_property
    def input_workbook(self) -> Workbook:
        """The opened input workbook.

        Raises:
            WorkbookError: it cannot be opened.
        """
        return open_workbook(self.input)

    @cached_property
    def gold_workbook(self) -> Workbook:
        """The opened gold workbook.

        Raises:
            WorkbookError: it cannot be opened.
        """
        return open_workbook(self.gold)

    @property
    def revision(self) -> str:
        """Digest of the case's current state."""
        return f"{digest(self.input)}-{digest(self.gold)}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A case that somebody is working on.

    Attributes:
        id: name of the draft within its task.
        task_id: the task.
        number: number of the case that the draft becomes.
        author: who works on it.
        replaces: revision of the case that the draft will replace; None for a new case.
        base: the case that it started from.
        edits: the changes of the input since then, in order.
        answers: the changes of the gold that were made by hand.
    """

    id: str
    task_id: str
    number: int
    author: str
    replaces: str | None
    base: CaseData
    edits: tuple[Edit, ...] = ()
    answers: tuple[Edit, ...] = ()


DRAFT_ID = re.compile(r"[0-9]{1,6}-[0-9a-f]{1,64}")
"""The id of a draft: the number of its future case, and a suffix that makes the id unique."""


class DraftFiles:
    """The files of drafts: one folder for each task, one file for each draft.

    Some methods require that the caller holds the casebook's lock, and say so.

    Args:
        folder: the folder of all drafts.
        version: returns a kept workbook by its hash.
    """

    def __init__(self, folder: Path, version: Callable[[str], bytes]) -> None:
        self._folder = folder
        self._version = version

    def path(self, task_id: str, draft_id: str) -> Path:
        """The path of a draft.

        Raises:
            UsageError: that is not the id of a draft.
        """
        if not DRAFT_ID.fullmatch(draft_id):
            raise UsageError(
                f"{draft_id!r} is not a draft: it is neither the number of a case nor a draft's id",
                hint="`judge annotate drafts SUITE` lists the drafts.",
            )
        return self._of_task(task_id) / f"{draft_id}.jsonl"

    def _of_task(self, task_id: str) -> Path:
        return self._folder / quote(task_id, safe="")

    def ids(self, task_id: str) -> list[str]:
        """Ids of the drafts of a task."""
        folder = self._of_task(task_id)
        if not folder.is_dir():
            return []
        return sorted(path.stem for path in folder.glob("*.jsonl") if DRAFT_ID.fullmatch(path.stem))

    def numbers(self, task_id: str) -> list[int]:
        """Case numbers that the drafts of a task have reserved."""
        return [int(draft_id.partition("-")[0]) for draft_id in self.ids(task_id)]

    def write_head(self, draft: Draft) -> None:
        """Creates the file of a draft; the caller holds the lock."""
        append_record(
            self.path(draft.task_id, draft.id),
            {
                "draft": draft.id,
                "task": draft.task_id,
                "case": draft.number,
                "author": draft.author,
                "begun": utc_now(),
                "replaces": draft.replaces,
                "base": {
                    "case": draft.base.number,
                    "input": digest(draft.base.input),
                    "gold": digest(draft.base.gold),
                },
            },
        )

    def append(self, draft: Draft, record: Mapping[str, Any]) -> None:
        """Adds a step to a draft; the caller holds the lock.

        Raises:
            StoreError: the draft is gone, or cannot be written.
        """
        path = self.path(draft.task_id, draft.id)
        if not path.exists():
            raise StoreError(f"draft {draft.id} of task {draft.task_id} is gone")
        append_record(path, {"time": utc_now(), **record})

    def read(self, task_id: str, draft_id: str) -> Draft | None:
        """Reads a draft from the disk; None if it does not exist.

        A file whose first line was cut short by a crash counts as missing.
        """
        path = self.path(task_id, draft_id)
        records = read_records(path)
        if not records:
            return None
        head, *steps = records
        check_draft(path, head, steps)
        done: list[Mapping[str, Any]] = []
        for step in steps:
            if "undo" in step:
                done = done[:-1]
            else:
                done.append(step)
        base = head["base"]
        return Draft(
            id=draft_id,
            task_id=task_id,
            number=int(head["case"]),
            author=str(head["author"]),
            replaces=head["replaces"],
            base=CaseData(
                int(base["case"]), self._version(base["input"]), self._version(base["gold"])
            ),
            edits=tuple(edit_from_json(edit) for step in done for edit in step["edits"]),
            answers=tuple(edit_from_json(edit) for step in done for edit in step["answers"]),
        )


def step_of(edits: Sequence[Edit], answers: Sequence[Edit]) -> dict[str, Any]:
    """The edits of a step, as a draft's file stores them."""
    return {
        "edits": [edit_to_json(edit) for edit in edits],
        "answers": [edit_to_json(answer) for answer in answers],
    }


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


MAX_CASES = 999_999

_SHA256 = re.compile(r"[0-9a-f]{64}")
_Check = Callable[[object], bool]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_CASES


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


def _is_draft(value: object) -> bool:
    return isinstance(value, str) and DRAFT_ID.fullmatch(value) is not None


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_text_or_null(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


_SAVING: Mapping[str, _Check] = {
    "id": _is_text,
    "time": _is_text,
    "author": lambda value: isinstance(value, str),
    "task": _is_text,
    "case": _is_number,
    "draft": _is_draft,
    "base": _is_number,
    "replaces": _is_text_or_null,
    "files": _is_object,
    "input": _is_hash,
    "gold": _is_hash,
}
_REMOVING: Mapping[str, _Check] = {
    **{name: _SAVING[name] for name in ("id", "time", "author", "task", "case", "files")},
    **{name: _SAVING[name] for name in ("input", "gold")},
    "takes_back": _is_text,
    "restores": lambda value: (
        value is None
        or (
            isinstance(value, dict) and all(_is_hash(value.get(role)) for role in ("input", "gold"))
        )
    ),
}
_SAVED: Mapping[str, _Check] = {"id": _is_text}
_HEAD: Mapping[str, _Check] = {
    "case": _is_number,
    "author": lambda value: isinstance(value, str),
    "replaces": _is_text_or_null,
    "base": _is_object,
}
_BASE: Mapping[str, _Check] = {"case": _is_number, "input": _is_hash, "gold": _is_hash}
_STEP: Mapping[str, _Check] = {"edits": _is_list, "answers": _is_list}


def check_record(path: Path, record: Mapping[str, Any]) -> None:
    """Checks the record of a save, or of a save that was undone.

    Raises:
        StoreError: the record is not valid; says which field is wrong.
    """
    if record.get("state") not in {"saving", "removing"}:
        _check(path, record, _SAVED)
        return
    _check(path, record, _SAVING if record["state"] == "saving" else _REMOVING)
    for role in ("input", "gold"):
        name = record["files"].get(role)
        if not _is_case_path(name):
            raise _wrong(path, f"files.{role}", name)
    changed = record.get("changed", [])
    if not isinstance(changed, list) or not all(isinstance(name, str) for name in changed):
        raise _wrong(path, "changed", changed)


def _is_case_path(name: object) -> bool:
    """Whether a path could belong to a case's workbook within the suite."""
    if not isinstance(name, str) or "\\" in name or "\0" in name:
        return False
    path = PurePosixPath(name)
    return (
        not path.is_absolute()
        and ".." not in path.parts
        and path.suffix.lower() == ".xlsx"
        and path.parts[0] != "annotations"
    )


def check_draft(path: Path, head: Mapping[str, Any], steps: list[dict[str, Any]]) -> None:
    """Checks that the judge could have written the lines of a draft.

    Raises:
        StoreError: they are not valid; says which field is wrong.
    """
    _check(path, head, _HEAD)
    _check(path, head["base"], _BASE)
    for step in steps:
        if "undo" not in step:
            _check(path, step, _STEP)


def _check(path: Path, record: Mapping[str, Any], fields: Mapping[str, _Check]) -> None:
    for name, fits in fields.items():
        if not fits(record.get(name)):
            raise _wrong(path, name, record.get(name))


def _wrong(path: Path, name: str, value: object) -> StoreError:
    shown = visible(repr(value)[:60]) if isinstance(value, str | int) else json_type(value)
    return StoreError(
        f"{path}: a record whose field {name} cannot be right: {shown}",
        hint="The judge did not write it. Remove the line, or the whole folder "
        "annotations if the suite is not yours.",
    )


def within(root: Path, target: Path) -> Path:
    """Checks that no link leads out of the suite before one of its files is written.

    Returns:
        The path of the file.

    Raises:
        StoreError: a link leads out of it.
    """
    try:
        outside = not target.parent.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError) as error:
        raise StoreError(f"{target}: {error}") from error
    if outside:
        raise StoreError(
            f"{target} is outside the suite, because a link leads there",
            hint="Replace the link with the folder itself; nothing was written.",
        )
    return target


_MODE = 0o644


def append_record(path: Path, record: Mapping[str, Any]) -> None:
    """Appends one line of JSON; an incomplete line from an earlier crash is removed first.

    Raises:
        StoreError: the file cannot be written.
    """
    with (
        _in_its_folder(path),
        contextlib.closing(LineAppender(path, mode=_MODE, durable=True)) as appender,
    ):
        appender.append(dump_json(record).encode())


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of a file; empty if there is no file. An incomplete last line is ignored.

    Raises:
        StoreError: the file cannot be read, or does not hold records.
    """
    return [record for _, record in read_json_lines(path, StoreError, whole=True)]


def write_file(path: Path, data: bytes) -> None:
    """Writes or replaces a file atomically: a reader sees either the old or the new content.

    Raises:
        StoreError: the file cannot be written.
    """
    with _in_its_folder(path):
        write_whole(path, data, mode=_MODE, durable=True)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock file, after waiting for other processes and threads that hold it.

    The lock is released when its process ends, even after a crash.

    Raises:
        StoreError: the lock file cannot be written.
    """
    with _in_its_folder(path):
        lock = take_lock(path, wait=True)
    with lock:
        yield


@contextlib.contextmanager
def _in_its_folder(path: Path) -> Iterator[None]:
    """Makes the folder of a file that is about to be written; faults name the file."""
    try:
        with naming_what_is_written(path, StoreError):
            path.parent.mkdir(parents=True, exist_ok=True)
            yield
    except FileExistsError as error:
        raise StoreError(
            f"{path}: cannot be written: {path.parent} is not a folder",
            hint="Move it away, or name another place.",
        ) from error


FOLDER = "annotations"


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class SavedCase:
    """A saved case.

    Attributes:
        task_id: the task.
        number: number of the case.
        input_path, gold_path: its workbooks.
        record: its record.
    """

    task_id: str
    number: int
    input_path: Path
    gold_path: Path
    record: Mapping[str, Any] = field(default_factory=_nothing)


class Archive:
    """The records and the kept versions of workbooks in a suite's folder.

    Args:
        root: the suite's folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._records = root / FOLDER / "records.jsonl"

    def records(self, task_id: str | None = None) -> list[dict[str, Any]]:
        """Records of the saves that were not undone, in order, for one task or all."""
        history = self.history(task_id)
        undone_ids = {record["takes_back"] for record in history if record["state"] == "removing"}
        return [
            record
            for record in history
            if record["state"] == "saving" and record["id"] not in undone_ids
        ]

    def history(self, task_id: str | None = None) -> list[dict[str, Any]]:
        """Records of all saves and undone saves, in order, for one task or for all."""
        return [
            record
            for record in self._read()
            if record.get("state") in {"saving", "removing"}
            and task_id in {None, record.get("task")}
        ]

    def _read(self) -> list[dict[str, Any]]:
        records = read_records(self._records)
        for record in records:
            check_record(self._records, record)
        return records

    def last_record(self, task_id: str, number: int) -> dict[str, Any] | None:
        """The record of a case's last save."""
        matching = [record for record in self.records(task_id) if record["case"] == number]
        return matching[-1] if matching else None

    def version(self, sha256: str) -> bytes:
        """A workbook that was saved or used as a base, by its hash.

        Raises:
            StoreError: it is missing or damaged.
        """
        path = self._version_path(sha256)
        data = read_workbook(path)
        if digest(data) != sha256:
            raise StoreError(f"{path}: the file is damaged")
        return data

    def keep(self, data: bytes) -> str:
        """Stores a workbook, and returns its hash."""
        sha256 = digest(data)
        path = self._version_path(sha256)
        if not path.exists():
            write_file(path, data)
        return sha256

    def _version_path(self, sha256: str) -> Path:
        return self.root / FOLDER / "versions" / f"{sha256}.xlsx"


def read_workbook(path: Path) -> bytes:
    """Reads the workbook at a path, which must be a regular file of limited size.

    Raises:
        StoreError: it is missing, or cannot be read.
    """
    data = read_regular(path, StoreError, max_bytes=DEFAULT_LIMITS.file_bytes)
    if data is None:
        raise StoreError(f"{path}: No such file or directory")
    return data
