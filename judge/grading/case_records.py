"""Records of cases.jsonl: results written down, read back, and reused.

A record holds two keys. ``run_key`` is the hash of everything that could change what the program
did; ``comparison_key`` adds everything that could change what the judge says of it. Where both are
as they were, nothing is done; where only the first is, the stored output is judged again and no
code runs.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import replace

from judge.core.records.cases import CaseComparison, CaseRecord, CaseRun
from judge.core.verdict import CaseResult, Verdict
from judge.errors import StoreError
from judge.files.documents import MIB, MalformedError, dump_json
from judge.files.forms import checked
from judge.files.json_lines import MAX_LINE_BYTES, MAX_LINE_VALUES, fits_a_line
from judge.grading.keys import CaseKeys
from judge.grading.store import CASES_FILE, RunDirectory

CaseKey = tuple[str, int, int]
"""(task id, sample, case number)"""


def latest_records(
    store: RunDirectory, only: Container[CaseKey] | None = None
) -> dict[CaseKey, Mapping[str, object]]:
    """The last record of each case in cases.jsonl, unchecked but for the case that it is about.

    Args:
        store: the results directory.
        only: the cases that are requested; None for all, which takes memory for each.

    Raises:
        StoreError: a record does not say which case it is about.
    """
    keyed = ((record_key(record), record) for record in store.read_records(CASES_FILE))
    return {key: record for key, record in keyed if only is None or key in only}


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


def recordable(keys: CaseKeys, result: CaseResult) -> CaseResult:
    """The result; a judge error instead if its record is longer than any command reads."""
    if fits_a_line(dump_json(record_of_result(keys, result))):
        return result
    cause = f"its record is longer than the {MAX_LINE_BYTES // MIB} MiB, or has more than the "
    cause += f"{MAX_LINE_VALUES:,} values, that are read again"
    return replace(result, verdict=Verdict.JE, cause=cause, run=CaseRun(), comparison={})


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
