"""Measures how often the judge is right, from a sample that a person marks. Pure.

The four rates come from the appendix on evaluation metrics of the SpreadsheetBench paper. There, on
50 instructions with three cases each, they are 0, 3.8, 0 and 4 %. docs/reports.md gives the
denominator of each rate.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judge.core.statistics import Estimate, ratio_interval, wilson
from judge.core.verdict import Verdict
from judge.errors import UsageError
from judge.grading.case_records import CaseKey
from judge.report.load import LoadedRun, LoadedSubmission
from judge.report.model import Method

RIGHT, WRONG = "right", "wrong"

SubmissionKey = tuple[str, int]
"""(task id, sample)"""


@dataclass(frozen=True, slots=True)
class AuditSample:
    """A sample of verdicts for a person to mark.

    Attributes:
        id: the id of the sample; every row of the sheet has it.
        seed: seed of the draw.
        population: how many submissions had a scored case when the sample was drawn.
        verdicts: scored cases of the submissions drawn -> automatic verdict at the time of the
            draw.
    """

    id: str
    seed: int
    population: int
    verdicts: Mapping[CaseKey, str]

    @property
    def submissions(self) -> list[SubmissionKey]:
        """The submissions that were drawn, in the order of the sheet."""
        return list(dict.fromkeys((task, sample) for task, sample, _ in self.verdicts))

    def to_json(self) -> dict[str, Any]:
        """The record of audits.jsonl."""
        return {
            "id": self.id,
            "seed": self.seed,
            "population": self.population,
            "verdicts": [[*key, verdict] for key, verdict in self.verdicts.items()],
        }

    @classmethod
    def of_json(cls, record: Mapping[str, Any]) -> AuditSample:
        """Reads a record of audits.jsonl.

        Raises:
            KeyError, TypeError, ValueError, OverflowError: the record is not one that
                :meth:`to_json` writes.
        """
        seed = int(record["seed"])
        verdicts = {
            (str(task), int(sample), int(case)): Verdict(verdict).value
            for task, sample, case, verdict in record["verdicts"]
        }
        if record["id"] != _id_of(seed, verdicts):
            raise ValueError("these are not the verdicts that were sampled")
        return cls(str(record["id"]), seed, int(record["population"]), verdicts)


def _id_of(seed: int, verdicts: Mapping[CaseKey, str]) -> str:
    return hashlib.sha256(repr((seed, sorted(verdicts.items()))).encode()).hexdigest()[:12]


def draw_sample(run: LoadedRun, size: int, seed: int) -> AuditSample:
    """Draws submissions at random, all equally likely, with all of their scored cases.

    Args:
        run: the run.
        size: how many submissions to draw; if the run has fewer, all are drawn.
        seed: the seed of the draw.

    Raises:
        UsageError: the run has no scored case.
    """
    candidates = [submission for submission in run.submissions if any(_scored(submission))]
    if not candidates:
        raise UsageError(f"{run.path}: has no scored case to audit")
    chosen = random.Random(seed).sample(range(len(candidates)), min(size, len(candidates)))  # noqa: S311  for sampling, not for secrets
    verdicts = {
        (submission.task_id, submission.sample, number): submission.automatic[number].verdict.value
        for submission in (candidates[index] for index in sorted(chosen))
        for number in _scored(submission)
    }
    return AuditSample(_id_of(seed, verdicts), seed, len(candidates), verdicts)


def _scored(submission: LoadedSubmission) -> Iterable[int]:
    return [
        number
        for number in submission.cases
        if number in submission.automatic and submission.automatic[number].verdict.is_scored
    ]


@dataclass(frozen=True, slots=True)
class AuditMarks:
    """A person's marks.

    Attributes:
        cases: case -> whether its verdict is right; cases that were left blank are not included.
        instructions: submission -> whether its overall verdict (solved or not) is right.
    """

    cases: Mapping[CaseKey, bool]
    instructions: Mapping[SubmissionKey, bool]


@dataclass(frozen=True, slots=True)
class Confusion:
    """Counts of verdicts, by whether a person agrees with them.

    Attributes:
        true_positive: accepted, and the output is right.
        false_positive: accepted, but the output is wrong.
        true_negative: not accepted, and the output is wrong.
        false_negative: not accepted, but the output is right.
    """

    true_positive: int
    false_positive: int
    true_negative: int
    false_negative: int


@dataclass(frozen=True, slots=True)
class AuditRates:
    """How far a reader can trust the automatic verdicts.

    Attributes:
        sample_id: the sample that was marked.
        seed: seed of the draw.
        method: the method of the intervals.
        case_false_discovery: share of the accepted cases whose output is wrong.
        case_false_omission: share of the cases not accepted whose output is right.
        instruction_false_positive: share of all instructions with an accepted case whose output is
            wrong.
        instruction_false_negative: share of all instructions with a rejected case whose output is
            right.
        cases: counts behind the first two rates.
        false_positive_instructions: numerator of ``instruction_false_positive``.
        false_negative_instructions: numerator of ``instruction_false_negative``.
        whole_instructions: instructions with all cases marked; the denominator of both.
        solved: counts of instructions by whether "solved" (all cases accepted) is right.
        marked_cases: cases with a mark.
        sampled_cases: cases in the sample.
        marked_instructions: instructions that ``solved`` counts: they are marked themselves, or all
            of their cases are.
        sampled_instructions: instructions in the sample.
        marked_by_cases: instructions that are not marked themselves, but whose cases are all
            marked.
        rejudged_cases: cases whose verdict on record has changed since the draw; the verdict that
            was marked counts.
    """

    sample_id: str
    seed: int
    method: Method
    case_false_discovery: Estimate
    case_false_omission: Estimate
    instruction_false_positive: Estimate
    instruction_false_negative: Estimate
    cases: Confusion
    false_positive_instructions: int
    false_negative_instructions: int
    whole_instructions: int
    solved: Confusion
    marked_cases: int
    sampled_cases: int
    marked_instructions: int
    sampled_instructions: int
    marked_by_cases: int
    rejudged_cases: int

    def to_json(self) -> dict[str, Any]:
        """The rates as a JSON object; keys are the names of the fields."""
        return asdict(self)


def audit_rates(
    sample: AuditSample, marks: AuditMarks, method: Method, *, rejudged_cases: int = 0
) -> AuditRates:
    """The four rates with their intervals.

    Args:
        sample: the verdicts to mark.
        marks: a person's marks on them.
        method: confidence, resamples and seed of the intervals.
        rejudged_cases: cases whose verdict on record has changed since the sample was drawn.
    """
    cases = [
        (key[:2], verdict == Verdict.AC, marks.cases[key])
        for key, verdict in sample.verdicts.items()
        if key in marks.cases
    ]
    truths, by_cases = _instruction_truths(sample, marks)
    whole = _whole_instructions(sample, marks)
    accepted_wrongly = [(key[0], (True, False) in pairs) for key, pairs in whole.items()]
    refused_wrongly = [(key[0], (False, False) in pairs) for key, pairs in whole.items()]
    return AuditRates(
        sample_id=sample.id,
        seed=sample.seed,
        method=method,
        case_false_discovery=_case_rate(cases, accepted=True, method=method),
        case_false_omission=_case_rate(cases, accepted=False, method=method),
        instruction_false_positive=_instruction_rate(accepted_wrongly, method),
        instruction_false_negative=_instruction_rate(refused_wrongly, method),
        cases=_confusion([(accepted, right) for _, accepted, right in cases]),
        false_positive_instructions=sum(wrong for _, wrong in accepted_wrongly),
        false_negative_instructions=sum(wrong for _, wrong in refused_wrongly),
        whole_instructions=len(whole),
        solved=_confusion([(solved, solved == truth) for solved, truth in truths.values()]),
        marked_cases=len(cases),
        sampled_cases=len(sample.verdicts),
        marked_instructions=len(truths),
        sampled_instructions=len(sample.submissions),
        marked_by_cases=by_cases,
        rejudged_cases=rejudged_cases,
    )


def _case_rate(
    cases: Sequence[tuple[SubmissionKey, bool, bool]], *, accepted: bool, method: Method
) -> Estimate:
    """Share of the accepted (or not accepted) cases whose verdict is wrong; tasks are clusters."""
    wrong: dict[str, int] = defaultdict(int)
    all_of_them: dict[str, int] = defaultdict(int)
    for (task_id, _), was_accepted, right in cases:
        if was_accepted is accepted:
            all_of_them[task_id] += 1
            wrong[task_id] += not right
    return ratio_interval(
        [wrong[task] for task in all_of_them],
        list(all_of_them.values()),
        confidence=method.confidence,
        resamples=method.resamples,
        seed=method.seed,
    )


def _whole_instructions(
    sample: AuditSample, marks: AuditMarks
) -> dict[SubmissionKey, set[tuple[bool, bool]]]:
    """Fully marked submissions -> the pairs (was accepted, was marked right) of their cases."""
    pairs_of: dict[SubmissionKey, set[tuple[bool, bool]]] = defaultdict(set)
    for key, verdict in sample.verdicts.items():
        if key in marks.cases:
            pairs_of[key[:2]].add((verdict == Verdict.AC, marks.cases[key]))
    partly = {key[:2] for key in sample.verdicts if key not in marks.cases}
    return {key: pairs for key, pairs in pairs_of.items() if key not in partly}


def _instruction_rate(hits_by_task: Sequence[tuple[str, bool]], method: Method) -> Estimate:
    """Estimates the share of instructions with a hit, from pairs of (task, hit).

    Several samples of a task are not independent observations, so the tasks are the clusters.
    """
    of_tasks: dict[str, list[bool]] = defaultdict(list)
    for task_id, hit in hits_by_task:
        of_tasks[task_id].append(hit)
    if len(of_tasks) == len(hits_by_task):
        hits = sum(hit for _, hit in hits_by_task)
        return wilson(hits, len(hits_by_task), confidence=method.confidence)
    return ratio_interval(
        [sum(hits_of_task) for hits_of_task in of_tasks.values()],
        [len(hits_of_task) for hits_of_task in of_tasks.values()],
        confidence=method.confidence,
        resamples=method.resamples,
        seed=method.seed,
    )


def _instruction_truths(
    sample: AuditSample, marks: AuditMarks
) -> tuple[dict[SubmissionKey, tuple[bool, bool]], int]:
    """Submission -> whether the judge calls it solved, and whether it is solved.

    Also returns how many of these submissions have no mark of their own: whether they are solved
    then follows from the marks of their cases.
    """
    cases: dict[SubmissionKey, list[CaseKey]] = defaultdict(list)
    for key in sample.verdicts:
        cases[key[0], key[1]].append(key)
    truths: dict[SubmissionKey, tuple[bool, bool]] = {}
    by_cases = 0
    for submission, keys in cases.items():
        solved = all(sample.verdicts[key] == Verdict.AC for key in keys)
        mark = marks.instructions.get(submission)
        if mark is not None:
            truths[submission] = (solved, solved == mark)
        elif all(key in marks.cases for key in keys):
            by_cases += 1
            really = all((sample.verdicts[key] == Verdict.AC) == marks.cases[key] for key in keys)
            truths[submission] = (solved, really)
    return truths, by_cases


def _confusion(pairs: Iterable[tuple[bool, bool]]) -> Confusion:
    """Counts pairs of (judge says yes, judge is right)."""
    counts = {(yes, right): 0 for yes in (True, False) for right in (True, False)}
    for pair in pairs:
        counts[pair] += 1
    return Confusion(
        true_positive=counts[True, True],
        false_positive=counts[True, False],
        true_negative=counts[False, True],
        false_negative=counts[False, False],
    )
