"""A reviewer's decisions are stored immediately, resumed, and turned into corrections."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from judge.errors import SuiteError, UsageError
from judge.sessions.corrections import Typed
from judge.sessions.review import ReviewPage, ReviewSession
from judge.suites import Suite, load_suite
from judge.suites.corrections import corrected_suite, load_corrections
from judge.suspects.decisions import Finding, decisions_path, read_decisions
from judge.suspects.model import Audit, CaseFiles, Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.cell import CellRef
from tests.unit.annotate.books import values
from tests.unit.report.runs import TABLE, TaskSpec, book, make_suite

GOLD = book((("Name", "Amount"), ("Ann", 1), ("Bob", 7), ("Cyd", 3)))
EVIDENCE = (
    Evidence(EvidenceFile.GOLD, "Sheet1", "B3", expected=2, found=7),
    Evidence(EvidenceFile.INPUT, "Sheet1", "D40", expected=2, found=2),
    Evidence(EvidenceFile.GOLD, "Sheet1", "B3", case=1),
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return make_suite(tmp_path / "suite", [TaskSpec("1", cases=2, gold=GOLD), TaskSpec("2")])


def audit_of(suite: Suite) -> Audit:
    suspects = (
        Suspect("1", 2, "contradicted-input", Certainty.SURE, "B3 is 7", "read", EVIDENCE),
        Suspect("1", 2, "stale", Certainty.LIKELY, "B3 is 7", "its formula gives 2"),
        Suspect("1", None, "volatile", Certainty.POSSIBLE, "TODAY()", "it moves"),
        Suspect("2", 1, "stale", Certainty.POSSIBLE, "B2", "…"),
    )
    files = tuple(
        CaseFiles(
            task.id, case.number, *(hashlib.sha256(p.read_bytes()).hexdigest() for p in case.paths)
        )
        for task in suite.tasks
        for case in task.cases
    )
    return Audit(suite.name, suite.format, suite.digest, 2, 5, suspects, files, ())


def session(suite: Suite, by: str = "Ann") -> ReviewSession:
    folder = suite.root.parent
    return ReviewSession(
        suite, audit_of(suite), folder / "suspects.json", folder / "corrections.yaml", by=by
    )


def fault(session: ReviewSession, place: int, typed: Typed, why: str = "why") -> None:
    session.decide(place, Finding.FAULT, reason=why, evidence="seen", typed=typed)


def statuses(session: ReviewSession) -> list[tuple[str, str | None]]:
    return [(each["status"], each["mine"]) for each in session.overview()["suspects"]]


def written(session: ReviewSession) -> list[tuple[str, int | None, str, str]]:
    found = load_corrections(session.corrections_path)
    return [(each.task, each.case, each.field, each.by) for each in found]


def test_decisions_become_a_file_of_corrections(suite: Suite) -> None:
    ann = session(suite)
    assert statuses(ann) == [("open", None)] * 4
    fault(ann, 0, Typed(cells={2: "B3=2\n'Sheet1'!B4=\n"}))
    ann.decide(1, Finding.FINE, reason="it is so")
    fault(ann, 2, Typed(position="Sheet1!B2:B3", style="fill, bold", left_out=(1,)))
    fault(ann, 3, Typed(task_left_out=True))
    assert statuses(ann) == [
        *(("fault", "fault"), ("fine", "fine"), ("fault", "fault"), ("fault", "fault"))
    ]
    assert written(ann) == [
        ("1", 2, "gold", "Ann"),
        ("1", None, "answer_position", "Ann"),
        ("1", None, "style", "Ann"),
        ("1", 1, "exclude", "Ann"),
        ("2", None, "exclude", "Ann"),
    ]
    made = corrected_suite(suite, ann.corrections_path)
    assert not made.unfit
    gold = made.suite.task("1").cases[1].gold_path.read_bytes()
    assert values(gold, "Sheet1").get((3, 2)) == 2
    assert (4, 2) not in values(gold, "Sheet1")
    # Another session has it all.
    again = session(suite)
    assert statuses(again) == statuses(ann)
    assert again.suspect(0, None, None)["mine"]["typed"]["cells"] == {
        "2": "'Sheet1'!B3=2\n'Sheet1'!B4="
    }
    typed = again.suspect(2, None, None)["mine"]["typed"]
    assert (typed["position"], typed["style"], typed["left_out"]) == (
        *("Sheet1!B2:B3", "fill, bold", [1]),
    )


def test_two_reviewers_do_not_see_each_other_until_they_have_decided(suite: Suite) -> None:
    ann, bob = session(suite), session(suite, "Bob")
    fault(ann, 0, Typed(cells={2: "B3=2"}), "Ann's reason")
    assert statuses(bob)[0] == ("open", None)
    assert bob.suspect(0, None, None)["others"] == []
    fault(bob, 0, Typed(cells={2: "B3=2\nB4=4"}), "Bob's reason")
    assert [each["by"] for each in bob.suspect(0, None, None)["others"]] == ["Ann"]
    (found,) = load_corrections(ann.corrections_path)
    assert (found.by, found.reason) == ("Ann, Bob", "Ann's reason / Bob's reason")
    assert [each.ref for each in found.cells] == [CellRef("Sheet1", 3, 2), CellRef("Sheet1", 4, 2)]
    bob.withdraw(0)
    assert written(bob) == [("1", 2, "gold", "Ann")]
    bob.decide(0, Finding.FINE, reason="seven is meant")
    assert statuses(ann)[0] == ("disputed", "fault")
    assert written(ann) == []
    assert ann.overview()["conflicts"] == [
        "task 1, case 2: reviewers contradict each other on contradicted-input"
    ]
    # Nothing was lost on the way.
    log = read_decisions(decisions_path(suite.root.parent / "suspects.json"))
    assert [(each.by, each.finding) for each in log] == [
        ("Ann", "fault"),
        ("Bob", "fault"),
        ("Bob", None),
        ("Bob", "fine"),
    ]


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        (Typed(cells={2: "B3=2"}), Typed(cells={2: "B3=3"}), "different values of a cell"),
        (Typed(cells={2: "B3=2"}), Typed(left_out=(2,)), "both corrected and left out"),
        (Typed(cells={2: "B3=2"}), Typed(task_left_out=True), "both corrected and left out"),
        (Typed(position="B2"), Typed(position="B3"), "different values of answer_position"),
    ],
)
def test_what_contradicts_itself_is_not_written(
    first: Typed, second: Typed, conflict: str, suite: Suite
) -> None:
    ann = session(suite)
    fault(ann, 0, first)
    fault(ann, 1, second)
    (line,) = ann.overview()["conflicts"]
    assert conflict in line
    assert not [each for each in written(ann) if each[2] in {"gold", "answer_position"}]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (Typed(), "a fault needs a correction"),
        (Typed(cells={2: "B3"}), "'B3' is not CELL=VALUE"),
        (Typed(cells={2: "B3=7"}), "'Sheet1'!B3 already holds this value"),
        (Typed(cells={2: "B3==A1"}), "not a formula"),
        (Typed(cells={2: "Other!B3=1"}), "the gold has no sheet 'Other'"),
        (Typed(cells={2: "B3=1\nB3=2"}), "named twice"),
        (Typed(cells={9: "B3=1"}), "task 1 has no case 9"),
        (Typed(left_out=(9,)), "task 1 has no case 9"),
        (Typed(position="nowhere at all"), "field 'now'"),
        (Typed(position="Sheet1!B2:B4"), "the suite's own"),
        (Typed(style="glitter"), "glitter"),
    ],
)
def test_what_does_not_fit_is_refused_and_not_kept(typed: Typed, said: str, suite: Suite) -> None:
    ann = session(suite)
    with pytest.raises(UsageError, match=said):
        fault(ann, 0, typed)
    assert not ann.log_path.exists()
    assert not ann.corrections_path.exists()


def test_reasons_are_needed(suite: Suite) -> None:
    ann = session(suite)
    with pytest.raises(UsageError, match="a reason is missing"):
        ann.decide(0, Finding.FINE, reason="  ")
    with pytest.raises(UsageError, match="both reasons"):
        ann.decide(0, Finding.FAULT, reason="why", typed=Typed(task_left_out=True))
    with pytest.raises(UsageError, match="you have not decided"):
        ann.withdraw(0)
    with pytest.raises(UsageError, match="no suspect 5"):
        ann.suspect(4, None, None)
    with pytest.raises(UsageError, match="has no case 3"):
        ann.suspect(0, 3, None)


def test_the_evidence_is_in_sight_wherever_it_is(suite: Suite) -> None:
    shown = session(suite).suspect(0, None, None)
    assert shown["case"] == 2
    assert [each["pane"] for each in shown["evidence"]] == ["gold", "input", None]
    blocks: list[dict[str, Any]] = shown["grid"]["blocks"]
    assert [(each["answer"], each["rows"]) for each in blocks] == [
        (["B2:B4"], [[1, 6]]),
        ([], [[38, 5]]),
    ]
    other = session(suite).suspect(0, 1, None)
    assert [each["pane"] for each in other["evidence"]] == [None, None, "gold"]
    json.dumps(shown)


def test_corrections_that_somebody_wrote_by_hand_are_not_replaced(suite: Suite) -> None:
    ann = session(suite)
    fault(ann, 0, Typed(cells={2: "B3=2"}))
    assert session(suite).merged().corrections  # its own file is
    by_hand = ann.corrections_path.read_text().replace("judge verify --review", "seen by me")
    ann.corrections_path.write_text(by_hand)
    with pytest.raises(UsageError, match="corrections that were not written by a review"):
        session(suite)


def test_corrections_that_cannot_be_written_leave_the_decision(suite: Suite) -> None:
    ann = session(suite)
    ann.corrections_path.mkdir()
    with pytest.raises(SuiteError, match="cannot be written"):
        ann.decide(0, Finding.FINE, reason="it is so")
    ann.corrections_path.rmdir()
    assert statuses(session(suite))[0] == ("fine", "fine")


def request(session: ReviewSession, method: str, path: str, **body: object) -> dict[str, Any]:
    """The data that the page's script gets."""
    asked = Request({"type": "http", "query_string": b"place=0&case=1", "headers": []})
    found = ReviewPage(session).respond(method, path, asked, json.dumps(body).encode())
    assert found is not None
    return found


