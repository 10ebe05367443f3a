"""What is on record of many cases, in a few dozen bytes for each: keys, verdicts, places.

The records themselves stay in cases.jsonl and are read when they are needed.
"""

from __future__ import annotations

import hashlib
from array import array

from judge.core.sample_numbers import SampleNumbers
from judge.core.verdict import Verdict
from judge.grading.case_records import CaseKey, record_key
from judge.grading.store import CASES_FILE, RunDirectory

KEY_BYTES = 16
_IN_ORDER = tuple(Verdict)
_VERDICTS = {verdict.value: number for number, verdict in enumerate(_IN_ORDER)}
_NO_VERDICT = 255


def short_key(key: object) -> bytes:
    """A reuse key in 16 bytes."""
    return hashlib.sha256(str(key).encode()).digest()[:KEY_BYTES]


class CaseIndex:
    """Where the last record of each case is, and what decides whether it still counts.

    Args:
        store: the results directory.

    Raises:
        StoreError: a line is not a JSON object, or does not say which case it is about.
    """

    def __init__(self, store: RunDirectory) -> None:
        self._slots: dict[tuple[str, int], SampleNumbers] = {}
        self._places, self._lengths = array("Q"), array("I")
        self._run_keys, self._comparison_keys = bytearray(), bytearray()
        self._verdicts = bytearray()
        for place, length, record in store.read_placed_records(CASES_FILE):
            task_id, sample, case = record_key(record)
            samples = self._slots.setdefault((task_id, case), SampleNumbers())
            slot = samples.get(sample)
            if slot is None:
                slot = len(self._places)
                samples.put(sample, slot)
                self._places.append(0)
                self._lengths.append(0)
                self._run_keys += bytes(KEY_BYTES)
                self._comparison_keys += bytes(KEY_BYTES)
                self._verdicts.append(0)
            self._places[slot], self._lengths[slot] = place, length
            self._verdicts[slot] = _VERDICTS.get(str(record.get("verdict")), _NO_VERDICT)
            self._set(self._run_keys, slot, record.get("run_key"))
            self._set(self._comparison_keys, slot, record.get("comparison_key"))

    def __len__(self) -> int:
        return len(self._places)

    def slot(self, key: CaseKey) -> int | None:
        """The number of a case in the index; None if it has no record."""
        task_id, sample, case = key
        samples = self._slots.get((task_id, case))
        return None if samples is None else samples.get(sample)

    def has_run_key(self, slot: int, key: str) -> bool:
        """Whether the record is of this run."""
        return self._has(self._run_keys, slot, key)

    def short_comparison_key(self, slot: int) -> bytes:
        """The key of the record's comparison in 16 bytes."""
        return bytes(self._comparison_keys[slot * KEY_BYTES : (slot + 1) * KEY_BYTES])

    def has_comparison_key(self, slot: int, key: str) -> bool:
        """Whether the record is of this run and this comparison."""
        return self._has(self._comparison_keys, slot, key)

    def verdict(self, slot: int) -> Verdict | None:
        """The verdict on record; None if it is none of this judge's."""
        number = self._verdicts[slot]
        return None if number == _NO_VERDICT else _IN_ORDER[number]

    def place(self, slot: int) -> tuple[int, int]:
        """Where the record is in cases.jsonl, and its length."""
        return self._places[slot], self._lengths[slot]

    @staticmethod
    def _set(keys: bytearray, slot: int, key: object) -> None:
        if key is not None:
            keys[slot * KEY_BYTES : (slot + 1) * KEY_BYTES] = short_key(key)
        else:
            keys[slot * KEY_BYTES : (slot + 1) * KEY_BYTES] = bytes(KEY_BYTES)

    @staticmethod
    def _has(keys: bytearray, slot: int, key: str) -> bool:
        return keys[slot * KEY_BYTES : (slot + 1) * KEY_BYTES] == short_key(key)
