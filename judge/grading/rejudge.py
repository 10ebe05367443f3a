"""Judges stored outputs again; no code runs.

Each case on record is judged by the same or by other rules (profile, styles, engines). A record
proves nothing: anyone who can write to the folder can write AC into it. So every output is compared
again, even if the record says that nothing has changed, and no case is accepted without its output.
The result is a preview. Records are only appended when it is applied; the earlier records stay in
cases.jsonl.
"""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from judge.console import visible
from judge.core.records.cases import CaseRecord
from judge.core.submission import Answer, Submission
from judge.core.task import Task, TestCase
from judge.core.verdict import CaseResult, Verdict
from judge.errors import IncompleteRunError
from judge.grading.batch import Settings
from judge.grading.case import case_result, known_fault, problem_of_input
from judge.grading.case_records import (
    CaseKey,
    case_records,
    record_key,
    record_of_result,
    result_of_record,
)
from judge.grading.jobs import CaseJob, Job, JudgedCase
from judge.grading.keys import CaseKeys, FileDigests, comparison_key
from judge.grading.running import (
    RunOutcome,
    has_given_up,
    holds_values,
    origin_on_record,
    typed_answer,
)
from judge.grading.store import CASES_FILE, RunDirectory

StoredOutput = Callable[[CaseKey, str], bytes | str]
"""Takes a case and the SHA-256 of its output; returns the output's bytes, or why it is missing."""

NOT_RUN = "it was not run: `judge score` tries again"


@dataclass(frozen=True, slots=True)
class RejudgedCase:
    """A case that was judged again.

    Attributes:
        before: the result on record.
        after: the new result; the same object if the record is right.
        record: the record that is appended to cases.jsonl when this is applied, if there is one.
        same_rules: whether the same rules made the record: a different verdict contradicts it.
        unproven: why the verdict on record could not be checked; an accepted case then becomes JE.
    """

    before: CaseResult
    after: CaseResult
    record: CaseRecord | None
    same_rules: bool = False
    unproven: str = ""

    @property
    def changed(self) -> bool:
        """Whether the verdict has changed."""
        return self.before.verdict is not self.after.verdict

    @property
    def contradicted(self) -> bool:
        """Whether the record is wrong: the same rules now lead to a different verdict."""
        return self.changed and self.same_rules and not self.unproven


def rejudge_cases(
    store: RunDirectory,
    cases: Sequence[tuple[Task, int, TestCase]],
    settings: Settings,
    output_of: StoredOutput,
    *,
    on_case: Callable[[RejudgedCase, int], None] = lambda _case, _total: None,
) -> list[RejudgedCase]:
    """Judges stored outputs and writes nothing; only facts about runs are taken from the records.

    Args:
        store: the results directory.
        cases: task, sample and case of everything to judge; cases without a record are skipped.
        settings: engines, rules and number of workers; no sandbox is used to run programs.
        output_of: finds the output of a case.
        on_case: called with each case and the number of all cases.

    Returns:
        One entry for each case on record, in the order in which they were given.
    """
    latest = case_records(store)
    recorded = [
        (task, case, latest[task.id, sample, case.number])
        for task, sample, case in cases
        if (task.id, sample, case.number) in latest
    ]
    rejudging = _Rejudging(settings, output_of)
    positions = {record_key(record): at for at, (_, _, record) in enumerate(recorded)}
    rejudged: dict[int, RejudgedCase] = {}
    with contextlib.closing(settings.executor().judge(rejudging.jobs(recorded))) as judged:
        for case in _with_decided(judged, rejudging.decided):
            entry = case if isinstance(case, RejudgedCase) else rejudging.conclude(case)
            before = entry.before
            rejudged[positions[before.task_id, before.sample, before.case]] = entry
            on_case(entry, len(recorded))
    if len(rejudged) < len(recorded):
        missing = f"{len(recorded) - len(rejudged)} of {len(recorded)} cases were not judged again"
        raise IncompleteRunError(
            f"{store.path}: {missing}",
            hint="Nothing was written; run the same command again.",
        )
    return [rejudged[at] for at in range(len(recorded))]


def _with_decided(
    judged: Iterable[JudgedCase], decided: deque[RejudgedCase]
) -> Iterator[JudgedCase | RejudgedCase]:
    """Yields the judged cases and, in between, those that were decided without judging."""
    for case in judged:
        yield case
        while decided:
            yield decided.popleft()
    while decided:
        yield decided.popleft()


_OF_OUTPUTS = frozenset({Verdict.AC, Verdict.WA, Verdict.NC})


