from __future__ import annotations

import json
from pathlib import Path

import pytest

from judge.errors import StoreError
from judge.suspects.model import (
    MAX_EVIDENCE,
    Audit,
    CaseFiles,
    Certainty,
    Evidence,
    EvidenceFile,
    Problem,
    SignRun,
    Suspect,
    document_of,
    read_suspects,
    write_suspects,
)

SUSPECT = Suspect(
    task="7-1",
    case=2,
    sign="contradicted-input",
    certainty=Certainty.SURE,
    summary="the gold's C8 is 'AAA', the input's is 'BBB'",
    why="the formulas of the answer read C8",
    evidence=(
        Evidence(EvidenceFile.GOLD, "Sheet1", "C8", expected="BBB", found="AAA"),
        Evidence(EvidenceFile.OTHER_CASE, "Sheet1", "C8", expected="X", found="X", case=1),
    ),
)
AUDIT = Audit(
    suite="mine",
    format="spreadsheetbench-v0.1",
    digest="0" * 64,
    tasks=3,
    cases=9,
    suspects=(SUSPECT, Suspect("8", None, "volatile", Certainty.POSSIBLE, "a", "b")),
    files=(CaseFiles("7-1", 2, "1" * 64, None),),
    signs=(SignRun("volatile", "what", ("one", "two"), 3),),
    submissions=("results/a",),
    not_examined={"9": "its checker compares typed answers"},
    problems=(Problem("8", 1, "cannot be read"),),
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "suspects.json"
    write_suspects(path, AUDIT)
    assert read_suspects(path) == AUDIT


def test_fields_that_are_not_known_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "suspects.json"
    document = json.loads(json.dumps(document_of(AUDIT)))
    document["files"][0]["later"] = 1
    document["later"] = {}
    path.write_text(json.dumps(document))
    assert read_suspects(path) == AUDIT


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("schema_version", 2, "schema_version: expected 1, found 2"),
        ("digest", "no hash", "suite.digest"),
        ("suspects", [{}], "suspects"),
    ],
)
def test_a_foreign_file_is_refused_with_its_field(
    tmp_path: Path, field: str, value: object, said: str
) -> None:
    path = tmp_path / "suspects.json"
    document = json.loads(json.dumps(document_of(AUDIT)))
    (document["suite"] if field == "digest" else document)[field] = value
    path.write_text(json.dumps(document))
    with pytest.raises(StoreError, match=said):
        read_suspects(path)


def test_an_unknown_certainty_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "suspects.json"
    text = json.dumps(document_of(AUDIT)).replace('"sure"', '"certain"')
    path.write_text(text)
    with pytest.raises(StoreError, match="expected one of sure, likely, possible"):
        read_suspects(path)


def test_a_missing_file_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        read_suspects(tmp_path / "suspects.json")


def test_evidence_is_bounded_and_counted() -> None:
    many = tuple(Evidence(EvidenceFile.GOLD, "S", f"A{row}") for row in range(1, 101))
    suspect = Suspect("7", 1, "stale", Certainty.SURE, "a", "b", many)
    assert (len(suspect.evidence), suspect.evidence_count) == (MAX_EVIDENCE, 100)


def test_suspects_of_a_case_include_those_of_its_task() -> None:
    assert [each.sign for each in AUDIT.of_case("7-1", 2)] == ["contradicted-input"]
    assert AUDIT.of_case("7-1", 1) == ()
    assert [each.sign for each in AUDIT.of_case("8", 3)] == ["volatile"]
