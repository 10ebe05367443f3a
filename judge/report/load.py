"""Reads a run for a report: what is on record, the suite if it is available, changes by hand.

Nothing is run and nothing is judged. ``report.json`` says which submissions and cases count: a
record of cases.jsonl whose case it leaves out belongs to other code or other rules. Where there is
no report yet (a run that is still in progress, or was interrupted), every record counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from judge.core.conversation import NOT_ASKED, Asking, asking_of
from judge.core.records.reports import ReportOnRecord
from judge.core.records.runs import RunDocument, SubmissionRecord
from judge.core.task import Task
from judge.core.verdict import CaseResult
from judge.errors import JudgeError, StoreError, SuiteError, UsageError
from judge.files.paths import GivenPath, as_path
from judge.grading.case_records import case_record, case_records, result_of_record
from judge.grading.overrides import Overrides, read_overrides
from judge.grading.store import (
    ATTEMPTS_FILE,
    CASES_FILE,
    REPORT_FILE,
    SUBMISSIONS_FILE,
    RunDirectory,
    WatchedFolder,
)
from judge.report.episode_model import EpisodeEntry
from judge.report.episodes import read_entries
from judge.report.large import is_large, without_details, without_texts
from judge.report.set_aside import suspicions_of_run
from judge.suites import Suite, load_suite
from judge.suites.corrections import as_recorded
from judge.suspects.standing import (
    Suspicions,
    fit_to_suite,
    kept_suspicions,
    read_suspicions,
)


@dataclass(frozen=True, slots=True)
class LoadedSubmission:
    """One submission of a run with what is on record of it.

    Attributes:
        task_id: the task's id as text.
        sample: 0-based number among several solutions of the same task.
        instruction_type: in the benchmark's words.
        task: the task; None if the suite is not available.
        cases: numbers of the task's cases, in order.
        record: its record of submissions.jsonl; None for finished outputs.
        asking: what that says of asking the chat model.
        results: case number -> what counts, changes by hand in place; cases that were not run
            are not in it.
        automatic: the same as the judge said it.
        episodes: case number -> the desktop episode that left its output, without its turns.
    """

    task_id: str
    sample: int
    instruction_type: str
    task: Task | None
    cases: tuple[int, ...]
    record: SubmissionRecord | None
    asking: Asking
    results: Mapping[int, CaseResult]
    automatic: Mapping[int, CaseResult]
    episodes: Mapping[int, EpisodeEntry] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """What makes the submission distinct within a run: (task id, sample)."""
        return (self.task_id, self.sample)


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run as it is on disk.

    Attributes:
        path: its results directory.
        run: the document of run.json; empty where there is none yet.
        suite: the suite; None if it is not available or no longer the same.
        submissions: those that count, in suite order.
        overrides: changes by hand.
        tasks_without_submission: tasks of the suite that the run holds no solution of.
        notes: what a reader has to know.
        suspicions: golds that may be at fault, if the run keeps suspects or some were given.
        is_large: whether details of single cases were left out.
        submitted: the (task id, sample) of everything in submissions.jsonl.
        watched: whether directory and records are still those that were read.
    """

    path: Path
    run: RunDocument
    suite: Suite | None
    submissions: tuple[LoadedSubmission, ...]
    overrides: Overrides
    tasks_without_submission: int
    notes: tuple[str, ...]
    suspicions: Suspicions | None = None
    is_large: bool = False
    submitted: frozenset[tuple[str, int]] = frozenset()
    watched: WatchedFolder | None = None

    def check_intact(self) -> None:
        """Checks that the directory and its records are still those that were read.

        Raises:
            StoreError: they were removed, replaced or cut meanwhile.
        """
        if self.watched is not None:
            self.watched.check()

    @property
    def name(self) -> str:
        """Name of the results directory."""
        return self.path.resolve().name

    def submission(self, task_id: str, sample: int = 0) -> LoadedSubmission:
        """One submission.

        Raises:
            UsageError: the run holds none of that task and sample.
        """
        for each in self.submissions:
            if each.key == (task_id, sample):
                return each
        raise UsageError(f"{self.path}: holds no result of task {task_id}, sample {sample}")


