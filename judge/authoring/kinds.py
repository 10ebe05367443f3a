"""The kinds of tasks that can be written, and the review states that all tasks go through.

A kind is one module with a ``KIND``, and one line in ``KINDS``. Kinds with the same definition
file can be mixed in one suite. A kind defines which fields an author fills in, how the suite's
definition records a task, and how the suite is exported. Everything else (the log, states, reviews)
is common to all kinds. :class:`OwnKind` is the base of kinds in suites of the judge's own format
(``suite.json``): a task is checked before it is added; its golds have to be accepted, its untouched
inputs refused.

A task is a draft until somebody other than its authors has checked it, and it is accepted after a
third person has checked it too. A review applies to the content that the reviewer saw: it no longer
counts after the task has changed, and counts again if the change is undone.
"""

from __future__ import annotations

import abc
import enum
import hashlib
import importlib
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from judge.compare.profiles import get_profile
from judge.core.submission import AnswerForm
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import SuiteError, UsageError
from judge.files.documents import dump_json, read_json
from judge.grading.case import CaseJudge, GradingRules
from judge.grading.verify import CaseCheck, verify_case
from judge.recalc.policy import Recalculator
from judge.suites.own_format import DEFINITION, FORMAT_NAME, VERSION, read_task
from judge.suites.validate import Severity, SuiteFinding

if TYPE_CHECKING:
    from judge.authoring.proposals import Proposals
    from judge.suites.validate import SuiteFinding


class State(enum.StrEnum):
    """The state of a task."""

    DRAFT = "draft"
    CHECKED = "checked"
    """One reviewer, who is not an author, has checked it."""
    ACCEPTED = "accepted"
    """A second reviewer has checked it too."""


@dataclass(frozen=True, slots=True)
class ReviewStatus:
    """The review status of a task.

    Attributes:
        state: draft, checked or accepted.
        authors: who wrote or changed it, in order; empty if the log names nobody.
        reviewers: up to two people whose reviews count, in order.
        changed_since: whether it has changed since it was reviewed.
        note: the remark made when it was last sent back to draft; None after the next check.
    """

    state: State
    authors: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    changed_since: bool = False
    note: str | None = None


def review_status_of(events: Iterable[Mapping[str, Any]], digest: str) -> ReviewStatus:
    """Computes the review status of a task.

    Args:
        events: the log's records about the task, in order.
        digest: the digest of the task's current content.
    """
    authors: dict[str, None] = {}
    reviewers: list[str] = []
    reviewed = False
    note: str | None = None
    for event in events:
        by = str(event["by"])
        if event["event"] != "review":
            authors.setdefault(by)
        elif event["state"] == State.DRAFT:
            reviewers.clear()
            reviewed, note = False, str(event.get("note") or "") or None
        else:
            reviewed = True
            if event["digest"] != digest:
                continue
            note = None
            if event["state"] == State.CHECKED:
                reviewers = [by]
            elif reviewers:
                reviewers = [reviewers[0], by]
    state = (State.DRAFT, State.CHECKED, State.ACCEPTED)[len(reviewers)]
    return ReviewStatus(state, tuple(authors), tuple(reviewers), reviewed and not reviewers, note)


def check_review(status: ReviewStatus, state: State, by: str) -> None:
    """Checks that a person may put a task into a state.

    Raises:
        UsageError: the person wrote the task, has already checked it, or leaves out a step.
    """
    if state is State.DRAFT:
        return
    if any(_same(by, author) for author in status.authors):
        raise UsageError(
            f"{by} wrote or changed this task and cannot review it",
            hint="Two other people review a task: one checks it, another accepts it.",
        )
    if state is State.CHECKED:
        if status.state is State.ACCEPTED:
            raise UsageError("the task is already accepted; send it back to draft first")
        return
    if status.state is State.DRAFT:
        changed = "it has changed since it was checked" if status.changed_since else ""
        raise UsageError(
            f"the task has not been checked yet{f': {changed}' if changed else ''}",
            hint="The first reviewer sets --state checked, the second one --state accepted.",
        )
    if _same(by, status.reviewers[0]):
        raise UsageError(f"{by} checked this task; somebody else has to accept it")


