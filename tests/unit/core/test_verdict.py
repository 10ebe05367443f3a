"""Causes that may be shared: what they reveal about a case, and that they do not quote its gold."""

from __future__ import annotations

from typing import Any

import pytest

from judge.core.verdict import CaseResult, Verdict, cause_without_golds

GOLD = "31415.92653"
COMPARISON: dict[str, Any] = {
    "cells": 7,
    "differing_cells": 2,
    "difference_counts": {"wrong_value": 1, "missing": 1},
    "differences": [{"cell": "", "kind": "missing"}, {"cell": "B3", "kind": "wrong_value"}],
}


@pytest.mark.parametrize("verdict", [Verdict.WA, Verdict.NC, Verdict.BT, Verdict.JE, Verdict.SK])
def test_causes_that_may_quote_a_gold_are_not_shown(verdict: Verdict) -> None:
    result = CaseResult("t", 0, 1, verdict, f"expected {GOLD}", comparison=COMPARISON)  # type: ignore[arg-type]
    assert GOLD not in cause_without_golds(result)


def test_differences_are_counted() -> None:
    result = CaseResult("t", 0, 1, Verdict.WA, f"expected {GOLD}", comparison=COMPARISON)  # type: ignore[arg-type]
    told = cause_without_golds(result)
    assert told == "2 of 7 differ, 1 missing, 1 wrong value, first at B3"


def test_what_the_submission_did_is_shown() -> None:
    assert (
        cause_without_golds(CaseResult("t", 0, 1, Verdict.RE, "KeyError: 'x'")) == "KeyError: 'x'"
    )
    lost = CaseResult("t", 0, 1, Verdict.JE, "sandbox: no space is left")
    assert cause_without_golds(lost) == "sandbox: no space is left"
    assert cause_without_golds(CaseResult("t", 0, 1, Verdict.AC)) == ""
