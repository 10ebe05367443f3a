from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge.core.finding import DifferenceLocation, FoundDifference, LocationKind, finding_of
from judge.core.records.cases import CaseComparison
from judge.core.verdict import CaseResult, Verdict
from judge.errors import StoreError
from judge.files import json_lines
from judge.files.json_lines import fits_a_line
from judge.grading.case_records import (
    KnownCases,
    case_record,
    case_records,
    record_of_result,
    recordable,
    result_of_record,
)
from judge.grading.keys import CaseKeys
from judge.grading.store import CASES_FILE, RunDirectory

KEY = ("7", 0, 1)
KEYS = CaseKeys("run", "comparison")


def found_by_another_checker() -> CaseResult:
    place = DifferenceLocation(LocationKind.SHEET, "2")
    differences = [FoundDifference("sheet_order", place, "Data", "Notes")]
    comparison = finding_of(differences, units=3).record
    return CaseResult(*KEY, Verdict.WA, cause="another order", comparison=comparison)


def test_kinds_of_other_checkers_are_read_back(tmp_path: Path) -> None:
    result = found_by_another_checker()
    with RunDirectory(tmp_path) as store:
        store.append(CASES_FILE, record_of_result(KEYS, result))
        assert KnownCases(store).complete(KEY, KEYS) == result
        assert result_of_record(case_records(store)[KEY]) == result


def test_a_record_of_other_rules_is_replaced_whatever_it_holds(tmp_path: Path) -> None:
    record: dict[str, Any] = {**record_of_result(KEYS, found_by_another_checker())}
    record["comparison"] = "as it once was"
    with RunDirectory(tmp_path) as store:
        store.append(CASES_FILE, record)
        assert KnownCases(store).complete(KEY, CaseKeys("run", "other rules")) is None
        with pytest.raises(StoreError, match="field 'comparison' must be an object, not text"):
            KnownCases(store).complete(KEY, KEYS)


def test_a_verdict_of_another_judge_is_named() -> None:
    record = {**record_of_result(KEYS, found_by_another_checker()), "verdict": "PE"}
    with pytest.raises(StoreError, match=r"record of task '7', case 1 .* 'PE' is not a valid"):
        case_record(record)


@pytest.mark.parametrize("bound", ["MAX_LINE_BYTES", "MAX_LINE_VALUES"])
def test_a_record_that_nobody_would_read_again_is_a_judge_error(
    bound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines written to cases.jsonl are within the limits of its readers."""
    monkeypatch.setattr(json_lines, bound, 500)
    values: CaseComparison = {"notes": [""] * 600}
    result = CaseResult("1001", 0, 1, Verdict.AC, "said", {"stdout": "x"}, values)
    keys = CaseKeys("r", "c")
    with RunDirectory(tmp_path) as store:
        with pytest.raises(StoreError, match="no command would read it"):
            store.append(CASES_FILE, record_of_result(keys, result))
        kept = recordable(keys, result)
        store.append(CASES_FILE, record_of_result(keys, kept))
        (record,) = case_records(store).values()
    assert (record["verdict"], record["run"], record["comparison"]) == ("JE", {}, {})
    assert "its record is longer" in record["cause"]
    short = CaseResult("1001", 0, 1, Verdict.AC)
    assert recordable(keys, short) is short


def test_writer_and_reader_have_one_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "MAX_LINE_VALUES", 50)
    line = json.dumps({"values": [0] * 60})
    assert not fits_a_line(line)
    (tmp_path / CASES_FILE).write_text(line + "\n")
    with RunDirectory(tmp_path) as store, pytest.raises(StoreError, match="more than 50 values"):
        list(store.read_records(CASES_FILE))
