"""Records of cases.jsonl: results are written, read back and reused.

A record has two keys. ``run_key`` is the hash of everything that could change what the program
does; ``comparison_key`` also includes everything that could change the verdict on its output. If
neither key has changed, nothing is done. If only the comparison key has, the stored output is
judged again and no code runs.

A run may have millions of records: :class:`CaseIndex` holds a few dozen bytes of each (its keys,
its verdict, its offset in the file), and a record is only read when it is needed.
"""

from __future__ import annotations

import copy
import hashlib
from array import array
from collections.abc import Container, Mapping
from dataclasses import replace

from judge.core.records.cases import CaseComparison, CaseRecord, CaseRun
from judge.core.submission import SampleNumbers
from judge.core.verdict import CaseResult, Verdict
from judge.errors import StoreError
from judge.files.documents import MIB, MalformedError, dump_json
from judge.files.forms import checked
from judge.files.json_lines import MAX_LINE_BYTES, MAX_LINE_VALUES, fits_a_line
from judge.grading.keys import CaseKeys
from judge.grading.store import CASES_FILE, RunDirectory

CaseKey = tuple[str, int, int]
"""The key of a case: (task id, sample, case number)."""


def latest_records(
    store: RunDirectory, only: Container[CaseKey] | None = None
) -> dict[CaseKey, Mapping[str, object]]:
    """Reads the last record of each case in cases.jsonl; checks only the key of the case.

    Args:
        store: the results directory.
        only: the cases to read; None for all of them, which takes memory for every case.

    Raises:
        StoreError: a record does not say which case it is about.
    """
    keyed = ((record_key(record), record) for record in store.read_records(CASES_FILE))
    return {key: record for key, record in keyed if only is None or key in only}


def case_records(store: RunDirectory) -> dict[CaseKey, CaseRecord]:
    """Reads the last record of each case in cases.jsonl.

    Raises:
        StoreError: a record does not have the format that this judge writes.
    """
    return {key: case_record(record) for key, record in latest_records(store).items()}


def record_key(record: Mapping[str, object]) -> CaseKey:
    """Returns the key of the case that a record is about.

    Raises:
        StoreError: the record does not contain it.
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
    """Checks a record of cases.jsonl and returns it typed.

    Raises:
        StoreError: a field does not have the type that the judge writes, or this judge does not
            have the verdict.
    """
    try:
        typed = checked(record, CaseRecord)
        Verdict(typed["verdict"])
    except (MalformedError, ValueError) as error:
        named = f"{record.get('task')!r:.80}, case {record.get('case')!r:.80}"
        raise StoreError(
            f"{CASES_FILE}: the record of task {named} does not have the format that this judge "
            f"writes: {error}",
            hint="Remove the record; its case is judged again.",
        ) from error
    return typed


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
    """Returns the result, or a judge error if its record is too long to be read back."""
    if fits_a_line(dump_json(record_of_result(keys, result))):
        return result
    return unrecordable(result)


def unrecordable(result: CaseResult) -> CaseResult:
    """Returns the judge error that is recorded instead of a result whose record is too long."""
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


KEY_BYTES = 16
_IN_ORDER = tuple(Verdict)
_VERDICTS = {verdict.value: number for number, verdict in enumerate(_IN_ORDER)}
_NO_VERDICT = 255


def short_key(key: object) -> bytes:
    """Shortens a reuse key to 16 bytes."""
    return hashlib.sha256(str(key).encode()).digest()[:KEY_BYTES]


class CaseIndex:
    """The position, keys and verdict of the last record of each case.

    Args:
        store: the results directory.

    Raises:
        StoreError: a line is not a JSON object, or does not say which case it is about.
    """

    def __init__(self, store: RunDirectory) -> None:
        self._slots: dict[tuple[str, int], SampleNumbers] = {}
        self._offsets, self._lengths = array("Q"), array("I")
        self._run_keys, self._comparison_keys = bytearray(), bytearray()
        self._verdicts = bytearray()
        for offset, length, record in store.read_placed_records(CASES_FILE):
            task_id, sample, case = record_key(record)
            samples = self._slots.setdefault((task_id, case), SampleNumbers())
            slot = samples.get(sample)
            if slot is None:
                slot = len(self._offsets)
                samples.put(sample, slot)
                self._offsets.append(0)
                self._lengths.append(0)
                self._run_keys += bytes(KEY_BYTES)
                self._comparison_keys += bytes(KEY_BYTES)
                self._verdicts.append(0)
            self._offsets[slot], self._lengths[slot] = offset, length
            self._verdicts[slot] = _VERDICTS.get(str(record.get("verdict")), _NO_VERDICT)
            self._set(self._run_keys, slot, record.get("run_key"))
            self._set(self._comparison_keys, slot, record.get("comparison_key"))

    def __len__(self) -> int:
        return len(self._offsets)

    def slot(self, key: CaseKey) -> int | None:
        """Returns the number of a case in the index; None if it has no record."""
        task_id, sample, case = key
        samples = self._slots.get((task_id, case))
        return None if samples is None else samples.get(sample)

    def has_run_key(self, slot: int, key: str) -> bool:
        """Returns whether the record was made from this run."""
        return self._has(self._run_keys, slot, key)

    def short_comparison_key(self, slot: int) -> bytes:
        """Returns the record's comparison key, shortened to 16 bytes."""
        return bytes(self._comparison_keys[slot * KEY_BYTES : (slot + 1) * KEY_BYTES])

    def has_comparison_key(self, slot: int, key: str) -> bool:
        """Returns whether the record was made from this run and this comparison."""
        return self._has(self._comparison_keys, slot, key)

    def verdict(self, slot: int) -> Verdict | None:
        """Returns the verdict on record; None if this judge has no such verdict."""
        number = self._verdicts[slot]
        return None if number == _NO_VERDICT else _IN_ORDER[number]

    def location(self, slot: int) -> tuple[int, int]:
        """Returns the offset of the record in cases.jsonl, and its length."""
        return self._offsets[slot], self._lengths[slot]

    @staticmethod
    def _set(keys: bytearray, slot: int, key: object) -> None:
        if key is not None:
            keys[slot * KEY_BYTES : (slot + 1) * KEY_BYTES] = short_key(key)
        else:
            keys[slot * KEY_BYTES : (slot + 1) * KEY_BYTES] = bytes(KEY_BYTES)

    @staticmethod
    def _has(keys: bytearray, slot: int, key: str) -> bool:
        return keys[slot * KEY_BYTES : (slot + 1) * KEY_BYTES] == short_key(key)


