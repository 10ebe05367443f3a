"""Verdicts again, from outputs that are stored: no code runs.

Each case on record is judged by other rules (profile, styles, engines). What comes out is a
preview; only when it is applied are records appended, so the earlier ones stay in cases.jsonl.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from judge.batch import Settings
from judge.errors import JudgeError, StoreError
from judge.grader import Judgement, RunFacts, case_result, comparison_key, judge_output
from judge.recalc.policy import Origin
from judge.records import (
    CaseKey,
    CaseKeys,
    FileDigests,
    record_key,
    record_of_result,
    result_of_record,
)
from judge.store import CASES_FILE, RunDirectory
from judge.submission import Submission
from judge.task import Task, TestCase
from judge.verdict import CaseResult, Verdict

StoredOutput = Callable[[CaseKey, str], bytes | None]
"""From a case and the SHA-256 of its output to the output's bytes; None where it is gone."""


@dataclass(frozen=True, slots=True)
class RejudgedCase:
    """One case under the other rules.

    Attributes:
        before: the result on record.
        after: the result under the other rules; the same object where nothing had to be judged.
        record: what is appended to cases.jsonl when this is applied; None where nothing is.
        kept_because: why the verdict on record was kept though there was something to judge.
    """

    before: CaseResult
    after: CaseResult
    record: Mapping[str, object] | None
    kept_because: str = ""

    @property
    def changed(self) -> bool:
        """Whether the verdict is another one."""
        return self.before.verdict is not self.after.verdict


def rejudge_cases(
    store: RunDirectory,
    cases: Sequence[tuple[Task, int, TestCase]],
    settings: Settings,
    output_of: StoredOutput,
    *,
    on_case: Callable[[RejudgedCase, int], None] = lambda _case, _total: None,
) -> list[RejudgedCase]:
    """Judges stored outputs by other rules, writing nothing.

    Args:
        store: the results directory.
        cases: task, sample and case of everything that is to be judged; what is not on record is
            passed over.
        settings: engines, rules and number of workers; no sandbox is used to run programs.
        output_of: where outputs are found.
        on_case: told of each case, and of how many there are in all.

    Returns:
        One entry for each case on record, in the order in which they were given.
    """
    latest = {record_key(record): record for record in store.read_records(CASES_FILE)}
    wanted = [
        (task, case, latest[task.id, sample, case.number])
        for task, sample, case in cases
        if (task.id, sample, case.number) in latest
    ]
    digests = FileDigests()

    def judge_one(item: tuple[Task, TestCase, Mapping[str, object]]) -> RejudgedCase:
        return _rejudge(*item, settings, digests, output_of)

    found: list[RejudgedCase] = []
    with ThreadPoolExecutor(settings.jobs) as pool:
        for rejudged in pool.map(judge_one, wanted):
            found.append(rejudged)
            on_case(rejudged, len(wanted))
    return found


def _rejudge(
    task: Task,
    case: TestCase,
    record: Mapping[str, object],
    settings: Settings,
    digests: FileDigests,
    output_of: StoredOutput,
) -> RejudgedCase:
    before = result_of_record(record)
    run_key = str(record.get("run_key"))
    rule_key = comparison_key(run_key, task, digests.of(case.gold_path), settings.rules)
    keys = CaseKeys(run_key, rule_key)
    if record.get("comparison_key") == rule_key and before.verdict is not Verdict.JE:
        return RejudgedCase(before, before, None)
    digest = before.run.get("output_sha256")
    if not isinstance(digest, str):
        if before.verdict is Verdict.JE:
            return RejudgedCase(before, before, None, "it was not run: `judge score` tries again")
        # The run alone decided; the record says that it holds under these rules as well.
        return RejudgedCase(before, before, record_of_result(keys, before))
    output = output_of(record_key(record), digest)
    if output is None:
        return RejudgedCase(before, before, None, "its output workbook is not stored any more")
    after = _judge(task, case, before, output, settings)
    return RejudgedCase(before, after, record_of_result(keys, after))


def _judge(
    task: Task, case: TestCase, before: CaseResult, output: bytes, settings: Settings
) -> CaseResult:
    finished = before.run.get("status") == "finished"
    try:
        judgement = judge_output(
            task,
            case.gold_path.read_bytes(),
            output,
            recalculator=settings.recalculator,
            rules=settings.rules,
            origin=Origin.FINISHED if finished else Origin.SOLUTION,
            gold_name=case.gold_path.name,
            input_path=case.input_path,
        )
    except StoreError:
        raise
    except JudgeError as error:
        judgement = Judgement(Verdict.JE, error.message)
    placeholder = Submission(before.task_id, None, "", "", sample=before.sample)
    return case_result(placeholder, case, RunFacts(None, "", before.run, None), judgement)


def apply_rejudged(store: RunDirectory, cases: Sequence[RejudgedCase]) -> int:
    """Appends the records of a preview to cases.jsonl.

    Args:
        store: the results directory, locked by this process.
        cases: what :func:`rejudge_cases` returned.

    Returns:
        How many records were appended.
    """
    records = [each.record for each in cases if each.record is not None]
    for record in records:
        store.append(CASES_FILE, record)
    return len(records)


def count_changes(cases: Sequence[RejudgedCase]) -> dict[tuple[str, str], int]:
    """(verdict before, verdict after) -> cases, commonest first; what stays is not counted."""
    counts = Counter(
        (each.before.verdict.value, each.after.verdict.value) for each in cases if each.changed
    )
    return dict(counts.most_common())
