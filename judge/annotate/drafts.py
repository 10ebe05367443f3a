"""Drafts: what an annotator works on, kept edit by edit in a file of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from judge.annotate.claims import DRAFT_ID, check_draft
from judge.annotate.durable_files import append_record, read_records
from judge.annotate.edits import Edit, edit_from_json, edit_to_json
from judge.errors import StoreError, UsageError
from judge.files.documents import utc_now
from judge.workbook.reader import Workbook, open_workbook


@dataclass(frozen=True)
class CaseData:
    """The two workbooks of a case; each is opened once, however many ideas change it.

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
        """The input, opened.

        Raises:
            WorkbookError: it cannot be opened.
        """
        return open_workbook(self.input)

    @cached_property
    def gold_workbook(self) -> Workbook:
        """The gold, opened.

        Raises:
            WorkbookError: it cannot be opened.
        """
        return open_workbook(self.gold)

    @property
    def revision(self) -> str:
        """What distinguishes one state of the case from another."""
        return f"{digest(self.input)}-{digest(self.gold)}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A case that somebody works on.

    Attributes:
        id: name of the draft within its task.
        task_id: the task.
        number: number of the case that it becomes.
        author: who works on it.
        replaces: revision of the case that it is to replace; None for a new case.
        base: the case that it was begun from.
        edits: what was changed in the input since, in order.
        answers: what was changed in the gold by hand.
    """

    id: str
    task_id: str
    number: int
    author: str
    replaces: str | None
    base: CaseData
    edits: tuple[Edit, ...] = ()
    answers: tuple[Edit, ...] = ()


class DraftFiles:
    """The files of drafts: one folder for each task, one file for each draft.

    The caller holds the lock of the casebook where that is stated.

    Args:
        folder: the folder of all drafts.
        version: gives a kept workbook by its hash.
    """

    def __init__(self, folder: Path, version: Callable[[str], bytes]) -> None:
        self._folder = folder
        self._version = version

    def path(self, task_id: str, draft_id: str) -> Path:
        """Where a draft is.

        Raises:
            UsageError: that is not the id of a draft.
        """
        if not DRAFT_ID.fullmatch(draft_id):
            raise UsageError(f"{draft_id!r} is not a draft")
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
        """Case numbers that the drafts of a task hold."""
        return [int(each.partition("-")[0]) for each in self.ids(task_id)]

    def write_head(self, draft: Draft) -> None:
        """Begins the file of a draft; with the lock held."""
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
        """Adds a step to a draft; with the lock held.

        Raises:
            StoreError: the draft is gone, or cannot be written.
        """
        path = self.path(draft.task_id, draft.id)
        if not path.exists():
            raise StoreError(f"draft {draft.id} of task {draft.task_id} is gone")
        append_record(path, {"time": utc_now(), **record})

    def read(self, task_id: str, draft_id: str) -> Draft | None:
        """A draft as it is on the disk; None if it does not exist.

        A crash can leave a file whose first line was not finished; it holds nothing.
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
            edits=tuple(edit_from_json(each) for step in done for each in step["edits"]),
            answers=tuple(edit_from_json(each) for step in done for each in step["answers"]),
        )


def step_of(edits: Sequence[Edit], answers: Sequence[Edit]) -> dict[str, Any]:
    """Edits as a step of a draft."""
    return {
        "edits": [edit_to_json(edit) for edit in edits],
        "answers": [edit_to_json(answer) for answer in answers],
    }


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()
