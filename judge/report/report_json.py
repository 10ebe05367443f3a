"""``report.json``: the scores of a run, derived from its records alone.

It does not contain anything that the judge measured (no seconds, no bytes), so two runs that judged
the same submissions give the same report, even if they were interrupted. The usage of the chat
model is included, because it was recorded with the submissions.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, cast, overload

from judge.core.records.reports import (
    ChangeReport,
    ExcludedCase,
    FurtherReports,
    GroupReport,
    OfSuite,
    RepeatedReport,
    ReportDocument,
    ReportHead,
    ScoresWithout,
    SuiteScores,
    SuspectsReport,
    TaskReport,
)
from judge.core.records.runs import RecordedUsage, RunDocument
from judge.core.score import SubmissionScore, best_samples
from judge.core.task import Task
from judge.core.verdict import CaseResult
from judge.errors import StoreError
from judge.files.documents import dump_json, parse_json
from judge.files.json_lines import LinesAt
from judge.grading.overrides import NO_OVERRIDES, ManualVerdict, Overrides
from judge.grading.store import REPORT_FILE, RunDirectory
from judge.report.counts import shares_of_tallies
from judge.report.identity import departures
from judge.report.tally import (
    RunTally,
    TalliedTask,
    TaskGroup,
    TaskTally,
    disagrees_with_published,
    score_cases,
)

if TYPE_CHECKING:
    from judge.grading.marks import MarkRecord
    from judge.report.repeats import RepeatedRuns
    from judge.report.set_aside import LevelTally, SuspectsTally
    from judge.suspects.decisions import Suspicions

REPORT_SCHEMA_VERSION = 1

_IDENTITY_FIELDS = (
    "suite",
    "model",
    "setting",
    "profile",
    "style",
    "checker",
    "best_of",
    "values",
    "recalc",
    "limits",
    "sandbox",
    "judge_version",
)


def build_report(
    run: RunDocument,
    graded: Sequence[tuple[Task, int]],
    results: Iterable[CaseResult],
    *,
    without_submission: int = 0,
    suite_tasks: Sequence[Task] = (),
    overrides: Overrides = NO_OVERRIDES,
    usages: Iterable[RecordedUsage] = (),
    suspicions: Suspicions | None = None,
    marks: Sequence[MarkRecord] = (),
) -> ReportDocument:
    """Builds the document that is written to ``report.json``.

    Args:
        run: the run's description, as in ``run.json``; if it has ``best_of``, the best sample of
            each task counts instead of the mean of all.
        graded: every task with the sample number of a submission to report on, in suite order.
        results: results on record; those of other submissions are left out.
        without_submission: how many tasks of the suite have no submission in the run.
        suite_tasks: all tasks of the suite, for scores in which tasks without a submission count as
            not accepted.
        overrides: verdicts that a person changed; they count instead of the automatic ones.
        usages: the recorded usage of the chat model for the reported submissions.
        suspicions: golds that may be at fault; the scores are also given without their cases.
        marks: marks on checklist items by models, people and programs.

    Returns:
        A JSON object: ``schema_version``, ``run``, ``overall`` and ``by_instruction_type`` (each
        with ``tasks``, ``cases``, ``soft_restriction``, ``hard_restriction`` from 0 to 1,
        ``verdicts``, ``excluded``, ``including_excluded``), ``tasks[]``; ``departures`` from the
        suite as published, if any; ``of_suite`` if tasks lack a submission, ``repeated_runs``
        (with pass@k) if tasks have several samples, ``scope`` if an option requests it,
        ``usage`` if the chat model's usage is on record, ``suspects`` if there are suspicions,
        ``certified`` if readers graded the suite's golds.
    """
    by_submission: dict[tuple[str, int], dict[int, CaseResult]] = defaultdict(dict)
    for result in overrides.apply(results):
        by_submission[result.task_id, result.sample][result.case] = result
    scored: list[tuple[Task, SubmissionScore, list[CaseResult]]] = []
    for task, sample in graded:
        numbers = [case.number for case in task.cases]
        by_case = by_submission[task.id, sample]
        present = [by_case[number] for number in numbers if number in by_case]
        scored.append((task, score_cases(task.id, sample, numbers, by_case), present))
    best = best_samples(score for _, score, _ in scored) if run.get("best_of") else None
    builder = ReportBuilder(run, overrides=overrides, suspicions=suspicions, marks=marks)
    entries = [
        builder.add(task, score, present, counts=best is None or (task.id, score.sample) in best)
        for task, score, present in scored
    ]
    for usage in usages:
        builder.add_usage(usage)
    head = builder.head(without_submission=without_submission, suite_tasks=suite_tasks)
    return {**head, "tasks": entries}


class ReportBuilder:
    """Builds report.json submission by submission, so that its results need not fit into memory.

    Args:
        run: the run's description, as in ``run.json``.
        overrides: verdicts that a person changed; the results that are added already have them.
        suspicions: golds that may be at fault; the scores are also given without their cases.
        marks: marks on checklist items by models, people and programs.
    """

    def __init__(
        self,
        run: RunDocument,
        *,
        overrides: Overrides = NO_OVERRIDES,
        suspicions: Suspicions | None = None,
        marks: Sequence[MarkRecord] = (),
    ) -> None:
        self._run = run
        self._overrides = overrides
        self._tally = RunTally(overrides, _settled(suspicions, run), run, marks)
        self._tallied: dict[str, TalliedTask] = {}
        self._excluded: dict[str, _Excluded] = {}

    def add(
        self,
        task: Task,
        score: SubmissionScore,
        present: Sequence[CaseResult],
        *,
        counts: bool = True,
    ) -> TaskReport:
        """Adds a submission.

        Args:
            task: the task.
            score: the scores of the submission.
            present: the results on record of its cases, in case order.
            counts: whether it is in the scores; of several samples, perhaps only the best one is.

        Returns:
            Its entry in the report.
        """
        tallied = self._tallied.get(task.id)
        if tallied is None:
            tallied = self._tallied[task.id] = TalliedTask.of(task)
        self._tally.add(tallied, score, present, counts=counts)
        if counts:
            _add_excluded(self._excluded.setdefault(task.id, {}), task, score.sample, present)
        return _task_entry(task, score, present, self._overrides)

    def add_usage(self, usage: RecordedUsage) -> None:
        """Adds the recorded usage of a submission's requests."""
        self._tally.usage.add(usage)

    def head(self, *, without_submission: int = 0, suite_tasks: Sequence[Task] = ()) -> ReportHead:
        """Everything but the entries.

        Args:
            without_submission: how many tasks of the suite have no submission in the run.
            suite_tasks: all tasks of the suite, for scores in which tasks without a submission
                count as not accepted.
        """
        tally = self._tally
        tallies = list(tally.tasks.values())
        further = self._by_group(tallies)
        if without_submission and suite_tasks:
            further["of_suite"] = _of_suite(tallies, suite_tasks)
        if (repeated := tally.repeated_runs()) is not None:
            further["repeated_runs"] = _repeated_report(repeated)
        if (scope := tally.scope.report()) is not None:
            further["scope"] = scope
        if (charts := tally.charts.report()) is not None:
            further["charts"] = charts
        if tally.points is not None and (points := tally.points.report()) is not None:
            further["points"] = points
        if (usage := tally.usage.report()) is not None:
            further["usage"] = usage
        if tally.suspects is not None:
            further["suspects"] = _suspects_report(tally.suspects)
        if (certified := tally.certified) is not None:
            further["certified"] = {
                "name": certified.certified["name"],
                "applied": certified.certified["applied"],
                "grades": dict(certified.grades),
                "scores": _scores_without(certified.level),
                "accepted_weak": sorted(certified.accepted_weak),
            }
        if departing := departures(self._run, by_hand=tally.by_hand):
            further["departures"] = list(departing)
        by_kind = tally.by_kind()
        return {
            "schema_version": REPORT_SCHEMA_VERSION,
            "run": _identity(self._run),
            "overall": {**self._group(tallies), "tasks_without_submission": without_submission},
            "by_instruction_type": {kind: self._group(by_kind[kind]) for kind in sorted(by_kind)},
            **further,
        }

    def _group(self, tallies: Sequence[TaskTally]) -> GroupReport:
        """The numbers of a group of tasks."""
        group = TaskGroup.of(tallies)
        score = group.score()
        excluded: _Excluded = {}
        for tally in tallies:
            for code, cases in self._excluded[tally.task.id].items():
                excluded.setdefault(code, []).extend(cases)
        report: GroupReport = {
            "tasks": score.tasks,
            "cases": score.cases,
            "soft_restriction": score.soft,
            "hard_restriction": score.hard,
            "verdicts": dict(group.verdicts),
            "excluded": {code: cases for code, cases in excluded.items() if cases},
            "including_excluded": {
                "tasks": score.all_tasks,
                "cases": score.all_cases,
                "soft_restriction": score.soft_of_all,
                "hard_restriction": score.hard_of_all,
            },
        }
        if self._tally.has_shares:
            report["shares"] = shares_of_tallies([tally.shares for tally in tallies])
        return report

    def _by_group(self, tallies: Sequence[TaskTally]) -> FurtherReports:
        """Scores by each division of the tasks; empty if the suite does not divide them further."""
        members: dict[str, dict[str, list[TaskTally]]] = defaultdict(lambda: defaultdict(list))
        for tally in tallies:
            for division, group in tally.task.groups.items():
                members[division][group].append(tally)
        if not members:
            return {}
        return {
            "by_group": {
                division: {name: self._group(groups[name]) for name in sorted(groups)}
                for division, groups in sorted(members.items())
            }
        }


