"""Verdicts that a person changed: who, when and why, beside the automatic ones.

``overrides.jsonl`` of a results directory is append-only; the last record of a case counts, and one
without a verdict takes the change back. The records of cases.jsonl stay as the judge wrote them. A
change speaks of one output (or of one run that left none): it outlives every re-scoring of the same
output, and no longer applies once a program has left another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from judge.core.verdict import CaseResult, Verdict
from judge.errors import StoreError, UsageError
from judge.grading.records import CaseKey, record_key
from judge.grading.store import CASES_FILE, RunDirectory

OVERRIDES_FILE = "overrides.jsonl"


@dataclass(frozen=True, slots=True)
class ManualVerdict:
    """A verdict that a person put in the place of the automatic one.

    Attributes:
        automatic: the automatic verdict that stands behind it.
        verdict: what the person said.
        by: who.
        at: when, as ISO 8601 in UTC.
        why: the reason given.
    """

    automatic: str
    verdict: str
    by: str
    at: str
    why: str


@dataclass(frozen=True, slots=True)
class Overrides:
    """The changes of a results directory that count.

    Attributes:
        applied: changes that fit the outcome on record.
        stale: cases whose change was about another output than the one on record.
    """

    applied: Mapping[CaseKey, ManualVerdict]
    stale: tuple[CaseKey, ...]

    def apply(self, results: Iterable[CaseResult]) -> list[CaseResult]:
        """The results with the changed verdicts in place; their causes say who and why."""
        return [self._applied(each) for each in results]

    def automatic(self, result: CaseResult) -> Verdict:
        """What the judge itself said of a case, whether or not somebody changed it."""
        manual = self.applied.get((result.task_id, result.sample, result.case))
        return result.verdict if manual is None else Verdict(manual.automatic)

    def _applied(self, result: CaseResult) -> CaseResult:
        manual = self.applied.get((result.task_id, result.sample, result.case))
        if manual is None:
            return result
        said = f"changed by hand from {manual.automatic} by {manual.by}: {manual.why}"
        return replace(result, verdict=Verdict(manual.verdict), cause=said)


NO_OVERRIDES = Overrides({}, ())


def read_overrides(store: RunDirectory) -> Overrides:
    """The changes of a results directory, held against the outcomes on record.

    Raises:
        StoreError: a record is not of the form that :func:`override_verdict` writes.
    """
    latest = {record_key(record): record for record in store.read_records(OVERRIDES_FILE)}
    changes = {key: record for key, record in latest.items() if record.get("verdict") is not None}
    if not changes:
        return NO_OVERRIDES
    cases = _latest_cases(store)
    applied: dict[CaseKey, ManualVerdict] = {}
    stale: list[CaseKey] = []
    for key, record in changes.items():
        case = cases.get(key)
        if case is None or not _is_about(record, case):
            stale.append(key)
        else:
            applied[key] = _manual(record, str(case.get("verdict")))
    return Overrides(applied, tuple(stale))


def override_verdict(
    store: RunDirectory, key: CaseKey, verdict: Verdict | None, *, by: str, why: str
) -> ManualVerdict | None:
    """Writes down that a person changed a verdict.

    Args:
        store: the results directory, locked by this process.
        key: (task id, sample, case number).
        verdict: the verdict from now on; None gives the case back to the judge.
        by: who says so.
        why: the reason.

    Returns:
        The change; None where the case was given back.

    Raises:
        UsageError: nobody says so, there is no reason, or the run has no such case on record.
    """
    if not by.strip() or not why.strip():
        raise UsageError(
            "a verdict is changed by somebody and for a reason",
            hint='Give both: --by NAME --why "the gold rounds, the instruction does not".',
        )
    case = _latest_cases(store).get(key)
    if case is None:
        task_id, sample, number = key
        raise UsageError(
            f"{store.path}: has no verdict on case {number} of task {task_id}, sample {sample}",
            hint="Only verdicts on record can be changed; `judge score` makes them.",
        )
    record = {
        "task": key[0],
        "sample": key[1],
        "case": key[2],
        "verdict": None if verdict is None else verdict.value,
        "automatic": case.get("verdict"),
        "by": by.strip(),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "why": why.strip(),
        **_subject(case),
    }
    store.append(OVERRIDES_FILE, record)
    return None if verdict is None else _manual(record, str(case.get("verdict")))


def read_history(store: RunDirectory) -> Sequence[Mapping[str, object]]:
    """Every change that was ever made, in order, those that were taken back included."""
    return list(store.read_records(OVERRIDES_FILE))


def _latest_cases(store: RunDirectory) -> dict[CaseKey, Mapping[str, object]]:
    return {record_key(record): record for record in store.read_records(CASES_FILE)}


def _subject(case: Mapping[str, object]) -> dict[str, object]:
    """What a verdict is about: the output, or the run where it left none."""
    run = case.get("run")
    output = run.get("output_sha256") if isinstance(run, dict) else None
    return {"output_sha256": output, "run_key": case.get("run_key")}


def _is_about(record: Mapping[str, object], case: Mapping[str, object]) -> bool:
    now = _subject(case)
    if record.get("output_sha256") is not None:
        return record["output_sha256"] == now["output_sha256"]
    return now["output_sha256"] is None and record.get("run_key") == now["run_key"]


def _manual(record: Mapping[str, object], automatic: str) -> ManualVerdict:
    try:
        return ManualVerdict(
            automatic=automatic,
            verdict=Verdict(str(record["verdict"])).value,
            by=str(record["by"]),
            at=str(record["at"]),
            why=str(record["why"]),
        )
    except (KeyError, ValueError) as error:
        raise StoreError(
            f"{OVERRIDES_FILE}: a record is not of this judge's form ({error})",
            hint="Take the record out, and change the verdict again.",
        ) from error
