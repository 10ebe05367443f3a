"""Verdicts that a person changed: who, when and why. The automatic verdicts are kept.

``overrides.jsonl`` of a results directory is append-only. The last record of a case counts; a
record without a verdict reverts the change. The records of cases.jsonl stay as the judge wrote
them. A change applies to one output (or to one run without output): it survives every re-scoring of
that output, but no longer applies once the program has produced a different output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import overload

from judge.core.records.cases import CaseRecord, CaseRun
from judge.core.records.runs import OverrideRecord
from judge.core.verdict import CaseResult, Verdict
from judge.errors import StoreError, UsageError
from judge.files.documents import MalformedError, utc_now
from judge.files.forms import checked
from judge.grading.case_records import CaseKey, KnownCases, case_record, latest_records, record_key
from judge.grading.store import RunDirectory

OVERRIDES_FILE = "overrides.jsonl"


@dataclass(frozen=True, slots=True)
class ManualVerdict:
    """A verdict by a person that replaces the automatic one.

    Attributes:
        automatic: the automatic verdict.
        verdict: the verdict of the person.
        by: the name of the person.
        at: the time of the change, as ISO 8601 in UTC.
        why: the person's reason.
    """

    automatic: str
    verdict: str
    by: str
    at: str
    why: str


@dataclass(frozen=True, slots=True)
class Overrides:
    """The changed verdicts of a results directory that are in effect.

    Attributes:
        applied: changes that are about the outcome on record.
        stale: cases whose change was about an output other than the one on record.
    """

    applied: Mapping[CaseKey, ManualVerdict]
    stale: tuple[CaseKey, ...]

    def apply(self, results: Iterable[CaseResult]) -> list[CaseResult]:
        """Returns the results with changed verdicts; the causes say who changed them and why."""
        return [self._applied(result) for result in results]

    def automatic(self, result: CaseResult) -> Verdict:
        """Returns the judge's own verdict on a case, whether or not a person changed it."""
        manual = self.applied.get((result.task_id, result.sample, result.case))
        return result.verdict if manual is None else Verdict(manual.automatic)

    def _applied(self, result: CaseResult) -> CaseResult:
        manual = self.applied.get((result.task_id, result.sample, result.case))
        if manual is None:
            return result
        cause = f"changed by hand from {manual.automatic} by {manual.by}: {manual.why}"
        return replace(result, verdict=Verdict(manual.verdict), cause=cause)


NO_OVERRIDES = Overrides({}, ())


def read_overrides(store: RunDirectory) -> Overrides:
    """Reads the changes of a results directory and compares them with the outcomes on record.

    Raises:
        StoreError: a record does not have the format that :func:`override_verdict` writes.
    """
    latest = {record_key(record): record for record in store.read_records(OVERRIDES_FILE)}
    changes = {
        key: _override(record)
        for key, record in latest.items()
        if record.get("verdict") is not None
    }
    if not changes:
        return NO_OVERRIDES
    cases = latest_records(store, changes.keys())
    applied: dict[CaseKey, ManualVerdict] = {}
    stale: list[CaseKey] = []
    for key, record in changes.items():
        case = case_record(cases[key]) if key in cases else None
        if case is None or not _is_about(record, case):
            stale.append(key)
        else:
            applied[key] = _manual(record, case["verdict"])
    return Overrides(applied, tuple(stale))


def override_verdict(
    store: RunDirectory, key: CaseKey, verdict: Verdict | None, *, by: str, why: str
) -> ManualVerdict | None:
    """Records that a person changed a verdict.

    Args:
        store: the results directory, locked by this process.
        key: (task id, sample, case number).
        verdict: the new verdict; None restores the judge's verdict.
        by: the name of the person.
        why: the reason.

    Returns:
        The change; None if the judge's verdict was restored.

    Raises:
        UsageError: the name or the reason is missing, or the run has no such case on record.
    """
    if not by.strip() or not why.strip():
        raise UsageError(
            "changing a verdict requires a name and a reason",
            hint='Give both: --by NAME --why "the gold rounds, the instruction does not".',
        )
    latest = latest_records(store, {key}).get(key)
    if latest is None:
        task_id, sample, number = key
        raise UsageError(
            f"{store.path}: has no verdict on case {number} of task {task_id}, sample {sample}",
            hint="Only verdicts on record can be changed; `judge score` makes them.",
        )
    case = case_record(latest)
    output_sha256, run_key = _subject(case)
    record: OverrideRecord = {
        "task": key[0],
        "sample": key[1],
        "case": key[2],
        "verdict": None if verdict is None else verdict.value,
        "automatic": case["verdict"],
        "by": by.strip(),
        "at": utc_now(),
        "why": why.strip(),
        "output_sha256": output_sha256,
        "run_key": run_key,
    }
    store.append(OVERRIDES_FILE, record)
    return None if verdict is None else _manual(record, case["verdict"])


def _override(record: Mapping[str, object]) -> OverrideRecord:
    try:
        override = checked(record, OverrideRecord)
        if override["verdict"] is not None:
            Verdict(override["verdict"])
    except (MalformedError, ValueError) as error:
        raise StoreError(
            f"{OVERRIDES_FILE}: a record is not in the format that this judge writes ({error})",
            hint="Remove the record, and change the verdict again.",
        ) from error
    return override


def _subject(case: CaseRecord) -> tuple[str | None, str | None]:
    """Identifies the outcome that a verdict is about: the output or, without one, the run's key."""
    return case.get("run", CaseRun()).get("output_sha256"), case.get("run_key")


def _is_about(change: OverrideRecord, case: CaseRecord) -> bool:
    output_sha256, run_key = _subject(case)
    if change.get("output_sha256") is not None:
        return change["output_sha256"] == output_sha256
    return output_sha256 is None and change.get("run_key") == run_key


def _manual(change: OverrideRecord, automatic: str) -> ManualVerdict:
    assert change["verdict"] is not None
    return ManualVerdict(
        automatic=automatic,
        verdict=change["verdict"],
        by=change["by"],
        at=change["at"],
        why=change["why"],
    )


class RecordedResults(Sequence[CaseResult]):
    """The results of a run, with verdicts that a person changed.

    Takes eight bytes per result; the index of the records is shared.

    Args:
        path: the results directory.
        recorded_cases: the index of its records.
        slots: the numbers of the records in the index.
        overrides: verdicts that a person changed.
    """

    def __init__(
        self, path: Path, recorded_cases: KnownCases, slots: Sequence[int], overrides: Overrides
    ) -> None:
        self._known = recorded_cases.reopened(RunDirectory(path))
        self._slots = slots
        self._overrides = overrides

    def __len__(self) -> int:
        return len(self._slots)

    @overload
    def __getitem__(self, index: int) -> CaseResult: ...

    @overload
    def __getitem__(self, index: slice) -> list[CaseResult]: ...

    def __getitem__(self, index: int | slice) -> CaseResult | list[CaseResult]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        (result,) = self._overrides.apply([self._known.result(self._slots[index])])
        return result
