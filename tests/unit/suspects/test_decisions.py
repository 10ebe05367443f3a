"""Reviewers' decisions about suspects, and which suspects they set aside."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from judge.errors import StoreError, UsageError
from judge.files.json_lines import LineAppender
from judge.suspects.decisions import (
    Decision,
    Finding,
    SuspectStatus,
    Suspicions,
    decision_of,
    decisions_path,
    fit_to_suite,
    read_decisions,
    read_suspicions,
)
from judge.suspects.model import Audit, CaseFiles, Certainty, Suspect, write_suspects
from tests.unit.report.runs import TaskSpec, make_suite

FAULTY = Suspect("1", 2, "contradicted-input", Certainty.SURE, "C8 is 'AAA'", "formulas read C8")
VOLATILE = Suspect("1", None, "volatile", Certainty.POSSIBLE, "TODAY()", "it moves")
STALE = Suspect("2", 1, "stale", Certainty.LIKELY, "B2 is 3", "its formula gives 4")
FILES = tuple(
    CaseFiles(task, case, "1" * 64, f"{case}" * 64) for task, case in [("1", 1), ("1", 2), ("2", 1)]
)
AUDIT = Audit("made", "spreadsheetbench-v0.1", "0" * 64, 2, 3, (FAULTY, STALE, VOLATILE), FILES, ())


def said(suspect: Suspect, finding: Finding | None, by: str = "Ann") -> Decision:
    files = tuple(each for each in FILES if each.task == suspect.task)
    return Decision(suspect.key, finding, by, "2026-11-01T10:00:00+00:00", "why", "seen", files)


def statuses(*decisions: Decision) -> dict[str, SuspectStatus]:
    points = Suspicions(AUDIT, decisions).reviewed
    return {each.suspect.sign: each.status for each in points}


@pytest.mark.parametrize(
    ("findings", "status"),
    [
        ([], SuspectStatus.OPEN),
        ([("Ann", Finding.FAULT)], SuspectStatus.FAULT),
        ([("Ann", Finding.FINE)], SuspectStatus.FINE),
        ([("Ann", Finding.UNCLEAR)], SuspectStatus.UNCLEAR),
        ([("Ann", Finding.FAULT), ("Bob", Finding.FAULT)], SuspectStatus.FAULT),
        ([("Ann", Finding.FAULT), ("Bob", Finding.FINE)], SuspectStatus.DISPUTED),
        ([("Ann", Finding.FINE), ("Bob", Finding.UNCLEAR)], SuspectStatus.UNCLEAR),
        # The last word of a reviewer counts, and can be taken back.
        ([("Ann", Finding.FAULT), ("Ann", Finding.FINE)], SuspectStatus.FINE),
        ([("Ann", Finding.FAULT), ("Ann", None)], SuspectStatus.OPEN),
    ],
)
def test_the_position_of_a_suspect(
    findings: list[tuple[str, Finding | None]], status: SuspectStatus
) -> None:
    found = statuses(*(said(FAULTY, finding, by) for by, finding in findings))
    assert found["contradicted-input"] is status
    assert found["stale"] is SuspectStatus.OPEN


def test_a_decision_about_another_gold_no_longer_counts() -> None:
    decision = said(FAULTY, Finding.FINE)
    moved = replace(decision, files=(CaseFiles("1", 2, "1" * 64, "f" * 64),))
    assert statuses(moved)["contradicted-input"] is SuspectStatus.OPEN


def test_what_is_set_aside_by_certainty_and_status() -> None:
    suspicions = Suspicions(AUDIT)
    aside = {
        least: [
            (each.task, each.case)
            for each in FILES
            if suspicions.is_set_aside(each.task, each.case, least)
        ]
        for least in Certainty
    }
    assert aside == {
        Certainty.SURE: [("1", 2)],
        Certainty.LIKELY: [("1", 2), ("2", 1)],
        Certainty.POSSIBLE: [("1", 1), ("1", 2), ("2", 1)],
    }
    assert [each.suspect.sign for each in suspicions.of_case("1", 2)] == [
        FAULTY.sign,
        VOLATILE.sign,
    ]
    fine = Suspicions(AUDIT, (said(FAULTY, Finding.FINE), said(STALE, Finding.FAULT)))
    assert not fine.is_set_aside("1", 2, Certainty.SURE)
    assert fine.is_set_aside("2", 1, Certainty.SURE)  # a reviewer is surer than a sign


@pytest.mark.parametrize(
    ("correction", "decisions", "settled"),
    [
        ({"task": "1", "case": 2, "field": "gold"}, (), {"contradicted-input"}),
        ({"task": "1", "field": "answer_position"}, (), {"volatile"}),
        (
            {"task": "1", "field": "answer_position"},
            (said(FAULTY, Finding.FAULT),),
            {"contradicted-input", "volatile"},
        ),
        (
            {"task": "1", "case": 2, "field": "gold"},
            (said(VOLATILE, Finding.FAULT),),
            {"contradicted-input", "volatile"},
        ),
        ({"task": "2", "case": 2, "field": "gold"}, (), set()),
    ],
)
def test_a_correction_settles_what_it_is_about(
    correction: dict[str, object], decisions: tuple[Decision, ...], settled: set[str]
) -> None:
    points = Suspicions(AUDIT, decisions).with_corrections([correction]).reviewed
    assert {p.suspect.sign for p in points if p.status is SuspectStatus.CORRECTED} == settled


def test_decisions_are_next_to_the_suspects(tmp_path: Path) -> None:
    path = tmp_path / "suspects.json"
    write_suspects(path, AUDIT)
    assert read_suspicions(path) == Suspicions(AUDIT)
    correction = {"task": "1", "case": 2, "field": "exclude", "reason": "r"}
    decisions = (replace(said(FAULTY, Finding.FAULT), corrections=(correction,)),)
    log = LineAppender(decisions_path(path))
    for each in decisions:
        log.append(json.dumps(each.to_json()).encode())
    log.append(b'{"task": "torn')
    log.close()
    text = decisions_path(path).read_bytes()
    decisions_path(path).write_bytes(text.removesuffix(b"\n"))
    assert read_suspicions(path) == Suspicions(AUDIT, decisions)


def test_a_foreign_line_is_named(tmp_path: Path) -> None:
    record = decision_of(said(FAULTY, Finding.FINE).to_json()).to_json()
    path = tmp_path / "suspects.decisions.jsonl"
    path.write_text(json.dumps({**record, "finding": "right"}) + "\n")
    with pytest.raises(StoreError, match="line 1: field finding: expected one of fault, fine"):
        read_decisions(path)
    path.write_text(json.dumps({**record, "by": 7}) + "\n")
    with pytest.raises(StoreError, match="by"):
        read_decisions(path)


def test_suspects_fit_a_suite_by_its_digest_or_by_their_files(tmp_path: Path) -> None:
    suite = make_suite(tmp_path / "suite", (TaskSpec("1"), TaskSpec("2")))
    assert (
        fit_to_suite(whole := Suspicions(replace(AUDIT, digest=suite.digest)), suite, "s.json")
        is whole
    )
    with pytest.raises(UsageError, match=f"not of {suite.root}, whose digest is {suite.digest}"):
        fit_to_suite(Suspicions(AUDIT), suite, "s.json")
    case = suite.task("2").cases[0]
    known = CaseFiles("2", 1, *(hashlib.sha256(p.read_bytes()).hexdigest() for p in case.paths))
    part = Suspicions(replace(AUDIT, files=(*FILES[:2], known)))
    assert fit_to_suite(part, suite, "s.json").audit.suspects == (STALE,)
