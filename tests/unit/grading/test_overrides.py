from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from judge.core.records.cases import CaseRun
from judge.core.verdict import CaseResult, Verdict
from judge.errors import StoreError, UsageError
from judge.grading.case_records import record_of_result
from judge.grading.keys import CaseKeys
from judge.grading.overrides import OVERRIDES_FILE, override_verdict, read_overrides
from judge.grading.store import CASES_FILE, RunDirectory

KEY = ("7", 0, 1)


def judged(
    store: RunDirectory,
    verdict: Verdict,
    *,
    run_key: str = "r",
    output: str | None = "out",
    **rest: Any,
) -> CaseResult:
    """Writes a record, as grading does."""
    run: CaseRun = {} if output is None else {"output_sha256": sha256(output.encode()).hexdigest()}
    result = CaseResult("7", 0, 1, verdict, cause="as the judge says", run=run, **rest)
    store.append(CASES_FILE, record_of_result(CaseKeys(run_key, "c"), result))
    return result


@pytest.fixture
def store(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def test_a_change_says_who_when_and_why(store: RunDirectory) -> None:
    result = judged(store, Verdict.WA)
    change = override_verdict(store, KEY, Verdict.AC, by=" Ann ", why="rounding")
    assert change is not None
    assert (change.automatic, change.verdict, change.by, change.why) == (
        "WA",
        "AC",
        "Ann",
        "rounding",
    )
    assert change.at.endswith("+00:00")
    overrides = read_overrides(store)
    assert overrides.applied == {KEY: change}
    (applied,) = overrides.apply([result])
    assert applied.verdict is Verdict.AC
    assert applied.cause == "changed by hand from WA by Ann: rounding"
    assert overrides.automatic(applied) is Verdict.WA
    assert [record["verdict"] for record in store.read_records(CASES_FILE)] == ["WA"]


def test_a_change_outlives_another_verdict_on_the_same_output(store: RunDirectory) -> None:
    judged(store, Verdict.WA)
    override_verdict(store, KEY, Verdict.AC, by="Ann", why="rounding")
    # Another profile, another sandbox image: the output is the same.
    again = judged(store, Verdict.NC, run_key="another image")
    overrides = read_overrides(store)
    assert overrides.applied[KEY].automatic == "NC"
    assert overrides.apply([again])[0].verdict is Verdict.AC


def test_a_change_does_not_speak_of_another_output(store: RunDirectory) -> None:
    judged(store, Verdict.WA)
    override_verdict(store, KEY, Verdict.AC, by="Ann", why="rounding")
    other = judged(store, Verdict.WA, output="another output")
    overrides = read_overrides(store)
    assert overrides.stale == (KEY,)
    assert overrides.apply([other]) == [other]


def test_a_run_without_an_output_is_known_by_its_key(store: RunDirectory) -> None:
    judged(store, Verdict.TLE, output=None)
    override_verdict(store, KEY, Verdict.BT, by="Ann", why="the input is endless")
    assert KEY in read_overrides(store).applied
    judged(store, Verdict.TLE, output=None, run_key="other limits")
    assert read_overrides(store).stale == (KEY,)


def test_the_last_change_counts_and_can_be_taken_back(store: RunDirectory) -> None:
    judged(store, Verdict.WA)
    override_verdict(store, KEY, Verdict.AC, by="Ann", why="rounding")
    override_verdict(store, KEY, Verdict.BT, by="Bob", why="the gold is at fault")
    assert read_overrides(store).applied[KEY].by == "Bob"
    assert override_verdict(store, KEY, None, by="Ann", why="we were wrong") is None
    assert read_overrides(store).applied == {}
    assert [record["by"] for record in store.read_records(OVERRIDES_FILE)] == ["Ann", "Bob", "Ann"]


def test_nobody_and_no_reason_are_refused(store: RunDirectory) -> None:
    judged(store, Verdict.WA)
    for by, why in (("", "rounding"), ("Ann", " ")):
        with pytest.raises(UsageError, match="requires a name and a reason"):
            override_verdict(store, KEY, Verdict.AC, by=by, why=why)
    with pytest.raises(UsageError, match="no verdict on case 2 of task 7"):
        override_verdict(store, ("7", 0, 2), Verdict.AC, by="Ann", why="rounding")
    assert not (store.path / OVERRIDES_FILE).exists()


def test_a_record_of_another_form_is_named(store: RunDirectory) -> None:
    judged(store, Verdict.WA)
    override_verdict(store, KEY, Verdict.AC, by="Ann", why="rounding")
    path = store.path / OVERRIDES_FILE
    path.write_text(path.read_text().replace('"verdict":"AC"', '"verdict":"GOOD"'))
    with pytest.raises(StoreError, match=r"overrides\.jsonl"):
        read_overrides(store)
