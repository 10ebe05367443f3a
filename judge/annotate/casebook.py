"""Cases and drafts in a suite's folder, safe against crashes and concurrent annotators.

```
SUITE/…/{n}_{id}_input.xlsx, {n}_{id}_answer.xlsx    the cases, named by the suite's format
SUITE/annotations/records.jsonl        every save and undone save: who, when, and what changed
SUITE/annotations/drafts/ID/*.jsonl    the drafts in progress, edit by edit
SUITE/annotations/versions/SHA256.xlsx every workbook that was ever saved, or used as a base
```

A save begins with a record that holds the hashes of both workbooks, which are already in
``versions``. If a crash interrupts it, the next process that opens the casebook finishes the save.
A case is replaced only by somebody who saw its current state.
"""

from __future__ import annotations

import itertools
import os
import secrets
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.annotate.archive import (
    FOLDER,
    Archive,
    CaseData,
    Draft,
    DraftFiles,
    SavedCase,
    append_record,
    digest,
    locked,
    read_workbook,
    step_of,
    within,
    write_file,
)
from judge.annotate.edits import Edit
from judge.core.task import Task, TestCase
from judge.errors import StoreError, SuiteError, UsageError
from judge.files.documents import utc_now
from judge.suites.formats import definition_names
from judge.suites.suite import Suite, load_suite, locate_suite

__all__ = ["CaseData", "Casebook", "ConflictError", "Draft", "SavedCase", "digest"]


class ConflictError(StoreError):
    """Somebody else saved first; nothing was overwritten, and the user's own changes are kept."""