_Excluded = dict[str, list[ExcludedCase]]
"""Verdict code, or ``not_run`` -> how many such cases are not in any score."""


def _add_excluded(
    excluded: _Excluded, task: Task, sample: int, present: Sequence[CaseResult]
) -> None:
    """Adds the cases of a submission that are not in any score."""
    for result in present:
        if not result.verdict.is_scored:
            excluded.setdefault(result.verdict.value, []).append(
                {
                    "id": result.task_id,
                    "sample": result.sample,
                    "case": result.case,
                    "reason": result.cause,
                }
            )
    judged = {result.case for result in present}
    excluded.setdefault("not_run", []).extend(
        {"id": task.id, "sample": sample, "case": case.number}
        for case in task.cases
        if case.number not in judged
    )


def _of_suite(tallies: Sequence[TaskTally], tasks: Sequence[Task]) -> OfSuite:
    """Scores with the whole suite as denominator, as published scripts often compute them."""
    divisions: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for task in tasks:
        for division, name in task.groups.items():
            divisions[division][name].add(task.id)
    return {
        "overall": _scores_over(tallies, {task.id for task in tasks}),
        "by_group": {
            division: {
                name: _scores_over(tallies, members) for name, members in sorted(groups.items())
            }
            for division, groups in sorted(divisions.items())
        },
    }


