from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from judge.core.records.reports import UsageReport
from judge.core.records.runs import RecordedUsage, recorded_usage
from judge.core.verdict import Verdict
from judge.report.counts import UsageTally
from judge.report.report_json import build_report
from tests.unit.report.test_summary import CELL, make_result, make_task


def call(**rest: Any) -> dict[str, Any]:
    return {"attempts": 1, "latency_s": 2.0, "cached": False} | rest


RECORDS: list[dict[str, Any]] = [
    {
        "tokens": {"prompt": 100, "completion": 10},
        "cost": 0.25,
        "seconds": 3.5,
        "truncated": True,
        "stands_alone": None,
        "calls": [call(attempts=3), call(latency_s=4.0)],
    },
    {
        "tokens": {"prompt": 50, "completion": 5},
        "cost": 0.5,
        "seconds": 1.0,
        "truncated": False,
        "stands_alone": False,
        "calls": [call(latency_s=9.0, cached=True), call(latency_s=1.0)],
    },
]


def usage_of(submissions: Iterable[RecordedUsage]) -> UsageReport | None:
    tally = UsageTally()
    for usage in submissions:
        tally.add(usage)
    return tally.report()


def test_usage() -> None:
    assert usage_of(map(recorded_usage, RECORDS)) == {
        "submissions": 2,
        "calls": 4,
        "retries": 2,
        "truncated": 1,
        "not_alone": 1,
        "prompt_tokens": 150,
        "completion_tokens": 15,
        "cost_usd": 0.75,
        "inference_s": 4.5,
        "latency_s": {"median": 2.0, "p95": 4.0, "maximum": 4.0},
    }


def test_what_is_not_known_is_not_zero() -> None:
    assert usage_of([]) is None
    assert usage_of([recorded_usage({"solution": "x"})]) is None
    free = usage_of(map(recorded_usage, [RECORDS[0] | {"cost": None}, RECORDS[1]]))
    assert free is not None
    assert free["cost_usd"] is None
    foreign = usage_of(
        [recorded_usage({"tokens": {"prompt": "many"}, "calls": ["?"], "seconds": "long"})]
    )
    assert foreign is not None
    assert (foreign["prompt_tokens"], foreign["calls"], foreign["latency_s"]) == (0, 0, None)


def test_samples_and_usage_are_in_the_report() -> None:
    task = make_task("7", 1, CELL)
    verdicts = [Verdict.AC, Verdict.WA, Verdict.AC]
    results = [
        make_result("7", 1, verdict, sample=sample) for sample, verdict in enumerate(verdicts)
    ]
    report: Any = build_report(
        {}, [(task, sample) for sample in range(3)], results, usages=map(recorded_usage, RECORDS)
    )
    assert report["repeated_runs"]["samples"] == 3
    assert report["repeated_runs"]["pass_at"] == pytest.approx({"1": 2 / 3, "2": 1, "3": 1})
    assert report["usage"]["prompt_tokens"] == 150
    alone: Any = build_report({}, [(task, 0)], results)
    assert "repeated_runs" not in alone
    assert "usage" not in alone
