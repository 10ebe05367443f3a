"""What a results directory already knows of a case, looked up by its reuse keys."""

from __future__ import annotations

import copy

from judge.core.verdict import CaseResult, Verdict
from judge.grading.case_index import KEY_BYTES, CaseIndex
from judge.grading.case_records import CaseKey, case_record, result_of_record
from judge.grading.keys import CaseKeys
from judge.grading.store import CASES_FILE, RunDirectory


class BatchKeys:
    """The comparison keys of the cases of a batch, as far as they are known; 16 bytes for each.

    Args:
        cases: how many cases there are.
    """

    def __init__(self, cases: int) -> None:
        self._keys = bytearray(cases * KEY_BYTES)

    def put(self, number: int, short: bytes) -> None:
        """Notes the key of a case, in 16 bytes, by its number in the batch."""
        self._keys[number * KEY_BYTES : (number + 1) * KEY_BYTES] = short

    def get(self, number: int) -> bytes | None:
        """The key of a case; None where it is not known."""
        found = self._keys[number * KEY_BYTES : (number + 1) * KEY_BYTES]
        return bytes(found) if any(found) else None


class KnownCases:
    """The records of a results directory; the last one of each case counts.

    A record is read and checked when its keys are requested: one made by other code or other rules
    may be out of date, and is replaced.

    Args:
        store: the results directory.

    Attributes:
        index: where the records are.
    """

    def __init__(self, store: RunDirectory) -> None:
        self._store = store
        self.index = CaseIndex(store)

    def reopened(self, store: RunDirectory) -> KnownCases:
        """The same index for a results directory that was opened again."""
        again = copy.copy(self)
        again._store = store  # noqa: SLF001  of the same class
        return again

    def result(self, slot: int) -> CaseResult:
        """The result of a record by its number in the index.

        Raises:
            StoreError: the record is not of this judge's form.
        """
        return result_of_record(
            case_record(self._store.read_record(CASES_FILE, *self.index.place(slot)))
        )

    def current_slot(self, key: CaseKey, keys: CaseKeys) -> int | None:
        """The record whose verdict nothing has changed since; JE as well."""
        slot = self.index.slot(key)
        if slot is None:
            return None
        fits = self.index.has_comparison_key(slot, keys.comparison) or (
            keys.former is not None and self.index.has_comparison_key(slot, keys.former.comparison)
        )
        return slot if fits else None

    def short_key(self, key: CaseKey) -> bytes:
        """The key of the comparison on record of a case that has a record."""
        slot = self.index.slot(key)
        assert slot is not None, "only of cases on record"
        return self.index.short_comparison_key(slot)

    def slot_of_short_key(self, key: CaseKey, short: bytes) -> int | None:
        """The record of a case, if it is of the comparison with this key of 16 bytes."""
        slot = self.index.slot(key)
        if slot is None or self.index.short_comparison_key(slot) != short:
            return None
        return slot

    def complete(self, key: CaseKey, keys: CaseKeys) -> CaseResult | None:
        """The result on record that need not be tried again: a current one other than JE."""
        slot = self.current_slot(key, keys)
        if slot is None or self.index.verdict(slot) is Verdict.JE:
            return None
        return self.result(slot)

    def verdict(self, key: CaseKey, keys: CaseKeys) -> CaseResult | None:
        """The same without its record, which is not read: only the verdict."""
        slot = self.current_slot(key, keys)
        verdict = None if slot is None else self.index.verdict(slot)
        if verdict is None or verdict is Verdict.JE:
            return None
        return CaseResult(*key, verdict)

    def stored_run(self, key: CaseKey, keys: CaseKeys) -> tuple[CaseResult, bytes | None] | None:
        """A run on record that need not be repeated, with its output where it left one.

        Returns:
            The recorded result (whose verdict may belong to another comparison) and the output
            workbook's bytes; None where the program has to run again.
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
