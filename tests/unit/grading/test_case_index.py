"""The index of cases.jsonl: the last record counts, and each case takes a few dozen bytes."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from judge.core.submission import SampleNumbers
from judge.core.verdict import CaseResult, Verdict
from judge.errors import StoreError
from judge.grading.case_records import CaseIndex, CaseKey, KnownCases, record_of_result
from judge.grading.keys import CaseKeys
from judge.grading.store import CASES_FILE, RunDirectory


def put(store: RunDirectory, key: CaseKey, verdict: Verdict, *, comparison: str = "c") -> None:
    keys = CaseKeys(f"run of {key}", comparison)
    store.append(CASES_FILE, record_of_result(keys, CaseResult(*key, verdict, cause=str(key))))


def test_the_last_record_of_a_case_counts(tmp_path: Path) -> None:
    first, far = ("1", 0, 1), ("1", 10**15, 1)
    with RunDirectory(tmp_path) as store:
        put(store, first, Verdict.JE)
        put(store, far, Verdict.WA)
        put(store, first, Verdict.AC, comparison="other")
        known = KnownCases(store)
        assert len(known.index) == 2
        slot = known.index.slot(first)
        assert slot is not None
        assert known.index.has_run_key(slot, f"run of {first}")
        assert not known.index.has_run_key(slot, f"run of {far}")
        assert not known.index.has_comparison_key(slot, "c")
        assert known.result(slot).verdict is Verdict.AC
        assert known.complete(first, CaseKeys("", "c")) is None
        again = known.complete(far, CaseKeys("", "c"))
        assert again is not None
        assert (again.sample, again.verdict) == (10**15, Verdict.WA)
        assert known.index.slot(("1", 1, 1)) is known.index.slot(("1", -1, 1)) is None
        put(store, first, Verdict.JE)
        assert KnownCases(store).complete(first, CaseKeys("", "c")) is None, "JE is tried again"
    # What was found stays readable after the directory was closed, by opening it again.
    assert known.reopened(RunDirectory(tmp_path)).result(slot).verdict is Verdict.AC


def test_a_file_that_became_shorter_is_noticed(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as store:
        put(store, ("1", 0, 1), Verdict.AC)
        known = KnownCases(store)
        (tmp_path / CASES_FILE).write_bytes(b"{}\n")
        with pytest.raises(StoreError, match="changed while it was in use"):
            known.result(0)


def test_a_case_takes_a_few_dozen_bytes(tmp_path: Path) -> None:
    cases = 3000
    record = (
        '{"task":"%d","sample":%d,"case":1,"verdict":"AC","run_key":"%d","comparison_key":"c"}\n'
    )
    text = "".join(record % (n % 3, n // 3, n) for n in range(cases))
    (tmp_path / CASES_FILE).write_text(text)
    with RunDirectory(tmp_path) as store:
        tracemalloc.start()
        try:
            index = CaseIndex(store)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert len(index) == cases
    assert held / cases < 100


def test_numbers_of_samples() -> None:
    numbers = SampleNumbers()
    for sample in (5, 0, 10**12, -1):
        numbers.put(sample, sample + 7 if sample >= 0 else 3)
    assert [numbers.get(each) for each in (5, 0, 10**12, -1, 1)] == [12, 7, 10**12 + 7, 3, None]
    assert list(numbers) == [0, 5, 10**12, -1]
