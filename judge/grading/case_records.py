"""Records of cases.jsonl: results written down, read back, and reused.

A record holds two keys. ``run_key`` is the hash of everything that could change what the program
did; ``comparison_key`` adds everything that could change what the judge says of it. Where both are
as they were, nothing is done; where only the first is, the stored output is judged again and no
code runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from judge.core.results import CaseComparison, CaseRecord, CaseRun
from judge.core.verdict import CaseResult, Verdict
from judge.errors import StoreError
from judge.files.documents import MalformedError
from judge.files.forms import checked
from judge.grading.keys import CaseKeys
from judge.grading.store import CASES_FILE, RunDirectory

CaseKey = tuple[str, int, int]
"""(task id, sample, case number)"""


class KnownCases:
    """The records of a results directory; the last one of each case counts.

    A record is checked when its keys are requested: one made by other code or other rules may be
    out of date, and is replaced.
    """

    def __init__(self, store: RunDirectory) -> None:
        self._store = store
        self._records = latest_records(store)

    def current(self, key: CaseKey, keys: CaseKeys) -> CaseResult | None:
        """The result on record, where nothing that could change it has changed; JE as well."""
        record = self._records.get(key)
        if record is None or record.get("comparison_key") != keys.comparison:
            return None
        return result_of_record(case_record(record))

    def complete(self, key: CaseKey, keys: CaseKeys) -> CaseResult | None:
        """The result on record that need not be tried again: a current one other than JE."""
        result = self.current(key, keys)
        return None if result is None or result.verdict is Verdict.JE else result

    def stored_run(self, key: CaseKey, keys: CaseKeys) -> tuple[CaseResult, bytes | None] | None:
        """A run on record that need not be repeated, with its output where it left one.

        Returns:
            The recorded result (whose verdict may belong to another comparison) and the output
            workbook's bytes; None where the program has to run again.
        """
        record = self._records.get(key)
        if record is None or record.get("run_key") != keys.run:
            return None
        result = result_of_record(case_record(record))
        digest = result.run.get("output_sha256")
        if digest is not None:
            output = self._store.get_workbook(digest)
            return None if output is None else (result, output)
        return None if result.verdict is Verdict.JE else (result, None)


def latest_records(store: RunDirectory) -> dict[CaseKey, Mapping[str, object]]:
    """The last record of each case in cases.jsonl, unchecked but for the case that it is about.

    Raises:
        StoreError: a record does not say which case it is about.
    """
    return {record_key(record): record for record in store.read_records(CASES_FILE)}


def case_records(store: RunDirectory) -> dict[CaseKey, CaseRecord]:
    """The last record of each case in cases.jsonl.

    Raises:
        StoreError: one of them is not of this judge's form.
    """
    return {key: case_record(record) for key, record in latest_records(store).items()}


def record_key(record: Mapping[str, object]) -> CaseKey:
    """Which case a record is about.

    Raises:
        StoreError: the record does not say.
    """
    task, sample, case = (record.get(name) for name in ("task", "sample", "case"))
    if not isinstance(task, str | int) or not isinstance(sample, int) or not isinstance(case, int):
        raise StoreError(
            f"{CASES_FILE}: a record does not say which case it is about: {task!r:.80}, sample "
            f"{sample!r:.80}, case {case!r:.80}",
            hint="Remove the record; its case is judged again.",
        )
    return (str(task), sample, case)


def case_record(record: Mapping[str, object]) -> CaseRecord:
    """A record of cases.jsonl, typed.

    Raises:
        StoreError: a field has a type other than the judge writes, or the verdict is not one of
            this judge's.
    """
    try:
        found = checked(record, CaseRecord)
        Verdict(found["verdict"])
    except (MalformedError, ValueError) as error:
        named = f"{record.get('task')!r:.80}, case {record.get('case')!r:.80}"
        raise StoreError(
            f"{CASES_FILE}: the record of task {named} is not in the form that this judge writes: "
            f"{error}",
            hint="Remove the record; its case is judged again.",
        ) from error
    return found


def record_of_result(keys: CaseKeys, result: CaseResult) -> CaseRecord:
    """Turns a result into the record that is appended to cases.jsonl."""
    return {
        "task": result.task_id,
        "sample": result.sample,
        "case": result.case,
        "verdict": result.verdict.value,
        "phase": result.verdict.phase.value,
        "cause": result.cause,
        "run_key": keys.run,
        "comparison_key": keys.comparison,
        "run": result.run,
        "comparison": result.comparison,
        "timings_s": {name: round(value, 5) for name, value in result.timings_s.items()},
    }


def result_of_record(record: CaseRecord) -> CaseResult:
    """Turns a record of cases.jsonl into a result."""
    return CaseResult(
        task_id=str(record["task"]),
        sample=record["sample"],
        case=record["case"],
        verdict=Verdict(record["verdict"]),
        cause=record.get("cause", ""),
        run=record.get("run", CaseRun()),
        comparison=record.get("comparison", CaseComparison()),
        timings_s=record.get("timings_s", {}),
    )