def load_run(
    path: Path | str,
    dataset: str | Path | None = None,
    suspects: GivenPath | None = None,
    *,
    details: bool = True,
    published: bool = False,
) -> LoadedRun:
    """Reads a run.

    Args:
        path: the results directory.
        dataset: the suite; None for the one that run.json remembers.
        suspects: a suspects.json, in place of the suspects that the run keeps.
        details: whether conversations and single differences are needed even if the run has more
            cases than a report shows (:mod:`judge.report.large`).
        published: whether the suite is wanted as published, as judging needs it; otherwise
            it has the corrections and the options of the comparison that run.json names.

    Raises:
        StoreError: the directory holds no run, or records that no judge wrote.
        SuiteError: the suite that was named is not the one that the run was made with.
        UsageError: there is no such suite, or the suspects are of another one.
    """
    path = Path(path)
    if not RunDirectory.is_run(path):
        raise StoreError(
            f"{path}: holds no run",
            hint="Give a results directory, as `judge score` writes it: with a run.json.",
        )
    watched = WatchedFolder(path)
    watched.hold()
    watched.note(CASES_FILE)
    with RunDirectory(path) as store:
        run = store.read_run() or RunDocument()
        run.pop("schema_version", None)
        report = _report_on_record(store)
        suite, notes = _suite(run, dataset)
        if suite is not None and not published:
            suite = as_recorded(suite, run)
        large = not details and is_large(store)
        records = _submission_records(store, SUBMISSIONS_FILE, large=large)
        attempts = records or _submission_records(store, ATTEMPTS_FILE, large=large)
        results = _results(store, large=large)
        overrides = read_overrides(store)
        suspicions, left_out = _suspicions(store, run, suite, as_path(suspects))
        notes = (*notes, *left_out)
    if report is not None:
        entries = list(_reported(report, suite, results))
        notes = (*notes, *_differs_from_records(report, entries, results, overrides))
    else:
        entries = list(_on_record(suite, records, results))
        notes = (*notes, "the run has no report.json yet: every verdict on record is shown")
    if any(not found for _, _, _, found in entries):
        raise StoreError(f"{path / REPORT_FILE}: names a solution that has no cases")
    if not entries:
        raise StoreError(
            f"{path}: no case has been judged yet",
            hint=f"`judge score {path}` judges what is there.",
        )
    episodes, unread = read_entries(
        path, ((task_id, sample, case) for task_id, sample, _, found in entries for case in found)
    )
    notes = (*notes, *unread)
    watched.check()
    submissions = tuple(
        LoadedSubmission(
            task_id=task_id,
            sample=sample,
            instruction_type=kind,
            task=suite.task(task_id) if suite is not None else None,
            cases=tuple(found),
            record=records.get((task_id, sample)),
            asking=_asking(attempts.get((task_id, sample))),
            results=_with_overrides(found, overrides),
            automatic={number: each for number, each in found.items() if each is not None},
            episodes={
                case: episodes[task_id, sample, case]
                for case in found
                if (task_id, sample, case) in episodes
            },
        )
        for task_id, sample, kind, found in entries
    )
    return LoadedRun(
        path=path,
        run=run,
        suite=suite,
        submissions=submissions,
        overrides=overrides,
        tasks_without_submission=_without(report, suite, submissions),
        notes=notes,
        suspicions=suspicions,
        is_large=large,
        submitted=frozenset(records),
        watched=watched,
    )


def _results(store: RunDirectory, *, large: bool) -> dict[tuple[str, int], dict[int, CaseResult]]:
    """The results on record by (task id, sample), then by case; the last of each case counts."""
    results: dict[tuple[str, int], dict[int, CaseResult]] = {}
    if not large:
        for (task_id, sample, case), record in case_records(store).items():
            results.setdefault((task_id, sample), {})[case] = result_of_record(record)
        return results
    # One record at a time: a later one of the same case takes the place of the earlier.
    for line in store.read_records(CASES_FILE):
        result = without_details(result_of_record(case_record(line)))
        results.setdefault((result.task_id, result.sample), {})[result.case] = result
    return results


def _suspicions(
    store: RunDirectory, run: RunDocument, suite: Suite | None, given: Path | None
) -> tuple[Suspicions | None, tuple[str, ...]]:
    """The suspects of a run, and a note if some of those that were given are of other files."""
    if given is None:
        return suspicions_of_run(kept_suspicions(store), run), ()
    if suite is None:
        raise UsageError(
            f"{given}: whether these are suspects of the run's suite is not known without it",
            hint="Give --dataset SUITE.",
        )
    every = read_suspicions(given)
    fitting = fit_to_suite(every, suite, str(given))
    left_out = len(every.audit.suspects) - len(fitting.audit.suspects)
    note = f"{left_out} suspects of {given} are of other files, and are left out"
    return suspicions_of_run(fitting, run), (note,) if left_out else ()


def _asking(record: SubmissionRecord | None) -> Asking:
    return NOT_ASKED if record is None else asking_of(record)


def _with_overrides(
    found: Mapping[int, CaseResult | None], overrides: Overrides
) -> dict[int, CaseResult]:
    present = [each for each in found.values() if each is not None]
    return {each.case: each for each in overrides.apply(present)}