class _Rejudging:
    """Judges recorded cases again.

    Attributes:
        decided: cases whose answer need not be judged, or cannot be judged.
    """

    def __init__(self, settings: Settings, output_of: StoredOutput) -> None:
        self._rules = settings.rules
        self._trusts_values = settings.trusts_values
        self._limits = settings.limits
        self._digests = FileDigests()
        self._output_of = output_of
        self._same_rules: dict[CaseKey, tuple[CaseResult, bool]] = {}
        self.decided: deque[RejudgedCase] = deque()

    def jobs(self, cases: Iterable[tuple[Task, TestCase, CaseRecord]]) -> Iterator[Job]:
        """Yields the answers that have to be judged; decides all other cases on the way."""
        for task, case, record in cases:
            before = result_of_record(record)
            run_key = record.get("run_key", "")
            rule_key = comparison_key(
                run_key,
                task,
                case,
                self._rules,
                self._digests,
                distrusts=holds_values(before.run) and not self._trusts_values,
            )
            same_rules = record.get("comparison_key") == rule_key
            answer, unproven = self._answer(record, before)
            keys = CaseKeys(run_key, rule_key)
            if answer is None:
                after = before
                if unproven:
                    after, unproven = _unproven(before, unproven)
                else:
                    after, unproven = self._judge_run(task, case, before)
                self.decided.append(_compared(keys, before, after, same_rules, unproven))
                continue
            self._same_rules[record_key(record)] = (before, same_rules)
            author = Submission(task.id, None, "", "", sample=before.sample)
            ran = before.run.copy()
            if holds_values(ran):
                ran["origin"] = answer.origin.value
            outcome = RunOutcome(None, "", ran, answer)
            yield Job(task, author, (CaseJob(case, keys, outcome),), self._limits)

    def conclude(self, judged: JudgedCase) -> RejudgedCase:
        """Compares the old and the new result of an answer."""
        after = judged.result
        before, same_rules = self._same_rules[after.task_id, after.sample, after.case]
        return _compared(judged.keys, before, after, same_rules, "")

    def _answer(self, record: CaseRecord, before: CaseResult) -> tuple[Answer | None, str]:
        """Returns the answer on record, or why it is missing although there should be one."""
        if (typed := typed_answer(before.run)) is not None:
            return typed, ""
        digest = before.run.get("output_sha256")
        if digest is None:
            return None, ""
        output = self._output_of(record_key(record), digest)
        if not isinstance(output, bytes):
            return None, output
        origin = origin_on_record(before.run, trusts_values=self._trusts_values)
        return Answer.of_workbook(output, origin), ""

    def _judge_run(self, task: Task, case: TestCase, before: CaseResult) -> tuple[CaseResult, str]:
        """Returns the result of a run without output and, if it cannot be checked, why."""
        fault = known_fault(task, case.number)
        if fault is None and before.verdict not in {Verdict.CE, Verdict.JE}:
            fault = problem_of_input(case.question)
        if fault is not None:
            return replace(before, verdict=Verdict.BT, cause=visible(fault)), ""
        if before.verdict is Verdict.JE:
            return before, NOT_RUN
        if not before.verdict.is_scored:
            return _unproven(before, "the files of the suite show no fault")
        if before.verdict in _OF_OUTPUTS and not has_given_up(before):
            return _unproven(before, "the record names no output workbook")
        # Only the run decided this verdict, so it is the same under these rules.
        return replace(before), ""


def _compared(
    keys: CaseKeys, before: CaseResult, after: CaseResult, same_rules: bool, unproven: str
) -> RejudgedCase:
    if after is before or (same_rules and _says_the_same(before, after)):
        return RejudgedCase(before, before, None, same_rules, unproven)
    return RejudgedCase(before, after, record_of_result(keys, after), same_rules, unproven)


def _says_the_same(before: CaseResult, after: CaseResult) -> bool:
    return (before.verdict, before.cause) == (after.verdict, after.cause)


def _unproven(before: CaseResult, why: str) -> tuple[CaseResult, str]:
    """Returns the result for a verdict that cannot be checked, and why it cannot.

    A verdict against the author of the submission is kept. A verdict in the author's favour (an
    accepted answer, a case that is not scored) is replaced by JE.
    """
    if before.verdict.is_scored and before.verdict is not Verdict.AC:
        return before, why
    cause = f"the record says {before.verdict}, which cannot be checked: {why}"
    outcome = RunOutcome(Verdict.JE, cause, before.run)
    return case_result(before.task_id, before.sample, before.case, outcome, None), why


def apply_rejudged(store: RunDirectory, cases: Sequence[RejudgedCase]) -> int:
    """Appends the records of a preview to cases.jsonl.

    Args:
        store: the results directory, locked by this process.
        cases: what :func:`rejudge_cases` returned.

    Returns:
        How many records were appended.
    """
    records = [case.record for case in cases if case.record is not None]
    for record in records:
        store.append(CASES_FILE, record)
    return len(records)


def count_changes(cases: Sequence[RejudgedCase]) -> dict[tuple[str, str], int]:
    """Counts changed cases by (verdict before, verdict after), the most frequent change first."""
    counts = Counter(
        (case.before.verdict.value, case.after.verdict.value) for case in cases if case.changed
    )
    return dict(counts.most_common())
