"""A suite that is being written: a suite folder with a log of who did what.

```
my-suite/
  dataset.json           the suite, as every command reads it
  spreadsheet/<id>/      workbooks
  authoring/log.jsonl    who added, changed and reviewed what; append-only
```

Workbooks are in place before ``dataset.json`` names them, and that is replaced as a whole, so a
crash leaves the suite as it was before or as it is after.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from judge.authoring.fields import (
    WANTED_FOR_REVIEW,
    TaskFields,
    content_digest,
    dataset_record,
    notes_of,
)
from judge.authoring.review import Standing, State, check_review, standing_of
from judge.core.task import Task, TestCase
from judge.errors import StoreError, SuiteError, UsageError
from judge.files.documents import dump_json, read_json
from judge.files.writing import folder_beside
from judge.grading.store import RunDirectory
from judge.suites import load_suite
from judge.suites.spreadsheetbench.format import FORMAT
from judge.suites.spreadsheetbench.task_records import read_record, task_of_record
from judge.suites.validate import Severity, SuiteFinding, check_task

LOG_FOLDER = "authoring"
LOG_FILE = "log.jsonl"
_DATASET = FORMAT.definition
_LOCK_WAIT_S = 10.0
_WORKBOOK_SUFFIXES = (".xlsx", ".xlsm")


@dataclass(frozen=True, slots=True)
class DraftTask:
    """A task of the suite with what is known about its making.

    Attributes:
        task: the task, as the judge grades it.
        record: its record in ``dataset.json``.
        notes: the manual's fields that have no place there.
        standing: its state, authors and reviewers.
        digest: SHA-256 of its content.
    """

    task: Task
    record: dict[str, Any]
    notes: dict[str, Any]
    standing: Standing
    digest: str


class SuiteDraft:
    """A suite folder that is written to.

    Args:
        root: the folder with the ``dataset.json``.

    Raises:
        SuiteError: there is none; an archive or a name cannot be written to.
    """

    def __init__(self, root: Path) -> None:
        if not (root / _DATASET).is_file():
            raise SuiteError(
                f"{root} is not a suite that can be written to: it has no {_DATASET}",
                hint="`judge dataset new FOLDER` makes one; an archive has to be unpacked first",
            )
        self.root = root
        self._files = RunDirectory(root)

    @classmethod
    def create(cls, root: Path, *, by: str) -> SuiteDraft:
        """Makes an empty suite.

        Raises:
            UsageError: the folder exists and is not empty.
        """
        if root.exists() and (not root.is_dir() or any(root.iterdir())):
            raise UsageError(f"{root} already exists", hint="Name a folder that is new or empty.")
        (root / "spreadsheet").mkdir(parents=True)
        (root / _DATASET).write_text("[]\n", encoding="utf-8")
        draft = cls(root)
        with draft._writing() as log:
            log.append(LOG_FILE, _event("suite", by))
        return draft

    # -- reading ----------------------------------------------------------------------------------

    def tasks(self) -> tuple[DraftTask, ...]:
        """Every task with its standing, in suite order; none in a new suite.

        Raises:
            SuiteError: the suite is broken.
        """
        records = self._records()
        if not records:
            return ()
        suite = load_suite(self.root)
        events = self._events()
        return tuple(
            _draft_task(task, record, events.get(task.id, []))
            for task, record in zip(suite.tasks, records, strict=True)
        )

    def task(self, task_id: str) -> DraftTask:
        """One task.

        Raises:
            UsageError: the suite has no such task.
        """
        for each in self.tasks():
            if each.task.id == task_id:
                return each
        raise UsageError(
            f"the suite {self.root} has no task {task_id}",
            hint=f"`judge dataset review {self.root}` names its tasks",
        )

    # -- writing ----------------------------------------------------------------------------------

    def add_task(
        self,
        task_id: int | str,
        given: TaskFields,
        cases: Sequence[tuple[Path, Path]],
        *,
        by: str,
    ) -> tuple[SuiteFinding, ...]:
        """Adds a task with its workbooks, as a draft.

        Args:
            task_id: its id, new in the suite.
            given: its fields.
            cases: input and gold workbook of each case, in order; they are copied.
            by: who wrote it.

        Returns:
            What is odd about it, though it can be judged.

        Raises:
            UsageError: a field is missing or wrong, or the id is taken.
            SuiteError: the workbooks cannot be judged; ``faults`` says why.
        """
        if not cases:
            raise UsageError(f"task {task_id}: it has no case", hint="Give --case INPUT GOLD.")
        with self._writing() as log:
            records = self._records()
            if any(str(record.get("id")) == str(task_id) for record in records):
                raise UsageError(
                    f"the suite already has a task {task_id}",
                    hint="`judge dataset edit-task` changes it.",
                )
            record = dataset_record(task_id, given)
            record["spreadsheet_path"] = f"spreadsheet/{task_id}"
            folder = self.root / "spreadsheet" / str(task_id)
            if folder.exists():
                raise UsageError(
                    f"{folder} already exists, though {_DATASET} has no task {task_id}",
                    hint="Move the folder away.",
                )
            findings = self._place(record, cases, folder)
            # The author is on record before there is a task that could be reviewed.
            log.append(LOG_FILE, _event("add", by, task=str(task_id), notes=notes_of(given)))
            self._files.write_text(_DATASET, _json_text([*records, record]))
        return findings

    def edit_task(self, task_id: str, given: TaskFields, *, by: str) -> tuple[SuiteFinding, ...]:
        """Changes fields of a task; reviews of its earlier content no longer count.

        Raises:
            UsageError: there is no such task, or a field is wrong.
            SuiteError: it could no longer be judged; ``faults`` says why.
        """
        with self._writing() as log:
            before = self.task(task_id)
            raw_id = before.record["id"]
            record = dataset_record(raw_id, given, before.record)
            findings = _check(_task_of(record, before.task.cases), self.root.resolve())
            records = [record if each["id"] == raw_id else each for each in self._records()]
            notes = before.notes | notes_of(given)
            log.append(LOG_FILE, _event("edit", by, task=task_id, notes=notes))
            self._files.write_text(_DATASET, _json_text(records))
        return findings

    def review(self, task_id: str, state: State, *, by: str, note: str = "") -> Standing:
        """Brings a task into a state.

        Args:
            task_id: the task.
            state: checked, accepted, or draft to send it back.
            by: the reviewer.
            note: a remark about it.

        Returns:
            The state of the task now.

        Raises:
            UsageError: the reviewer may not, or a field of the manual is not filled.
            SuiteError: the task cannot be judged as it is.
        """
        with self._writing() as log:
            found = self.task(task_id)
            check_review(found.standing, state, by)
            if state is not State.DRAFT:
                missing = [name for name in WANTED_FOR_REVIEW if found.notes.get(name) is None]
                if missing:
                    raise UsageError(
                        f"task {task_id}: not filled yet: {', '.join(missing)}",
                        hint="`judge dataset edit-task` fills them.",
                    )
                _check(found.task, self.root.resolve())
            event = _event(
                "review", by, task=task_id, state=state.value, digest=found.digest, note=note
            )
            log.append(LOG_FILE, event)
            return self.task(task_id).standing

    # -- inside -----------------------------------------------------------------------------------

    def _records(self) -> list[dict[str, Any]]:
        path = self.root / _DATASET
        records = read_json(path, SuiteError)
        if not isinstance(records, list) or not all(isinstance(each, dict) for each in records):
            raise SuiteError(f"{path}: must be a list of tasks")
        return records

    def _events(self) -> dict[str, list[dict[str, Any]]]:
        events: dict[str, list[dict[str, Any]]] = {}
        for record in RunDirectory(self.root / LOG_FOLDER).read_records(LOG_FILE):
            if "task" in record:
                events.setdefault(str(record["task"]), []).append(record)
        return events

    def _place(
        self, record: dict[str, Any], cases: Sequence[tuple[Path, Path]], folder: Path
    ) -> tuple[SuiteFinding, ...]:
        """Copies the workbooks into a folder of their own, checks them, and puts it in place."""
        with folder_beside(folder, ".adding-") as scratch:
            placed = []
            for number, (question, gold) in enumerate(cases, start=1):
                names = FORMAT.new_case_names(str(record["id"]), number)
                placed.append(
                    TestCase.of_workbooks(
                        number,
                        _copy(question, scratch / names[0]),
                        _copy(gold, scratch / names[1]),
                    )
                )
            findings = _check(_task_of(record, tuple(placed)), scratch)
            scratch.chmod(0o755)
            scratch.replace(folder)
        return findings

    @contextmanager
    def _writing(self) -> Iterator[RunDirectory]:
        """The log, with the suite held for this process; others wait for a while."""
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


def _draft_task(task: Task, record: dict[str, Any], events: list[dict[str, Any]]) -> DraftTask:
    notes: dict[str, Any] = {}
    for event in events:
        notes.update(event.get("notes") or {})
    workbooks = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for case in task.cases
        for path in case.paths
    }
    digest = content_digest(record, notes, workbooks)
    return DraftTask(task, record, notes, standing_of(events, digest), digest)


def _task_of(record: dict[str, Any], cases: tuple[TestCase, ...]) -> Task:
    read, faults = read_record(record)
    if read is None:
        raise UsageError(f"task {record.get('id')}: {'; '.join(faults)}")
    return task_of_record(read, cases)


def _check(task: Task, root: Path) -> tuple[SuiteFinding, ...]:
    """What is odd about a task.

    Raises:
        SuiteError: it cannot be judged.
    """
    resolved = tuple(
        TestCase.of_workbooks(case.number, case.input_path.resolve(), case.gold_path.resolve())
        for case in task.cases
    )
    findings = check_task(replace(task, cases=resolved), root.resolve(), _DATASET)
    faults = tuple(
        f"{finding.file}: {finding.message}"
        for finding in findings
        if finding.severity is Severity.ERROR
    )
    if faults:
        raise SuiteError(f"task {task.id} cannot be judged as it is", faults=faults)
    return tuple(findings)


def _copy(source: Path, target: Path) -> Path:
    suffix = source.suffix.lower()
    if suffix not in _WORKBOOK_SUFFIXES:
        raise UsageError(
            f"{source}: must be an .xlsx or .xlsm workbook",
            hint="Save an .xls as .xlsx first, in a spreadsheet program.",
        )
    placed = target.with_suffix(suffix)
    shutil.copyfile(source, placed)
    return placed


def _event(kind: str, by: str, **more: Any) -> dict[str, Any]:
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {"event": kind, "by": by, "at": at, **more}


def _json_text(records: Sequence[dict[str, Any]]) -> str:
    return dump_json(records, indent=2) + "\n"
