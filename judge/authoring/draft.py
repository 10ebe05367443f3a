"""A suite that is being written: its folder, with a log of all changes and reviews.

```
my-suite/
  dataset.json           the suite, as every command reads it; suite.json for typed answers
  spreadsheet/<id>/      its files; files/<id>/ for typed answers
  authoring/log.jsonl    who added, changed and reviewed which task; append-only
```

Files are in place before the definition names them, and the definition is replaced atomically. So
after a crash, the suite is in the state before or after the change.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge.authoring.kinds import (
    DraftTask,
    Record,
    ReviewStatus,
    State,
    check_review,
    content_digest,
    kind_named,
    kind_of_folder,
    review_status_of,
)
from judge.core.task import Task
from judge.errors import StoreError, SuiteError, UsageError
from judge.files.documents import utc_now
from judge.files.writing import folder_beside
from judge.grading.store import RunDirectory
from judge.suites import load_suite
from judge.suites.validate import Severity, SuiteFinding, check_task

Findings = tuple[SuiteFinding, ...]
LOG_FOLDER = "authoring"
LOG_FILE = "log.jsonl"
_LOCK_WAIT_S = 10.0


class SuiteDraft:
    """A suite folder that can be written to.

    Args:
        root: the folder with the ``dataset.json`` or ``suite.json``.
        options: an author's options for a task, which decide the kind if the suite can have tasks
            of several kinds.

    Attributes:
        kind: the kind of the suite, or of the task.

    Raises:
        SuiteError: there is no such suite; archives and names of suites cannot be written to.
    """

    def __init__(self, root: Path, options: Mapping[str, Any] | None = None) -> None:
        self.kind = kind_of_folder(root, options)
        self.root = root
        self._files = RunDirectory(root)

    @classmethod
    def create(cls, root: Path, *, by: str, kind: str = "workbook") -> SuiteDraft:
        """Makes an empty suite.

        Args:
            root: its folder.
            by: who makes it.
            kind: name of its kind.

        Raises:
            UsageError: the folder exists and is not empty, or there is no such kind.
        """
        chosen = kind_named(kind)
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise UsageError(f"{root} already exists", hint="Name a folder that is new or empty.")
        (root / chosen.folder).mkdir(parents=True)
        (root / chosen.definition).write_text(chosen.text_of(root, []), encoding="utf-8")
        draft = cls(root)
        with draft._writing() as log:
            log.append(LOG_FILE, _event("suite", by))
        return draft

    # -- reading ----------------------------------------------------------------------------------

    def tasks(self) -> tuple[DraftTask, ...]:
        """Every task with its status, in suite order; empty in a new suite.

        Raises:
            SuiteError: the suite is broken.
        """
        records = self.kind.records(self.root)
        if not records:
            return ()
        suite = load_suite(self.root)
        events = self._events()
        return tuple(
            _draft_task(task, record, events.get(task.id, []))
            for task, record in zip(suite.tasks, records, strict=True)
        )

    def task(self, task_id: str) -> DraftTask:
        """Returns one task.

        Raises:
            UsageError: the suite has no such task.
        """
        for task in self.tasks():
            if task.task.id == task_id:
                return task
        raise UsageError(
            f"the suite {self.root} has no task {task_id}",
            hint=f"`judge dataset review {self.root}` names its tasks",
        )

    # -- writing ----------------------------------------------------------------------------------

    def add_task(
        self,
        task_id: int | str,
        given: Any,
        files: Sequence[Any],
        *,
        by: str,
    ) -> Findings:
        """Adds a task with its files, as a draft.

        Args:
            task_id: its id, which must be new in the suite.
            given: its fields, in the form that the suite's kind requires.
            files: its files, in the form that the suite's kind requires; they are copied. For
                workbooks: input and gold of each case.
            by: who wrote it.

        Returns:
            Findings about oddities of the task, which do not prevent judging.

        Raises:
            UsageError: a field is missing or wrong, or the id is taken.
            SuiteError: the files cannot be judged; ``faults`` says why.
        """
        with self._writing() as log:
            records = self.kind.records(self.root)
            if any(str(record.get("id")) == str(task_id) for record in records):
                raise UsageError(
                    f"the suite already has a task {task_id}",
                    hint="`judge dataset edit-task` changes it.",
                )
            record = self.kind.record(task_id, given, None)
            folder = self.root / self.kind.folder / str(task_id)
            if folder.exists():
                raise UsageError(
                    f"{folder} already exists, though {self.kind.definition} has no task {task_id}",
                    hint="Move the folder away.",
                )
            findings = self._place_files(record, files, folder)
            # The author is recorded before the task exists and can be reviewed.
            log.append(LOG_FILE, _event("add", by, task=str(task_id), notes=self.kind.notes(given)))
            self._write([*records, record])
        return findings

    def edit_task(self, task_id: str, given: Any, *, by: str) -> Findings:
        """Changes fields of a task; reviews of its earlier content no longer count.

        Raises:
            UsageError: there is no such task, or a field is wrong.
            SuiteError: the task could no longer be judged; ``faults`` says why.
        """
        with self._writing() as log:
            before = self.task(task_id)
            raw_id = before.record["id"]
            record = self.kind.record(raw_id, given, before.record)
            changed = self.kind.changed(record, before.task, self.root)
            findings = self._check(changed, self.root)
            records = [
                record if existing["id"] == raw_id else existing
                for existing in self.kind.records(self.root)
            ]
            notes = before.notes | self.kind.notes(given)
            log.append(LOG_FILE, _event("edit", by, task=task_id, notes=notes))
            self._write(records)
        return findings

    def review(self, task_id: str, state: State, *, by: str, note: str = "") -> ReviewStatus:
        """Records a review, which changes the state of a task.

        Args:
            task_id: the task.
            state: checked, accepted, or draft to send the task back.
            by: the reviewer.
            note: a remark about the task.

        Returns:
            The new state of the task.

        Raises:
            UsageError: the reviewer may not do this, or a required field is empty.
            SuiteError: the task cannot be judged in its current state.
        """
        with self._writing() as log:
            task = self.task(task_id)
            check_review(task.status, state, by)
            if state is not State.DRAFT:
                required = self.kind.wanted_for_review
                missing = [name for name in required if task.notes.get(name) is None]
                if missing:
                    raise UsageError(
                        f"task {task_id}: not filled yet: {', '.join(missing)}",
                        hint="`judge dataset edit-task` fills them.",
                    )
                self._check(task.task, self.root)
            event = _event(
                "review", by, task=task_id, state=state.value, digest=task.digest, note=note
            )
            log.append(LOG_FILE, event)
            return self.task(task_id).status

    # -- inside -----------------------------------------------------------------------------------

    def _write(self, records: Sequence[Record]) -> None:
        self._files.write_text(self.kind.definition, self.kind.text_of(self.root, records))

    def _events(self) -> dict[str, list[dict[str, Any]]]:
        events: dict[str, list[dict[str, Any]]] = {}
        for record in RunDirectory(self.root / LOG_FOLDER).read_records(LOG_FILE):
            if "task" in record:
                events.setdefault(str(record["task"]), []).append(record)
        return events

    def _place_files(self, record: Record, files: Sequence[Any], folder: Path) -> Findings:
        """Copies the files into a temporary folder, checks them, and moves it into place."""
        with folder_beside(folder, ".adding-") as scratch:
            findings = self._check(self.kind.place(record, files, scratch), scratch)
            scratch.chmod(0o755)
            scratch.replace(folder)
        return findings

    def _check(self, task: Task, root: Path) -> Findings:
        """Checks a task; returns warnings.

        Raises:
            SuiteError: the task cannot be judged.
        """
        resolved = _resolved(task)
        findings = check_task(resolved, root.resolve(), self.kind.definition)
        if not any(finding.severity is Severity.ERROR for finding in findings):
            findings.extend(self.kind.check(resolved))
        faults = tuple(
            f"{finding.file}: {finding.message}"
            for finding in findings
            if finding.severity is Severity.ERROR
        )
        if faults:
            raise SuiteError(f"task {task.id} cannot be judged", faults=faults)
        return tuple(findings)

    @contextmanager
    def _writing(self) -> Iterator[RunDirectory]:
        """Opens the log and locks the suite for this process; waits a while if it is locked."""
        log = RunDirectory(self.root / LOG_FOLDER)
        deadline = time.monotonic() + _LOCK_WAIT_S
        while True:
            try:
                log.lock()
                break
            except StoreError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        try:
            yield log
        finally:
            log.close()


def _draft_task(task: Task, record: Record, events: list[dict[str, Any]]) -> DraftTask:
    notes: dict[str, Any] = {}
    for event in events:
        notes.update(event.get("notes") or {})
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for case in task.cases
        for path in case.paths
    }
    digest = content_digest(record, notes, files)
    return DraftTask(task, record, notes, review_status_of(events, digest), digest)


def _resolved(task: Task) -> Task:
    """The task with its links resolved to real paths."""

    def resolved(path: Path | None) -> Path | None:
        return None if path is None else path.resolve()

    cases = tuple(
        replace(
            case,
            inputs=tuple(
                replace(question, path=question.path.resolve()) for question in case.inputs
            ),
            golds=tuple(replace(gold, path=resolved(gold.path)) for gold in case.golds),
        )
        for case in task.cases
    )
    return replace(task, cases=cases)


def _event(kind: str, by: str, **more: Any) -> dict[str, Any]:
    at = utc_now()
    return {"event": kind, "by": by, "at": at, **more}