class Casebook(Archive):
    """The cases and drafts of a suite.

    Opening it finishes a save that a crash interrupted. Safe to use from several threads and
    processes.

    Args:
        source: the suite's folder, or the file in it that defines the suite; or the name of a
            shipped or fetched suite, whose cases can be read and tried, but not saved.
        ids: the tasks to work on; if given, faults of other tasks are ignored.

    Raises:
        UsageError: the suite is not a folder but, for example, an archive.
        SuiteError: the suite is broken or does not exist.
    """

    def __init__(self, source: Path | str, *, ids: Collection[str] = ()) -> None:
        path = Path(source)
        self._ids = tuple(ids)
        self._name: str | None = None
        if not path.exists() and os.sep not in str(source):
            self._name, path = str(source), locate_suite(source).root
        names = definition_names()
        root = path.parent if path.name in names else path
        if not any((root / name).is_file() for name in names):
            raise UsageError(
                f"{source} is not the folder of a suite: it holds no file that defines one, such "
                f"as {names[0]}",
                hint="Cases are written into a suite's folder; unpack or copy the suite first.",
            )
        super().__init__(root.absolute())
        self._source = path.absolute()
        self._drafts = DraftFiles(self.root / FOLDER / "drafts", self.version)
        self.suite: Suite = self.reload()

    def check_writable(self) -> None:
        """Checks that cases may be saved, which is not allowed in a published suite.

        Raises:
            UsageError: the suite was given by its name.
        """
        if self._name is not None:
            raise UsageError(
                f"{self._name} is a published suite: nothing is written into it",
                hint=f"Copy it, and give the copy: cp -r {self.root} my-{self._name}",
            )

    def _locked(self) -> Any:
        self.check_writable()
        return locked(self.root / FOLDER / ".lock")

    def reload(self) -> Suite:
        """The current suite on the disk, with no case of which only some files are written yet."""
        # A suite without annotations may be in a folder that is not writable.
        if self._name is None and self._records.exists():
            with self._locked():
                self._recover()
                return self._load()
        try:
            return self._load()
        except SuiteError:
            if self._name is not None or not self._records.exists():
                raise
        return self.reload()  # somebody began to save the first case while the suite was read

    def _load(self) -> Suite:
        self.suite = load_suite(self._source, ids=self._ids)
        return self.suite

    def task(self, task_id: str) -> Task:
        """A task by its id.

        Raises:
            UsageError: there is no such task.
        """
        return self.suite.task(task_id)

    def case(self, task_id: str, number: int) -> CaseData:
        """The current workbooks of a case.

        Raises:
            UsageError: there is no such case.
            StoreError: they cannot be read.
        """
        paths = self._case_paths(self.task(task_id), number)
        if paths is None:
            raise UsageError(f"task {task_id} has no case {number}")
        return CaseData(number, read_workbook(paths.input_path), read_workbook(paths.gold_path))

    def _case_paths(self, task: Task, number: int) -> TestCase | None:
        existing = next((case for case in task.cases if case.number == number), None)
        if existing is not None:
            return existing
        # The case may have been saved since the suite was loaded.
        case = self._new_paths(task, number)
        if case is None or not (case.input_path.exists() and case.gold_path.exists()):
            return None
        return case

    def _new_paths(self, task: Task, number: int) -> TestCase | None:
        """The paths of an added case; None if the suite's definition lists the cases."""
        names = self.suite.suite_format.new_case_names(task.id, number)
        if names is None:
            return None
        folder = task.cases[0].input_path.parent
        return TestCase.of_workbooks(number, folder / names[0], folder / names[1])

    def _no_new_cases(self) -> UsageError:
        return UsageError(
            f"{self.root}: cases are added in {self.suite.suite_format.definition}",
            hint="Put the workbooks there, and a case that names them.",
        )

    # -- drafts --------------------------------------------------------------------------------

    def begin(
        self,
        task_id: str,
        author: str,
        *,
        base: int | None = None,
        replace: int | None = None,
    ) -> Draft:
        """Begins a draft of a new case, whose number is reserved, or of a change to a case.

        Args:
            task_id: the task.
            author: who works on it.
            base: the case to begin from; None for the first case.
            replace: the case to replace, which is then also the base.

        Raises:
            UsageError: no such task or case.
        """
        task = self.task(task_id)
        with self._locked():
            start = replace if replace is not None else base
            if replace is None and self._new_paths(task, task.cases[0].number) is None:
                raise self._no_new_cases()
            data = self.case(task_id, task.cases[0].number if start is None else start)
            number = replace if replace is not None else self._next_number(task)
            for workbook in (data.input, data.gold):
                self.keep(workbook)
            draft = Draft(
                id=f"{number}-{secrets.token_hex(4)}",
                task_id=task_id,
                number=number,
                author=author,
                replaces=data.revision if replace is not None else None,
                base=data,
            )
            self._drafts.write_head(draft)
        return draft

    def extend(
        self, draft: Draft, edits: Sequence[Edit] = (), answers: Sequence[Edit] = ()
    ) -> Draft:
        """Adds edits to a draft; they are on the disk when this returns.

        Args:
            draft: the draft.
            edits: changes of the input.
            answers: changes of the gold by hand.

        Raises:
            StoreError: the draft is gone, or cannot be written.
        """
        if edits or answers:
            with self._locked():
                self._drafts.append(draft, step_of(edits, answers))
        return self.draft(draft.task_id, draft.id)

    def undo(self, draft: Draft) -> Draft:
        """Undoes the last :meth:`extend`."""
        with self._locked():
            self._drafts.append(draft, {"undo": 1})
        return self.draft(draft.task_id, draft.id)

    def draft(self, task_id: str, draft_id: str) -> Draft:
        """Reads a draft from the disk.

        Raises:
            UsageError: there is no such draft.
        """
        draft = self._drafts.read(task_id, draft_id)
        if draft is None:
            raise UsageError(f"task {task_id} has no draft {draft_id}")
        return draft

    def drafts(self, task_id: str | None = None) -> list[Draft]:
        """Drafts in progress, of one task or of all."""
        ids = [task_id] if task_id is not None else [task.id for task in self.suite.tasks]
        return [
            draft
            for task_id in ids
            for draft_id in self._drafts.ids(task_id)
            if (draft := self._drafts.read(task_id, draft_id)) is not None
        ]

    def discard(self, draft: Draft) -> None:
        """Removes a draft without saving it."""
        with self._locked():
            self._drafts.path(draft.task_id, draft.id).unlink(missing_ok=True)

    def _next_number(self, task: Task) -> int:
        """The lowest number that no case and no draft has, so that numbers have no gaps."""
        loaded = load_suite(self._source, ids=self._ids)
        used = {case.number for case in loaded.task(task.id).cases}
        used |= set(self._drafts.numbers(task.id))
        return next(number for number in itertools.count(1) if number not in used)

    # -- saving ----------------------------------------------------------------------------------

    def save(
        self, draft: Draft, input_data: bytes, gold_data: bytes, facts: Mapping[str, Any]
    ) -> SavedCase:
        """Saves a draft as a case; the case and its record are on the disk when this returns.

        Args:
            draft: the draft, which is removed.
            input_data: the input workbook.
            gold_data: the gold workbook.
            facts: further facts for the record: edits, cells of the answer that moved, how the gold
                was made.

        Raises:
            ConflictError: the case was changed since the draft was begun, or the number is taken;
                the draft is kept.
            StoreError: the files cannot be written.
        """
        task = self.task(draft.task_id)
        with self._locked():
            self._recover()
            self._check_unchanged(task, draft)
            case = self._case_paths(task, draft.number) or self._new_paths(task, draft.number)
            if case is None:
                raise self._no_new_cases()
            record = {
                "id": secrets.token_hex(8),
                "time": utc_now(),
                "author": draft.author,
                "task": task.id,
                "case": draft.number,
                "draft": draft.id,
                "replaces": draft.replaces,
                "base": draft.base.number,
                "files": {
                    "input": str(case.input_path.relative_to(self.root)),
                    "gold": str(case.gold_path.relative_to(self.root)),
                },
                "input": self.keep(input_data),
                "gold": self.keep(gold_data),
                **facts,
            }
            for role in ("input", "gold"):
                within(self.root, self.root / record["files"][role])
            append_record(self._records, {"state": "saving", **record})
            self._finish(record)
        return SavedCase(task.id, draft.number, case.input_path, case.gold_path, record)

    def _check_unchanged(self, task: Task, draft: Draft) -> None:
        if not self._drafts.path(task.id, draft.id).exists():
            raise ConflictError(
                f"draft {draft.id} of task {task.id} was already saved or discarded",
                hint="Begin a new one from the current case.",
            )
        paths = self._case_paths(task, draft.number)
        if draft.replaces is None:
            if paths is not None:
                raise ConflictError(
                    f"task {task.id} already has a case {draft.number}; nothing was overwritten",
                    hint="Begin a new draft: it gets another number.",
                )
            return
        if paths is None or self.case(task.id, draft.number).revision != draft.replaces:
            last = self.last_record(task.id, draft.number)
            who = f" by {last['author']} at {last['time']}" if last else ""
            raise ConflictError(
                f"case {draft.number} of task {task.id} was changed{who} since you began; nothing "
                f"was overwritten, and your draft {draft.id} is kept",
                hint="Check the current case first. `judge annotate set SUITE "
                f"{task.id} {draft.id} --onto current` saves your changes on it, `--onto new` as a "
                "new case.",
            )

    def rebase(self, draft: Draft, *, as_new: bool) -> Draft:
        """Moves the edits of a draft to the current state of its case, or to a new case.

        The old draft is removed.
        """
        fresh = (
            self.begin(draft.task_id, draft.author, base=draft.number)
            if as_new
            else self.begin(draft.task_id, draft.author, replace=draft.number)
        )
        fresh = self.extend(fresh, draft.edits, draft.answers)
        self.discard(draft)
        return fresh

    def take_back(self, task_id: str, number: int, author: str, *, why: str = "") -> SavedCase:
        """Undoes the last save of a case.

        An added case is removed; a changed case gets its earlier workbooks. Every version stays in
        ``versions``, and the edits stay in the records.

        Raises:
            UsageError: the case was not saved here, or is no longer in the suite.
            ConflictError: the workbooks have changed since they were saved.
            StoreError: the files cannot be written.
        """
        task = self.task(task_id)
        with self._locked():
            self._recover()
            last = self.last_record(task_id, number)
            if last is None:
                raise UsageError(
                    f"case {number} of task {task_id} was not saved by `judge annotate`",
                    hint="Only its saves can be taken back; see `judge annotate log`.",
                )
            if self.case(task_id, number).revision != f"{last['input']}-{last['gold']}":
                raise ConflictError(
                    f"case {number} of task {task_id} has changed since it was saved at "
                    f"{last['time']}; nothing was taken back",
                    hint="Somebody has changed its workbooks since; check them first.",
                )
            restored = str(last["replaces"] or "").split("-")
            record = {
                "id": secrets.token_hex(8),
                "time": utc_now(),
                "author": author,
                "task": task.id,
                "case": number,
                "takes_back": last["id"],
                "why": why,
                "files": last["files"],
                "input": last["input"],
                "gold": last["gold"],
                "restores": dict(zip(("input", "gold"), restored, strict=True))
                if len(restored) == 2
                else None,
            }
            append_record(self._records, {"state": "removing", **record})
            self._remove(record)
        paths = [self.root / last["files"][role] for role in ("input", "gold")]
        return SavedCase(task.id, number, paths[0], paths[1], record)

    def _remove(self, record: Mapping[str, Any]) -> None:
        """Removes both workbooks, or restores the earlier ones."""
        for role in ("gold", "input"):
            target = within(self.root, self.root / record["files"][role])
            if record["restores"] is not None:
                write_file(target, self.version(record["restores"][role]))
            elif target.exists() and digest(read_workbook(target)) == record[role]:
                self.version(record[role])  # nothing is lost: the version is kept
                target.unlink()
        append_record(self._records, {"state": "saved", "id": record["id"]})

    def _finish(self, record: Mapping[str, Any]) -> None:
        """Moves both workbooks to their final paths, removes the draft, and records the save."""
        for role in ("gold", "input"):
            target = within(self.root, self.root / record["files"][role])
            write_file(target, self.version(record[role]))
        self._drafts.path(record["task"], record["draft"]).unlink(missing_ok=True)
        append_record(self._records, {"state": "saved", "id": record["id"]})

    def _recover(self) -> None:
        """Finishes saves that a crash interrupted; their workbooks are all in ``versions``."""
        begun: dict[str, dict[str, Any]] = {}
        for record in self._read():
            if record.get("state") in {"saving", "removing"}:
                begun[record["id"]] = record
            else:
                begun.pop(str(record.get("id")), None)
        for record in begun.values():
            if record["state"] == "removing":
                self._remove(record)
            else:
                self._finish(record)