def _same(one: str, other: str) -> bool:
    return " ".join(one.split()).casefold() == " ".join(other.split()).casefold()


def content_digest(
    record: Mapping[str, Any], notes: Mapping[str, Any], files: Mapping[str, str]
) -> str:
    """SHA-256 of everything that a reviewer checks.

    Args:
        record: the task's record in the definition of the suite.
        notes: the fields that the definition cannot hold.
        files: file names and the SHA-256 of their bytes.
    """
    document = [dict(record), dict(notes), dict(files)]
    text = json.dumps(document, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


KINDS = {
    "workbook": "judge.authoring.workbook_kind",
    "typed": "judge.authoring.typed_kind",
    "checklist": "judge.authoring.checklist_kind",
    "rules": "judge.authoring.rules_kind",
}
"""Name of a kind -> the module that defines it as ``KIND``."""

PROPOSED = "proposed"
"""Stands for an items file if items are to be proposed from the gold and the instruction."""

Record = dict[str, Any]
"""A task's record in the definition of its suite."""


@dataclass(frozen=True, slots=True)
class DraftTask:
    """A task of the suite, with its record, authors and reviews.

    Attributes:
        task: the task, as the judge grades it.
        record: its record in the definition of the suite.
        notes: the fields that the definition cannot hold.
        status: its state, authors and reviewers.
        digest: SHA-256 of its content.
    """

    task: Task
    record: Record
    notes: dict[str, Any]
    status: ReviewStatus
    digest: str


class DraftKind(abc.ABC):
    """A kind of suite that people can write; each subclass has what is specific to one kind.

    Attributes:
        name: the name that the kind is chosen by.
        definition: the file that defines the tasks.
        folder: the folder of the suite that holds a folder for each task.
        example: example options of ``judge dataset add-task``.
        marks: options that only this kind has, which select it in a suite of several kinds.
        noted: fields that the definition cannot hold; the log of the suite keeps them.
        wanted_for_review: the fields that must be filled before a task can be checked.
    """

    name: ClassVar[str]
    definition: ClassVar[str]
    folder: ClassVar[str]
    example: ClassVar[str]
    marks: ClassVar[tuple[str, ...]] = ()
    noted: ClassVar[tuple[str, ...]] = ()
    wanted_for_review: ClassVar[tuple[str, ...]] = ()

    # -- what an author gives ----------------------------------------------------------------------

    def proposals(self, options: Mapping[str, Any]) -> Proposals | None:  # noqa: ARG002  the usual
        """Proposals, from a task's files, that a person keeps or drops; None if there are none.

        The kept proposals are passed to :meth:`fields_of` as the option ``kept``.

        Raises:
            UsageError: files are missing, or do not belong together.
            WorkbookError: a file cannot be read.
        """
        return None

    @abc.abstractmethod
    def fields_of(self, options: Mapping[str, Any]) -> Any:
        """The fields of a task from an author's options; None for fields that were not given.

        Args:
            options: name of an option -> its value; None or missing if it was not given.

        Raises:
            UsageError: an option is not one of this kind, or its value does not fit.
        """

    @abc.abstractmethod
    def files_of(self, options: Mapping[str, Any]) -> Sequence[Any]:
        """The files of a task from the same options, in the form that :meth:`place` takes.

        Raises:
            UsageError: files are missing.
        """

    # -- a task ------------------------------------------------------------------------------------

    @abc.abstractmethod
    def record(self, task_id: int | str, given: Any, before: Mapping[str, Any] | None) -> Record:
        """The record of a task.

        Args:
            task_id: the id to write.
            given: the fields; those with the value None do not change.
            before: the record so far; None for a new task.

        Raises:
            UsageError: a field is missing or wrong; the message names every such field.
        """

    def notes(self, given: Any) -> dict[str, Any]:
        """The fields with a value for which the definition has no place."""
        return {name: value for name in self.noted if (value := getattr(given, name)) is not None}

    @abc.abstractmethod
    def place(self, record: Record, files: Sequence[Any], scratch: Path) -> Task:
        """Copies the files of a new task, and completes its record.

        Args:
            record: the record, whose paths are relative to the suite.
            files: the result of :meth:`files_of`.
            scratch: the folder that becomes the task's folder.

        Returns:
            The task, with the paths of the copied files.

        Raises:
            UsageError: a file is not of a kind that such a task has.
        """

    @abc.abstractmethod
    def changed(self, record: Record, before: Task, root: Path) -> Task:
        """The task of a changed record, with its existing files.

        Raises:
            UsageError: the record is wrong.
        """

    def check(self, task: Task) -> Sequence[SuiteFinding]:  # noqa: ARG002  as above
        """Finds faults of a task whose files can be read; a task with errors is refused."""
        return ()

    # -- the suite ---------------------------------------------------------------------------------

    @abc.abstractmethod
    def records(self, root: Path) -> list[Record]:
        """The records of all tasks.

        Raises:
            SuiteError: the definition is broken.
        """

    @abc.abstractmethod
    def text_of(self, root: Path, records: Sequence[Record]) -> str:
        """The definition with these tasks; everything else is as in the definition in ``root``."""

    @abc.abstractmethod
    def write(self, tasks: Sequence[DraftTask], source: Path, target: Path) -> int:
        """Writes tasks as a new suite; returns its number of test cases.

        Args:
            tasks: the tasks.
            source: the suite that they are from.
            target: an empty folder.
        """


def kind_names() -> tuple[str, ...]:
    """Names of all kinds, the default first."""
    return tuple(KINDS)


def kind_named(name: str) -> DraftKind:
    """The kind with a name.

    Raises:
        UsageError: there is no such kind.
    """
    if name not in KINDS:
        raise UsageError(
            f"there is no kind of suite {name!r}", hint=f"Kinds: {', '.join(kind_names())}."
        )
    kind: DraftKind = importlib.import_module(KINDS[name]).KIND
    return kind


def kind_of_folder(root: Path, options: Mapping[str, Any] | None = None) -> DraftKind:
    """Determines the kind of the suite in a folder, or of one of its tasks.

    Args:
        root: the folder.
        options: an author's options for a task. If the suite can have several kinds, they select
            the first kind to which one of the options belongs.

    Raises:
        SuiteError: it is not a suite that can be written to.
    """
    kinds = [kind_named(name) for name in KINDS]
    here = [kind for kind in kinds if (root / kind.definition).is_file()]
    marked = [row for row in here if any(name in row.marks for name in options or ())]
    if here:
        return (marked or here)[0]
    if not root.exists():
        raise SuiteError(
            f"there is no folder {root}",
            hint="give the folder of a suite of your own; `judge dataset new FOLDER` makes one",
        )
    names = " or ".join(dict.fromkeys(kind.definition for kind in kinds))
    raise SuiteError(
        f"{root} is not a suite that can be written to: it has no {names}",
        hint="`judge dataset new FOLDER` makes one; an archive has to be unpacked first",
    )


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that have a value."""
    return {name: value for name, value in options.items() if value not in (None, (), "")}


def refuse_others(given: Mapping[str, Any], allowed: Sequence[str], kind: str) -> None:
    """Refuses options that do not apply to a kind.

    Raises:
        UsageError: there are such options; all are named.
    """
    others = [f"--{name.replace('_', '-')}" for name in given if name not in allowed]
    if others:
        raise UsageError(
            f"{', '.join(others)}: not for a suite of the kind {kind}",
            hint="`judge dataset add-task --help` says what each kind has.",
        )


def check_verdicts(task: Task) -> Sequence[SuiteFinding]:
    """Checks a task as ``judge verify`` does, with the values that its files store.

    It is an error if a gold is not accepted, or if the untouched inputs of all cases are accepted.
    Values of formulas that are not stored in the file are not checked.
    """
    judge = CaseJudge(Recalculator((), mode="never"), GradingRules(get_profile("standard")))
    checks = [verify_case(task, case, judge) for case in task.cases]
    findings = [_refused(task, check) for check in checks if not check.gold_accepted]
    passed = [check for check in checks if check.untouched_accepted]
    everywhere = len(passed) == len(checks)
    findings.extend(
        SuiteFinding(
            Severity.ERROR if everywhere else Severity.WARNING,
            task.id,
            f"case {check.case}",
            "the untouched input is accepted: the task asks for nothing that it lacks",
        )
        for check in passed
    )
    return findings


def _refused(task: Task, check: CaseCheck) -> SuiteFinding:
    # NC: the checker needs a value that no engine has computed yet.
    if check.gold_problem.startswith(Verdict.NC):
        message = "formulas of the gold have no stored value; `judge verify` computes them"
        return SuiteFinding(Severity.WARNING, task.id, f"case {check.case}", message)
    message = f"the gold is not accepted as its own answer: {check.gold_problem}"
    return SuiteFinding(Severity.ERROR, task.id, f"case {check.case}", message)


NOTES = ("original_question", "source_url")
"""Fields that the format cannot hold: the origin of the question."""


class OwnKind(DraftKind):
    """Tasks in a ``suite.json``, with a folder of files for each; a suite may mix several kinds."""

    definition = DEFINITION
    folder = "files"
    noted = NOTES

    def records(self, root: Path) -> list[Record]:
        """The tasks in ``suite.json``."""
        records = _document(root).get("tasks")
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            raise SuiteError(f"{root / self.definition}: field 'tasks' must be a list of tasks")
        return records

    def text_of(self, root: Path, records: Sequence[Record]) -> str:
        """The document with these tasks; its tables are kept."""
        document: dict[str, Any] = {"format": FORMAT_NAME, "version": VERSION}
        if (root / self.definition).exists():
            document = _document(root)
        return dump_json({**document, "tasks": list(records)}, indent=2) + "\n"

    def changed(self, record: Record, before: Task, root: Path) -> Task:  # noqa: ARG002
        """The task that the suite would read from the record."""
        return task_of(record, root)

    def check(self, task: Task) -> Sequence[SuiteFinding]:
        """Checks, for workbooks, that golds are accepted and untouched inputs are not."""
        return check_verdicts(task) if task.answer is AnswerForm.WORKBOOK else ()

    def write(self, tasks: Sequence[DraftTask], source: Path, target: Path) -> int:
        """Writes the judge's own format, with files at the same paths as in the suite."""
        root = source.resolve()
        for task in tasks:
            for case in task.task.cases:
                for path in case.paths:
                    destination = target / _within(path, root)
                    destination.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, destination)
        text = self.text_of(source, [task.record for task in tasks])
        (target / self.definition).write_text(text, encoding="utf-8")
        return sum(len(task.task.cases) for task in tasks)


def task_of(record: Record, root: Path) -> Task:
    """The task of a record.

    Raises:
        UsageError: the record has faults.
    """
    task, faults = read_task(record, root)
    if task is None:
        raise UsageError(f"task {record.get('id')}: {'; '.join(faults)}")
    return task


def named_values(option: str, given: Sequence[str]) -> list[tuple[str, str]]:
    """Parses options of the form ``NAME=VALUE``.

    Raises:
        UsageError: an option does not have this form.
    """
    pairs = []
    for item in given:
        name, mark, value = item.partition("=")
        if not mark or not name.strip():
            raise UsageError(f"--{option} {item}: must be NAME=VALUE")
        pairs.append((name.strip(), value))
    return pairs


def _document(root: Path) -> dict[str, Any]:
    document = read_json(root / DEFINITION, SuiteError)
    if not isinstance(document, dict):
        raise SuiteError(f"{root / DEFINITION}: must be an object")
    return document


def _within(path: Path, root: Path) -> Path:
    """The path of a file in its suite; if the file is a link, the path of the link itself."""
    return (path.parent.resolve() / path.name).relative_to(root)