class BatchKeys:
    """The comparison keys of a batch's cases that have been computed so far, in 16 bytes each.

    Args:
        cases: how many cases there are.
    """

    def __init__(self, cases: int) -> None:
        self._keys = bytearray(cases * KEY_BYTES)

    def put(self, number: int, short: bytes) -> None:
        """Stores the key of a case, shortened to 16 bytes, under its number in the batch."""
        self._keys[number * KEY_BYTES : (number + 1) * KEY_BYTES] = short

    def get(self, number: int) -> bytes | None:
        """Returns the key of a case; None if it has not been computed."""
        key = self._keys[number * KEY_BYTES : (number + 1) * KEY_BYTES]
        return bytes(key) if any(key) else None


class KnownCases:
    """The records of a results directory; the last one of each case counts.

    A record is read and checked when a result with its keys is requested. A record that was made by
    other code or other rules may be out of date and is replaced.

    Args:
        store: the results directory.

    Attributes:
        index: positions, keys and verdicts of the records.
    """

    def __init__(self, store: RunDirectory) -> None:
        self._store = store
        self.index = CaseIndex(store)

    def reopened(self, store: RunDirectory) -> KnownCases:
        """Returns an object with the same index, for a results directory that was opened again."""
        again = copy.copy(self)
        again._store = store  # noqa: SLF001  same class
        return again

    def result(self, slot: int) -> CaseResult:
        """Reads the result of a record by its number in the index.

        Raises:
            StoreError: the record does not have the format that this judge writes.
        """
        return result_of_record(
            case_record(self._store.read_record(CASES_FILE, *self.index.location(slot)))
        )

    def current_slot(self, key: CaseKey, keys: CaseKeys) -> int | None:
        """Finds the record of a case with the same keys, whatever its verdict (including JE)."""
        slot = self.index.slot(key)
        if slot is None:
            return None
        fits = self.index.has_comparison_key(slot, keys.comparison) or (
            keys.former is not None and self.index.has_comparison_key(slot, keys.former.comparison)
        )
        return slot if fits else None

    def short_key(self, key: CaseKey) -> bytes:
        """Returns the recorded comparison key of a case that has a record."""
        slot = self.index.slot(key)
        assert slot is not None, "only of cases on record"
        return self.index.short_comparison_key(slot)

    def slot_of_short_key(self, key: CaseKey, short: bytes) -> int | None:
        """Finds the record of a case with this comparison key of 16 bytes."""
        slot = self.index.slot(key)
        if slot is None or self.index.short_comparison_key(slot) != short:
            return None
        return slot

    def complete(self, key: CaseKey, keys: CaseKeys) -> CaseResult | None:
        """Returns the recorded result if its keys are the same; a JE is tried again instead."""
        slot = self.current_slot(key, keys)
        if slot is None or self.index.verdict(slot) is Verdict.JE:
            return None
        return self.result(slot)

    def verdict(self, key: CaseKey, keys: CaseKeys) -> CaseResult | None:
        """Returns a result that has only the verdict; the record is not read."""
        slot = self.current_slot(key, keys)
        verdict = None if slot is None else self.index.verdict(slot)
        if verdict is None or verdict is Verdict.JE:
            return None
        return CaseResult(*key, verdict)

    def stored_run(self, key: CaseKey, keys: CaseKeys) -> tuple[CaseResult, bytes | None] | None:
        """Finds a recorded run that need not be repeated, with its output if it left one.

        Returns:
            The recorded result (whose verdict may belong to another comparison) and the bytes of
            the output workbook; None if the program has to run again.
        """
        slot = self.index.slot(key)
        if slot is None:
            return None
        fits = self.index.has_run_key(slot, keys.run) or (
            keys.former is not None and self.index.has_run_key(slot, keys.former.run)
        )
        if not fits:
            return None
        result = self.result(slot)
        digest = result.run.get("output_sha256")
        if digest is not None:
            output = self._store.get_workbook(digest)
            return None if output is None else (result, output)
        return None if result.verdict is Verdict.JE else (result, None)
