"""``report.json``: the scores of a run, derived from its records alone.

Nothing that the judge measured goes in (no seconds, no bytes), so that two runs that judged the
same submissions give the same report, however often either of them was interrupted. What asking
took was recorded with the submissions, and belongs to them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import cast

from judge.core.conversation import Asking
from judge.core.records.reports import (
    ChangeReport,
    FurtherReports,
    OfSuite,
    RepeatedReport,
    ReportDocument,
    ReportHead,
    TaskReport,
)
from judge.core.records.runs import RunDocument
from judge.core.score import SubmissionScore, TaskScores, best_samples, score_submission
from judge.core.task import Task
from judge.core.verdict import CaseResult, Verdict
from judge.grading.overrides import NO_OVERRIDES, ManualVerdict, Overrides
from judge.report.charts import ChartsTally
from judge.report.identity import departures
from judge.report.scope import ScopeTally
from judge.report.set_aside import suspicions_of_run
from judge.report.tally import SuspectsTally, TaskTally
from judge.report.usage import UsageTally
from judge.suspects.standing import Suspicions

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
    asked: Iterable[Asking] = (),
    suspicions: Suspicions | None = None,
) -> ReportDocument:
    """Builds the document that is written to ``report.json``.

    Args:
        run: the run's description, as in ``run.json``; if it says ``best_of``, the best sample of
            each task counts instead of the mean of all.
        graded: every task with the sample number of a submission to report on, in suite order.
        results: results on record; those of other submissions are left out.
        without_submission: tasks of the suite that the run holds no submission of.
        suite_tasks: all tasks of the suite, for scores in which those count as not accepted.
        overrides: verdicts that a person changed; they count instead of the automatic ones.
        asked: what was recorded of the reported submissions while the chat model was asked.
        suspicions: golds that may be at fault; the scores are also given without their cases.

    Returns:
        A JSON object: ``schema_version``, ``run``, ``overall`` and ``by_instruction_type`` (each
        with ``tasks``, ``cases``, ``soft_restriction``, ``hard_restriction`` from 0 to 1,
        ``verdicts``, ``excluded``, ``including_excluded``), ``tasks[]``; ``departures`` from the
        suite as published, if any; ``of_suite`` if tasks have no submission, ``repeated_runs``
        (with pass@k) where tasks have several samples, ``scope`` where an option asks for it,
        ``usage`` where the chat model's is on record, ``suspects`` where there are suspicions.
    """
    changed = overrides.apply(results)
    by_case = {(each.task_id, each.sample, each.case): each for each in changed}
    scored: list[tuple[Task, SubmissionScore, list[CaseResult]]] = []
    for task, sample in graded:
        found = [by_case.get((task.id, sample, case.number)) for case in task.cases]
        verdicts = [None if each is None else each.verdict for each in found]
        present = [each for each in found if each is not None]
        scored.append((task, score_submission(task.id, sample, verdicts), present))
    best = best_samples(score for _, score, _ in scored) if run.get("best_of") else None
    builder = ReportBuilder(run, overrides=overrides, suspicions=suspicions)
    entries = [
        builder.add(task, score, present, counts=best is None or (task.id, score.sample) in best)
        for task, score, present in scored
    ]
    for each in asked:
        builder.add_asking(each)
    head = builder.head(without_submission=without_submission, suite_tasks=suite_tasks)
    return {**head, "tasks": entries}


class ReportBuilder:
    """The same submission by submission: what it holds does not grow with the results.

    Args:
        run: the run's description, as in ``run.json``.
        overrides: verdicts that a person changed, in place in the results that are added.
        suspicions: golds that may be at fault; the scores are also given without their cases.
    """

    def __init__(
        self,
        run: RunDocument,
        *,
        overrides: Overrides = NO_OVERRIDES,
        suspicions: Suspicions | None = None,
    ) -> None:
        self._run = run
        self._overrides = overrides
        self._tallies: dict[str, TaskTally] = {}
        self._samples: dict[str, TaskScores] = {}
        self._has_samples = self._shared = False
        self._scope = ScopeTally()
        self._charts = ChartsTally()
        self._usage = UsageTally()
        self._by_hand = 0
        settled = suspicions_of_run(suspicions, run)
        self._suspects = None if settled is None else SuspectsTally(settled)

    def add(
        self,
        task: Task,
        score: SubmissionScore,
        present: Sequence[CaseResult],
        *,
        counts: bool = True,
    ) -> TaskReport:
        """Takes a submission.

        Args:
            task: the task.
            score: the scores of the submission.
            present: the results on record of its cases, in case order.
            counts: whether it is in the scores; of several samples, only the best one may be.

        Returns:
            Its entry in the report.
        """
        self._samples.setdefault(task.id, TaskScores()).add(score)
        self._has_samples = self._has_samples or bool(score.sample)
        for each in present:
            self._scope.add(each)
            self._charts.add(each)
            self._shared = self._shared or "shares" in each.comparison
        if counts:
            tally = self._tallies.get(task.id)
            if tally is None:
                tally = self._tallies[task.id] = TaskTally(task)
            tally.add(score, present)
            if self._suspects is not None:
                self._suspects.add(task, score)
        entry = _task_entry(task, score, present, self._overrides)
        self._by_hand += len(entry.get("manual_verdicts", ()))
        return entry

    def add_asking(self, asking: Asking) -> None:
        """Takes what was recorded of a submission while the chat model was asked."""
        self._usage.add(asking)

    def head(self, *, without_submission: int = 0, suite_tasks: Sequence[Task] = ()) -> ReportHead:
        """Everything but the entries.

        Args:
            without_submission: tasks of the suite that the run holds no submission of.
            suite_tasks: all tasks of the suite, for scores in which those count as not accepted.
        """
        tallies = list(self._tallies.values())
        shared = self._shared
        by_type: dict[str, list[TaskTally]] = defaultdict(list)
        for tally in tallies:
            by_type[tally.task.kind].append(tally)
        further = _by_group(tallies, shared)
        if without_submission and suite_tasks:
            further["of_suite"] = _of_suite(tallies, suite_tasks)
        if self._has_samples and (repeated := _repeated(self._samples.values())) is not None:
            further["repeated_runs"] = repeated
        if (scope := self._scope.report()) is not None:
            further["scope"] = scope
        if (charts := self._charts.report()) is not None:
            further["charts"] = charts
        if (usage := self._usage.report()) is not None:
            further["usage"] = usage
        if self._suspects is not None:
            further["suspects"] = self._suspects.report()
        if departing := departures(self._run, by_hand=self._by_hand):
            further["departures"] = list(departing)
        return {
            "schema_version": REPORT_SCHEMA_VERSION,
            "run": _identity(self._run),
            "overall": {
                **TaskTally.group(tallies, shared=shared),
                "tasks_without_submission": without_submission,
            },
            "by_instruction_type": {
                kind: TaskTally.group(by_type[kind], shared=shared) for kind in sorted(by_type)
            },
            **further,
        }


def _by_group(tallies: Sequence[TaskTally], shared: bool) -> FurtherReports:
    """Scores by each division of the tasks; nothing where the suite divides them no further."""
    members: dict[str, dict[str, list[TaskTally]]] = defaultdict(lambda: defaultdict(list))
    for tally in tallies:
        for division, group in tally.task.groups.items():
            members[division][group].append(tally)
    if not members:
        return {}
    return {
        "by_group": {
            division: {
                name: TaskTally.group(groups[name], shared=shared) for name in sorted(groups)
            }
            for division, groups in sorted(members.items())
        }
    }


def _of_suite(tallies: Sequence[TaskTally], tasks: Sequence[Task]) -> OfSuite:
    """Scores with the denominators of the whole suite, as published scripts often have them."""
    divisions: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for task in tasks:
        for division, name in task.groups.items():
            divisions[division][name].add(task.id)
    return {
        "overall": TaskTally.over(tallies, {task.id for task in tasks}),
        "by_group": {
            division: {
                name: TaskTally.over(tallies, members) for name, members in sorted(groups.items())
            }
            for division, groups in sorted(divisions.items())
        },
    }


def _identity(run: RunDocument) -> RunDocument:
    """What made the verdicts, of all that is known of the run."""
    document: Mapping[str, object] = run
    known = {name: document[name] for name in _IDENTITY_FIELDS if name in document}
    if (asked := run.get("inference")) is not None:
        named = {name: asked[name] for name in ("model", "model_name") if name in asked}
        known["inference"] = named
    return cast("RunDocument", known)


def _repeated(tasks: Collection[TaskScores]) -> RepeatedReport | None:
    """Mean, standard deviation and pass@k over samples; nothing where each task has one."""
    from judge.report.repeats import repeated_runs  # noqa: PLC0415  NumPy, for several samples only

    found = repeated_runs(tasks)
    if found is None:
        return None
    return {
        "samples": found.samples,
        "soft_restriction": found.soft_restriction,
        "soft_sd": found.soft_sd,
        "hard_restriction": found.hard_restriction,
        "hard_sd": found.hard_sd,
        "pass_at": {str(k): share for k, share in found.pass_at.items()},
        "pass_hat": {str(k): share for k, share in found.pass_hat.items()},
        "best_of": found.best_of,
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
        if (official := result.comparison.get("official_equal")) is not None
        and official != (overrides.automatic(result) is Verdict.AC)
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