def _scores_over(tallies: Iterable[TaskTally], members: Collection[str]) -> SuiteScores:
    """Scores with all tasks of a suite, or of a group of its tasks, as the denominator."""
    score = TaskGroup.of(tally for tally in tallies if tally.task.id in members).score()
    share = score.all_tasks / len(members)
    return {
        "tasks": len(members),
        "soft_restriction": (score.soft_of_all or 0.0) * share,
        "hard_restriction": (score.hard_of_all or 0.0) * share,
    }


def _settled(suspicions: Suspicions | None, run: RunDocument) -> Suspicions | None:
    """The suspects; those fixed by the run's corrections count as corrected."""
    if suspicions is None:
        return None
    from judge.report.set_aside import suspicions_of_run  # noqa: PLC0415  few runs keep suspects

    return suspicions_of_run(suspicions, run)


def _suspects_report(suspects: SuspectsTally) -> SuspectsReport:
    """The scores without suspects by level, and the suspects about the tasks of the run."""
    by_list: dict[str, dict[str, ScoresWithout]] = {}
    for (about, least), level in suspects.lists.items():
        by_list.setdefault(about.value, {})[least.value] = _scores_without(level)
    return {
        "without": {
            least.value: _scores_without(level) for least, level in suspects.levels.items()
        },
        "by_list": by_list,
        "by_status": suspects.by_status(),
        "suspects": [
            {
                "id": suspects.written_ids[reviewed.suspect.task],
                "case": reviewed.suspect.case,
                "sign": reviewed.suspect.sign,
                "certainty": reviewed.suspect.certainty.value,
                "status": reviewed.status.value,
                "summary": reviewed.suspect.summary,
            }
            for reviewed in suspects.suspicions.reviewed
            if reviewed.suspect.task in suspects.written_ids
        ],
    }


def _scores_without(level: LevelTally) -> ScoresWithout:
    score = level.group().score()
    return {
        "set_aside": level.set_aside_cases,
        "tasks": score.tasks,
        "cases": score.cases,
        "soft_restriction": score.soft,
        "hard_restriction": score.hard,
    }


def _identity(run: RunDocument) -> RunDocument:
    """The fields of run.json that say by which code and rules the verdicts were made."""
    document: Mapping[str, object] = run
    identity = {name: document[name] for name in _IDENTITY_FIELDS if name in document}
    if (inference := run.get("inference")) is not None:
        named = {name: inference[name] for name in ("model", "model_name") if name in inference}
        identity["inference"] = named
    return cast("RunDocument", identity)


def _repeated_report(repeated: RepeatedRuns) -> RepeatedReport:
    """Mean, standard deviation and pass@k over the samples."""
    return {
        "samples": repeated.samples,
        "soft_restriction": repeated.soft_restriction,
        "soft_sd": repeated.soft_sd,
        "hard_restriction": repeated.hard_restriction,
        "hard_sd": repeated.hard_sd,
        "pass_at": {str(k): share for k, share in repeated.pass_at.items()},
        "pass_hat": {str(k): share for k, share in repeated.pass_hat.items()},
        "best_of": repeated.best_of,
    }