def _report_on_record(store: RunDirectory) -> ReportOnRecord | None:
    report = store.read_document(REPORT_FILE)
    return None if report is None else store.checked(REPORT_FILE, report, ReportOnRecord)


def _submission_records(
    store: RunDirectory, name: str, *, large: bool
) -> dict[tuple[str, int], SubmissionRecord]:
    """The records of submissions.jsonl, or of attempts.jsonl, by (task id, sample)."""
    found = (store.checked(name, record, SubmissionRecord) for record in store.read_records(name))
    kept = map(without_texts, found) if large else found
    return {(str(each["id"]), each.get("sample") or 0): each for each in kept}


_Results = Mapping[tuple[str, int], Mapping[int, CaseResult]]
_Entry = tuple[str, int, str, dict[int, CaseResult | None]]
"""Task id, sample, instruction type, and case number -> result."""


def _reported(report: ReportOnRecord, suite: Suite | None, results: _Results) -> Iterator[_Entry]:
    """What the report counts, with the records that belong to it."""
    for entry in report["tasks"]:
        task_id, sample, codes = str(entry["id"]), entry["sample"], entry["test_case_results"]
        known = results.get((task_id, sample), {})
        numbers = _numbers(task_id, suite, known, len(codes))
        found = {
            number: None if code is None else known.get(number)
            for number, code in zip(numbers, codes, strict=False)
        }
        yield task_id, sample, entry["instruction_type"], found


def _differs_from_records(
    report: ReportOnRecord, entries: Sequence[_Entry], results: _Results, overrides: Overrides
) -> Iterator[str]:
    """Notes on what is on record and not, or not so, in report.json."""
    changed = 0
    for entry, (task_id, sample, _, found) in zip(report["tasks"], entries, strict=True):
        for code, (case, result) in zip(entry["test_case_results"], found.items(), strict=False):
            manual = overrides.applied.get((task_id, sample, case))
            shown = None if result is None else result.verdict.value
            changed += code not in {shown, None if manual is None else manual.verdict}
    if changed:
        yield (
            f"{changed} verdicts on record are later than report.json, and are shown: the run is "
            "still in progress or was interrupted (`judge score` makes the report again)"
        )
    left_out = results.keys() - {(task_id, sample) for task_id, sample, _, _ in entries}
    if left_out:
        yield (
            f"{len(left_out)} solutions with verdicts on record are left out, as in report.json: "
            "they were judged by other rules, or since"
        )


def _on_record(
    suite: Suite | None, records: Mapping[tuple[str, int], SubmissionRecord], results: _Results
) -> Iterator[_Entry]:
    """Everything that was judged, where no report says what counts."""
    order = {} if suite is None else {task.id: place for place, task in enumerate(suite.tasks)}
    for task_id, sample in sorted(results, key=lambda key: (order.get(key[0], 0), key)):
        known = results[task_id, sample]
        record = records.get((task_id, sample))
        kind = None if record is None else record.get("instruction_type")
        if suite is not None:
            kind = suite.task(task_id).kind
        numbers = _numbers(task_id, suite, known, len(known))
        yield task_id, sample, kind or "unknown", {number: known.get(number) for number in numbers}


def _numbers(
    task_id: str, suite: Suite | None, known: Mapping[int, CaseResult], count: int
) -> Sequence[int]:
    if suite is not None:
        return [case.number for case in suite.task(task_id).cases]
    return sorted(known) if len(known) == count else range(1, count + 1)


def _suite(run: RunDocument, dataset: str | Path | None) -> tuple[Suite | None, tuple[str, ...]]:
    remembered = run.get("suite")
    name = dataset or (remembered.get("source") if remembered is not None else None)
    if name is None:
        return None, ("the run does not say which suite it is for: give --dataset",)
    try:
        suite = load_suite(name)
        same = remembered is None or remembered.get("digest") == suite.digest
    except JudgeError as error:
        if dataset is not None:
            raise
        return None, (_not_available(error.message),)
    if same:
        return suite, ()
    message = f"{suite.root} no longer holds what this run was made with"
    if dataset is not None:
        raise SuiteError(message, hint="Give the suite that the run was made with.")
    return None, (_not_available(message),)


def _not_available(why: str) -> str:
    return f"the suite is not available, so what needs its files is missing here ({why})"


def _without(
    report: ReportOnRecord | None, suite: Suite | None, submissions: Sequence[LoadedSubmission]
) -> int:
    if report is not None:
        return report.get("overall", {}).get("tasks_without_submission", 0)
    if suite is None:
        return 0
    return len(suite.tasks) - len({submission.task_id for submission in submissions})
