from __future__ import annotations

import pytest

from judge.compare.checklists.checker import JudgedItem, checklist_record, item_record, with_gates
from judge.compare.checklists.items import (
    ChecklistOptions,
    Outcome,
    Reading,
    State,
    not_judged,
)
from judge.errors import UsageError

HOLDS, FAILS, OPEN = Outcome(1.0), Outcome(0.0), not_judged("nobody was asked")


def options(*items: dict[str, object], **more: object) -> ChecklistOptions:
    listed = [
        {"id": str(number), "kind": "text", **item} for number, item in enumerate(items, start=1)
    ]
    return ChecklistOptions.of({"items": listed, **more})


def judged(asked: ChecklistOptions, *outcomes: Outcome) -> list[JudgedItem]:
    return [JudgedItem(item, outcome) for item, outcome in zip(asked.items, outcomes, strict=True)]


def test_what_nobody_judged_counts_in_one_share_and_is_left_out_of_the_other() -> None:
    asked = options({"points": 6}, {"points": 2}, {"points": 12, "kind": "llm"}, pass_share=0.3)
    record = checklist_record(judged(asked, HOLDS, FAILS, OPEN), asked, "standard")
    assert record["share_of_all"] == pytest.approx(6 / 20)
    assert record["share_of_judged"] == pytest.approx(6 / 8)
    assert (record["pass_share"], record["passed"]) == (0.3, True)
    llm = record["by_judge"]["llm"]
    assert (llm["points"], llm["judged_points"], llm["judged_items"]) == (12, 0, 0)


def test_groups_with_weights_are_the_weighted_mean_of_their_shares() -> None:
    weights = {"values": {"weight": 2}, "looks": {"weight": 1}}
    asked = options(
        {"points": 100, "group": "values"},
        {"points": 1, "group": "looks"},
        {"points": 3, "group": "looks"},
        groups=weights,
    )
    record = checklist_record(judged(asked, HOLDS, HOLDS, FAILS), asked, "standard")
    assert record["share_of_all"] == pytest.approx((2 * 1.0 + 0.25) / 3)


def test_a_penalty_takes_points_off_and_never_adds_any() -> None:
    asked = options({"points": 10}, {"points": 4, "penalty": True})
    due = checklist_record(judged(asked, HOLDS, FAILS), asked, "standard")
    none = checklist_record(judged(asked, HOLDS, HOLDS), asked, "standard")
    sunk = checklist_record(judged(asked, FAILS, FAILS), asked, "standard")
    assert (due["share_of_all"], none["share_of_all"], sunk["share_of_all"]) == (0.6, 1.0, 0.0)


def test_behind_a_failed_gate_nothing_is_earned_under_official_alone() -> None:
    asked = options({"gates": ["llm"]}, {"kind": "llm", "points": 5})
    entries = judged(asked, FAILS, HOLDS)
    official = with_gates(entries, Reading.OFFICIAL)[1]
    standard = with_gates(entries, Reading.STANDARD)[1]
    assert (official.earned, official.outcome.ended, official.gated_by) == (0, State.FAILS, "1")
    assert (standard.earned, standard.gated_by) == (5, "1")
    # An item that nobody judged is decided by the gate: it earns nothing.
    assert with_gates(judged(asked, FAILS, OPEN), Reading.OFFICIAL)[1].is_judged
    assert with_gates(judged(asked, HOLDS, OPEN), Reading.OFFICIAL)[1].gated_by == ""


def test_a_record_has_both_readings_where_they_differ() -> None:
    asked = options({"words": "Total debt", "points": 20})
    same = JudgedItem(asked.items[0], HOLDS, HOLDS)
    other = JudgedItem(asked.items[0], HOLDS, Outcome(0.0, detail="empty", fault="B1"))
    assert "official" not in item_record(same, Reading.STANDARD)
    record = item_record(other, Reading.STANDARD)
    assert record["official"] == {"state": "fails", "earned": 0.0, "detail": "empty"}
    assert (record["fault"], record["words"], record["earned"]) == ("B1", "Total debt", 20.0)


def test_values_on_record_are_bounded() -> None:
    asked = options({})
    value = {"long": "x" * 10_000, "list": list(range(10_000)), "deep": [[[[[1]]]]]}
    record = item_record(JudgedItem(asked.items[0], Outcome(0.0, value)), Reading.STANDARD)
    assert len(str(record)) < 2_000


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"items": []}, "1 to 2,000 items"),
        ({"items": [{"id": "a", "kind": "cell"}] * 3_000}, "1 to 2,000 items"),
        ({"items": [{"id": "a", "kind": "text"}] * 2}, "two items 'a'"),
        ({"items": [{"id": "a"}]}, "kind is missing"),
        ({"items": [{"id": "a", "kind": "text", "points": -1}]}, "points must be a number"),
        ({"items": [{"id": "a", "kind": "text"}], "groups": {"b": {"weight": 1}}}, "no weight"),
        ({"items": [{"id": "a", "kind": "text"}], "pass_share": 2}, "pass_share"),
        ({"items": [{"id": "a", "kind": "text"}], "pass": 2}, "no option 'pass'"),
    ],
)
def test_what_is_not_a_checklist_is_refused(given: dict[str, object], fault: str) -> None:
    with pytest.raises(UsageError, match=fault):
        ChecklistOptions.of(given)