def _task_entry(
    task: Task, score: SubmissionScore, present: Sequence[CaseResult], overrides: Overrides
) -> TaskReport:
    entry: TaskReport = {
        "id": task.written_id,
        "sample": score.sample,
        "instruction_type": task.kind,
        "test_case_results": [
            None if verdict is None else verdict.value for verdict in score.verdicts
        ],
        "soft_restriction": score.soft,
        "hard_restriction": score.hard,
    }
    causes = {str(result.case): result.cause for result in present if result.cause}
    if causes:
        entry["causes"] = causes
    disagreeing = [
        result.case
        for result in present
        if disagrees_with_published(result, overrides.automatic(result))
    ]
    if disagreeing:
        entry["official_disagrees"] = disagreeing
    manual = {
        str(result.case): _change(change)
        for result in present
        if (change := overrides.applied.get((task.id, score.sample, result.case))) is not None
    }
    if manual:
        entry["manual_verdicts"] = manual
    return entry


def _change(change: ManualVerdict) -> ChangeReport:
    return {
        "automatic": change.automatic,
        "verdict": change.verdict,
        "by": change.by,
        "at": change.at,
        "why": change.why,
    }


MAX_HELD = 20_000
"""How many entries of a report, or results of a run, are held in memory."""

_INDENT = b"\n    "


class EntriesFile:
    """Collects the entries of a report one by one, and writes the report at the end.

    Args:
        store: the results directory.
    """

    def __init__(self, store: RunDirectory) -> None:
        self._store = store
        self._held: list[TaskReport] = []
        self._stack = contextlib.ExitStack()
        self._file: IO[bytes] | None = None
        self._offsets, self._lengths = array("Q"), array("I")
        self._end = 0

    def add(self, entry: TaskReport) -> None:
        """Adds the next entry.

        Raises:
            OSError: it cannot be written.
        """
        if self._file is None and len(self._held) < MAX_HELD:
            self._held.append(entry)
            return
        if self._file is None:
            opened = tempfile.TemporaryFile(dir=self._store.path)  # noqa: SIM115  closed at the end
            self._file = self._stack.enter_context(opened)
            for held_entry in self._held:
                self._write(held_entry)
            self._held = []
        self._write(entry)

    def _write(self, entry: TaskReport) -> None:
        assert self._file is not None
        text = dump_json(entry, indent=2).encode("utf-8").replace(b"\n", _INDENT)
        before = b",\n    " if len(self._offsets) else b"    "
        self._file.write(before + text)
        self._offsets.append(self._end + len(before))
        self._lengths.append(len(text))
        self._end += len(before) + len(text)

    def finish(self, head: ReportHead) -> ReportDocument:
        """Writes report.json.

        Args:
            head: everything but the entries.

        Returns:
            The report; its entries are read from the file if they are not held.

        Raises:
            StoreError: it cannot be written.
        """
        with self._stack:
            if self._file is None:
                report: ReportDocument = {**head, "tasks": self._held}
                self._store.write_document(REPORT_FILE, report)
                return report
            with self._store.writing(REPORT_FILE) as file:
                text = dump_json(head, indent=2).removesuffix("\n}").encode("utf-8")
                start = file.write(text + b',\n  "tasks": [\n')
                self._file.seek(0)
                shutil.copyfileobj(self._file, file)
                file.write(b"\n  ]\n}\n")
        lines = LinesAt(self._store.path / REPORT_FILE, StoreError)
        return {**head, "tasks": WrittenEntries(lines, start, self._offsets, self._lengths)}


class WrittenEntries(Sequence[TaskReport]):
    """Entries of report.json, each read from the file when it is needed.

    Args:
        lines: the file.
        start: offset of the entries in it.
        offsets: offset of each entry from ``start``, in bytes.
        lengths: length of each entry, in bytes.
    """

    def __init__(
        self, lines: LinesAt, start: int, offsets: Sequence[int], lengths: Sequence[int]
    ) -> None:
        self._lines = lines
        self._start = start
        self._offsets = offsets
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> TaskReport: ...

    @overload
    def __getitem__(self, index: slice) -> list[TaskReport]: ...

    def __getitem__(self, index: int | slice) -> TaskReport | list[TaskReport]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        offset = self._start + self._offsets[index]
        return cast("TaskReport", parse_json(self._lines.read(offset, self._lengths[index])))