def test_the_page_asks_and_decides(suite: Suite) -> None:
    ann = session(suite)
    assert request(ann, "GET", "/api/suspect")["case"] == 1
    said = {"finding": "fault", "reason": "why", "evidence": "seen", "cells": {"2": "B3=2"}}
    found = request(ann, "POST", "/api/decide", place=0, **said, left_out=[], position="")
    assert (found["written"], found["suspects"][0]["mine"]) == (1, "fault")
    assert request(ann, "POST", "/api/withdraw", place=0)["written"] == 0
    page = ReviewPage(ann)
    text = page.index()
    assert page.token in text
    assert "takeExpected" in text
    assert page.respond("GET", "/api/decide", Request({"type": "http"}), b"") is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"place": "0", "finding": "fine"}, "which suspect"),
        ({"place": True, "finding": "fine"}, "which suspect"),
        ({"place": 0, "finding": "guilty"}, "one of fault, fine, unclear"),
        ({"place": 0, "finding": "fault", "cells": []}, "a reason is missing"),
        ({"place": 0, "finding": "fault", "cells": [1]}, "cells must be given by case"),
        ({"place": 0, "finding": "fault", "cells": {"x": "B3=1"}}, "'x' is not a number"),
    ],
)
def test_requests_that_no_page_makes_are_refused(
    body: dict[str, object], said: str, suite: Suite
) -> None:
    with pytest.raises(UsageError, match=said):
        request(session(suite), "POST", "/api/decide", **body)


def test_only_some_tasks_and_suspects_of_other_files(suite: Suite, tmp_path: Path) -> None:
    paths = (tmp_path / "suspects.json", tmp_path / "corrections.yaml")
    some = ReviewSession(suite, audit_of(suite), *paths, by="Ann", ids={"2"})
    some.decide(0, Finding.FINE, reason="it is so")
    assert [each.task for each in some.suspects] == ["2"]
    assert statuses(session(suite))[3] == ("fine", "fine")
    before = audit_of(suite)
    suite.task("1").cases[1].gold_path.write_bytes(book(TABLE))
    changed = ReviewSession(load_suite(suite.root), before, *paths, by="Ann")
    assert (changed.left_out, [each.task for each in changed.suspects]) == (3, ["2"])
