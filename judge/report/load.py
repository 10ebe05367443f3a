"""Reads a run for a report: its records, its suite if available, and manual changes of verdicts.

Nothing is run and nothing is judged. ``report.json`` says which submissions and cases count; other
code or other rules made the other records of ``cases.jsonl``. As long as there is no report,
because the run is in progress or was interrupted, every record counts.

To fit a run with very many cases into memory, only the fields that a report counts are loaded.
Conversations, causes and individual differences stay in ``cases.jsonl`` and ``submissions.jsonl``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from judge.core.records.cases import CaseComparison, CaseRun
from judge.core.records.reports import ReportOnRecord
from judge.core.records.runs import (
    NO_USAGE,
    RecordedUsage,
    RunDocument,
    SubmissionRecord,
    recorded_usage,
)
from judge.core.score import SubmissionScore
from judge.core.task import Task
from judge.core.verdict import CaseResult
from judge.errors import JudgeError, StoreError, SuiteError, UsageError
from judge.files.documents import opened_regular
from judge.files.json_lines import MAX_LINES_BYTES
from judge.files.paths import GivenPath, as_path
from judge.grading.case_records import CaseKey, case_record, case_records, result_of_record
from judge.grading.marks import MarkRecord, read_marks
from judge.grading.overrides import Overrides, read_overrides
from judge.grading.store import (
    ATTEMPTS_FILE,
    CASES_FILE,
    REPORT_FILE,
    SUBMISSIONS_FILE,
    RunDirectory,
    WatchedFolder,
)
from judge.report.desktop.episodes import EpisodeEntry, read_entries
from judge.report.set_aside import suspicions_of_run
from judge.report.tally import TalliedTask, score_cases
from judge.suites import Suite, load_suite
from judge.suites.corrections import as_recorded
from judge.suspects.decisions import (
    Suspicions,
    fit_to_suite,
    kept_suspicions,
    read_suspicions,
)
from judge.tools.episodes import has_tool_episodes

MAX_SHOWN_CASES = 100_000
"""A report on more cases than this has no entries, because so many would take about a gigabyte."""

MAX_EXCLUSIONS = 10_000
"""Largest number of unscored cases that the report of a large run names."""

LARGE_NOTE = (
    "the run has {cases:,} cases; a report lists and shows single cases only up to {most:,}. The "
    "numbers here cover all cases; the single cases are in cases.jsonl and report.json"
)

_OF_RUN = ("cpu_s", "wall_s", "peak_memory_bytes", "output_bytes")
_OF_COMPARISON = (
    "equal", "official_equal", "cells", "difference_counts", "shares", "kept", "formula_asked",
    "collateral", "dynamic",
)  # fmt: skip
_OF_SUBMISSION = (
    "id", "sample", "instruction_type", "calls", "model", "setting", "rounds", "tokens", "cost",
    "seconds", "truncated", "stands_alone",
)  # fmt: skip
_NO_RUN, _NO_COMPARISON = CaseRun(), CaseComparison()


def is_large(store: RunDirectory) -> bool:
    """Whether a run has too many records to show each of them as a case.

    Raises:
        StoreError: cases.jsonl is too long, or is not a regular file.
    """
    lines = 0
    with opened_regular(store.path / CASES_FILE, StoreError, MAX_LINES_BYTES) as file:
        while file is not None and (piece := file.read(1 << 20)):
            lines += piece.count(b"\n")
            if lines > MAX_SHOWN_CASES:
                return True
    return False


def without_details(result: CaseResult) -> CaseResult:
    """The fields of a result that the numbers of a report depend on."""
    run = {name: result.run[name] for name in _OF_RUN if result.run.get(name)}  # type: ignore[literal-required]
    comparison = {
        name: result.comparison[name]  # type: ignore[literal-required]
        for name in _OF_COMPARISON
        if name in result.comparison
    }
    return replace(
        result,
        cause="" if result.verdict.is_scored else result.cause,
        run=cast("CaseRun", run) if run else _NO_RUN,
        comparison=cast("CaseComparison", comparison) if comparison else _NO_COMPARISON,
        timings_s={name: value for name, value in result.timings_s.items() if name != "run"},
    )


def without_texts(record: SubmissionRecord) -> SubmissionRecord:
    """The fields of a submission that the numbers of a report depend on."""
    fields = {name: value for name, value in record.items() if name in _OF_SUBMISSION}
    return cast("SubmissionRecord", fields)


@dataclass(frozen=True, slots=True)
class LoadedSubmission:
    """One submission of a run with its records.

    Attributes:
        task_id: the task's id as text.
        sample: 0-based number among several solutions of the same task.
        instruction_type: the instruction type, in the benchmark's words.
        task: the task; None if the suite is not available.
        cases: numbers of the task's cases, in order.
        record: its record of submissions.jsonl; None for finished outputs.
        usage: the recorded usage of the requests to the chat model.
        results: case number -> the result that counts, with changes by hand; cases that were not
            run are left out.
        automatic: case number -> the judge's own result.
        episodes: case number -> the desktop episode that made the output, without its turns.
    """

    task_id: str
    sample: int
    instruction_type: str
    task: Task | None
    cases: tuple[int, ...]
    record: SubmissionRecord | None
    usage: RecordedUsage
    results: Mapping[int, CaseResult]
    automatic: Mapping[int, CaseResult]
    episodes: Mapping[int, EpisodeEntry] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, int]:
        """Key that is unique to the submission within a run: (task id, sample)."""
        return (self.task_id, self.sample)

    @property
    def tallied(self) -> TalliedTask:
        """The parts of the task that the numbers of the run depend on."""
        written_id = self.task_id if self.task is None else self.task.written_id
        groups = {} if self.task is None else self.task.groups
        return TalliedTask(self.task_id, written_id, self.instruction_type, self.cases, groups)

    def score(self) -> SubmissionScore:
        """The scores of the submission, with manual changes of verdicts."""
        return score_cases(self.task_id, self.sample, self.cases, self.results)


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run that was read from disk.

    Attributes:
        path: its results directory.
        run: the document of run.json; empty if it was not written yet.
        suite: the suite; None if it is not available or no longer the same.
        submissions: the submissions that count, in suite order.
        overrides: changes by hand.
        tasks_without_submission: how many tasks of the suite have no solution in the run.
        notes: notes that a reader of the report needs.
        suspicions: golds that may be at fault, if the run keeps suspects or some were given.
        is_large: whether details of single cases were left out.
        submitted: the (task id, sample) of every record in submissions.jsonl.
        watched: checks that the directory and its records are still the ones that were read.
        marks: marks on checklist items by models, people and programs.
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
    marks: tuple[MarkRecord, ...] = ()

    def check_intact(self) -> None:
        """Checks that the directory and its records are still the ones that were read.

        Raises:
            StoreError: they have since been removed, replaced or truncated.
        """
        if self.watched is not None:
            self.watched.check()

    @property
    def name(self) -> str:
        """Name of the results directory."""
        return self.path.resolve().name

    def submission(self, task_id: str, sample: int = 0) -> LoadedSubmission:
        """Finds a submission.

        Raises:
            UsageError: the run has no submission for that task and sample.
        """
        for submission in self.submissions:
            if submission.key == (task_id, sample):
                return submission
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
        dataset: the suite; None for the one that run.json names.
        suspects: a suspects.json, which replaces the suspects that the run keeps.
        details: whether to load conversations and single differences even if the run has more
            cases than a report shows.
        published: whether to load the suite as published, as judging requires. Otherwise, the
            corrections and the options of the comparison that run.json names are applied to it.

    Raises:
        StoreError: the directory does not hold a run, or has records that a judge did not write.
        SuiteError: the given suite is not the one that the run was made with.
        UsageError: there is no such suite, or the suspects belong to another one.
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
        records = _read(store, dataset, as_path(suspects), details=details, published=published)
    entries, notes = _entries(path, records)
    cases = ((entry.task_id, entry.sample, case) for entry in entries for case in entry.cases)
    # Episodes with tools have separate entries.
    of_tools = has_tool_episodes(records.run.get("setting"))
    episodes, unread = read_entries(path, () if of_tools else cases)
    watched.check()
    return LoadedRun(
        path=path,
        run=records.run,
        suite=records.suite,
        submissions=tuple(_submission(entry, records, episodes) for entry in entries),
        overrides=records.overrides,
        tasks_without_submission=_without_submission(records, entries),
        notes=(*records.notes, *notes, *unread),
        suspicions=records.suspicions,
        is_large=records.is_large,
        submitted=frozenset(records.submissions),
        watched=watched,
        marks=records.marks,
    )


# -- records --------------------------------------------------------------------------------------

_SubmissionKey = tuple[str, int]
"""Task id and sample."""


@dataclass(frozen=True, slots=True)
class _Records:
    """The contents of a results directory, and the suite that was judged.

    Attributes:
        run: the document of run.json.
        report: the document of report.json; None while there is none.
        suite: the suite; None if it is not available.
        submissions: the records of submissions.jsonl.
        attempts: the same records; for a run of finished outputs, those of attempts.jsonl.
        results: the results of cases.jsonl by submission and case; each case's last result counts.
        overrides: changes by hand.
        suspicions: golds that may be at fault.
        is_large: whether details of single cases were left out.
        notes: notes that a reader of the report needs.
        marks: the marks that count.
    """

    run: RunDocument
    report: ReportOnRecord | None
    suite: Suite | None
    submissions: Mapping[_SubmissionKey, SubmissionRecord]
    attempts: Mapping[_SubmissionKey, SubmissionRecord]
    results: Mapping[_SubmissionKey, Mapping[int, CaseResult]]
    overrides: Overrides
    suspicions: Suspicions | None
    is_large: bool
    notes: tuple[str, ...]
    marks: tuple[MarkRecord, ...]


def _read(
    store: RunDirectory,
    dataset: str | Path | None,
    suspects: Path | None,
    *,
    details: bool,
    published: bool,
) -> _Records:
    """Reads the contents of a results directory."""
    run = store.read_run() or RunDocument()
    run.pop("schema_version", None)
    document = store.read_document(REPORT_FILE)
    suite, notes = _suite(run, dataset)
    if suite is not None and not published:
        suite = as_recorded(suite, run)
    large = not details and is_large(store)
    submissions = _submission_records(store, SUBMISSIONS_FILE, large=large)
    suspicions, left_out = _suspicions(store, run, suite, suspects)
    return _Records(
        run=run,
        report=None if document is None else store.checked(REPORT_FILE, document, ReportOnRecord),
        suite=suite,
        submissions=submissions,
        attempts=submissions or _submission_records(store, ATTEMPTS_FILE, large=large),
        results=_results(store, large=large),
        overrides=read_overrides(store),
        suspicions=suspicions,
        is_large=large,
        notes=(*notes, *left_out),
        marks=tuple(read_marks(store)),
    )


def _results(store: RunDirectory, *, large: bool) -> dict[tuple[str, int], dict[int, CaseResult]]:
    """The results on record by (task id, sample), then by case; the last of each case counts."""
    results: dict[tuple[str, int], dict[int, CaseResult]] = {}
    if not large:
        for (task_id, sample, case), record in case_records(store).items():
            results.setdefault((task_id, sample), {})[case] = result_of_record(record)
        return results
    # One record at a time: a later record of a case replaces an earlier one.
    for line in store.read_records(CASES_FILE):
        result = without_details(result_of_record(case_record(line)))
        results.setdefault((result.task_id, result.sample), {})[result.case] = result
    return results


def _suspicions(
    store: RunDirectory, run: RunDocument, suite: Suite | None, given: Path | None
) -> tuple[Suspicions | None, tuple[str, ...]]:
    """The suspects of a run, and a note if some of the given suspects are about other files."""
    if given is None:
        suspicions = kept_suspicions(store)
        return None if suspicions is None else suspicions_of_run(suspicions, run), ()
    if suite is None:
        raise UsageError(
            f"{given}: without the run's suite, it is not known whether these are suspects of it",
            hint="Give --dataset SUITE.",
        )
    every = read_suspicions(given)
    fitting = fit_to_suite(every, suite, str(given))
    left_out = len(every.audit.suspects) - len(fitting.audit.suspects)
    note = f"{left_out} suspects of {given} are about other files, and are left out"
    return suspicions_of_run(fitting, run), (note,) if left_out else ()


def _submission_records(
    store: RunDirectory, name: str, *, large: bool
) -> dict[tuple[str, int], SubmissionRecord]:
    """The records of submissions.jsonl, or of attempts.jsonl, by (task id, sample)."""
    records = (store.checked(name, record, SubmissionRecord) for record in store.read_records(name))
    lean_records = map(without_texts, records) if large else records
    return {(str(record["id"]), record.get("sample") or 0): record for record in lean_records}


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
    message = f"{suite.root} has changed since this run was made"
    if dataset is not None:
        raise SuiteError(message, hint="Give the suite that the run was made with.")
    return None, (_not_available(message),)


def _not_available(why: str) -> str:
    return f"the suite is not available, so anything that needs its files is missing here ({why})"


# -- what counts ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Entry:
    """A submission that counts: its task and sample, instruction type, and results by case."""

    task_id: str
    sample: int
    kind: str
    cases: Mapping[int, CaseResult | None]


def _entries(path: Path, records: _Records) -> tuple[list[_Entry], list[str]]:
    """The submissions that count, and notes on how they were chosen.

    Raises:
        StoreError: no submission counts, or report.json names one that has no cases.
    """
    if records.report is None:
        entries = list(_all_on_record(records))
        notes = ["the run has no report.json yet: every verdict on record is shown"]
    else:
        entries = list(_reported(records.report, records))
        notes = list(_differences_from_report(records.report, entries, records))
    if any(not entry.cases for entry in entries):
        raise StoreError(f"{path / REPORT_FILE}: names a solution that has no cases")
    if not entries:
        raise StoreError(
            f"{path}: no case has been judged yet",
            hint=f"`judge score {path}` judges the solutions that it has.",
        )
    return entries, notes


def _reported(report: ReportOnRecord, records: _Records) -> Iterator[_Entry]:
    """The submissions of report.json, with the results that belong to them."""
    for task in report["tasks"]:
        task_id, sample, codes = str(task["id"]), task["sample"], task["test_case_results"]
        results = records.results.get((task_id, sample), {})
        numbers = _case_numbers(task_id, records.suite, results, len(codes))
        cases = {
            number: None if code is None else results.get(number)
            for number, code in zip(numbers, codes, strict=False)
        }
        yield _Entry(task_id, sample, task["instruction_type"], cases)


def _differences_from_report(
    report: ReportOnRecord, entries: Sequence[_Entry], records: _Records
) -> Iterator[str]:
    """Notes on recorded verdicts that are missing from report.json, or differ from those in it."""
    changed = 0
    for task, entry in zip(report["tasks"], entries, strict=True):
        for code, (case, result) in zip(
            task["test_case_results"], entry.cases.items(), strict=False
        ):
            manual = records.overrides.applied.get((entry.task_id, entry.sample, case))
            automatic = None if result is None else result.verdict.value
            changed += code not in {automatic, None if manual is None else manual.verdict}
    if changed:
        yield (
            f"{changed} verdicts on record are later than report.json, and are shown: the run is "
            "still in progress or was interrupted (`judge score` regenerates the report)"
        )
    left_out = records.results.keys() - {(entry.task_id, entry.sample) for entry in entries}
    if left_out:
        yield (
            f"{len(left_out)} solutions with verdicts on record are left out, as in report.json: "
            "they were judged by other rules, or after the report was made"
        )


def _all_on_record(records: _Records) -> Iterator[_Entry]:
    """All submissions that have a result."""
    suite = records.suite
    order = {} if suite is None else {task.id: index for index, task in enumerate(suite.tasks)}
    for task_id, sample in sorted(records.results, key=lambda key: (order.get(key[0], 0), key)):
        results = records.results[task_id, sample]
        record = records.submissions.get((task_id, sample))
        kind = None if record is None else record.get("instruction_type")
        if suite is not None:
            kind = suite.task(task_id).kind
        numbers = _case_numbers(task_id, suite, results, len(results))
        cases = {number: results.get(number) for number in numbers}
        yield _Entry(task_id, sample, kind or "unknown", cases)


def _case_numbers(
    task_id: str, suite: Suite | None, results: Mapping[int, CaseResult], count: int
) -> Sequence[int]:
    """The numbers of a task's cases; without the suite, of the judged cases, or 1 to ``count``."""
    if suite is not None:
        return [case.number for case in suite.task(task_id).cases]
    return sorted(results) if len(results) == count else range(1, count + 1)


def _submission(
    entry: _Entry, records: _Records, episodes: Mapping[CaseKey, EpisodeEntry]
) -> LoadedSubmission:
    """A submission with all of its records."""
    key = entry.task_id, entry.sample
    attempt = records.attempts.get(key)
    automatic = {case: result for case, result in entry.cases.items() if result is not None}
    return LoadedSubmission(
        task_id=entry.task_id,
        sample=entry.sample,
        instruction_type=entry.kind,
        task=None if records.suite is None else records.suite.task(entry.task_id),
        cases=tuple(entry.cases),
        record=records.submissions.get(key),
        usage=NO_USAGE if attempt is None else recorded_usage(attempt),
        results={result.case: result for result in records.overrides.apply(automatic.values())},
        automatic=automatic,
        episodes={case: episodes[*key, case] for case in entry.cases if (*key, case) in episodes},
    )


def _without_submission(records: _Records, entries: Sequence[_Entry]) -> int:
    """How many tasks of the suite have no solution in the run."""
    if records.report is not None:
        return records.report.get("overall", {}).get("tasks_without_submission", 0)
    if records.suite is None:
        return 0
    return len(records.suite.tasks) - len({entry.task_id for entry in entries})
