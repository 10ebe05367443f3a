"""Reports of runs with very many cases: what they leave out, so that they fit into memory.

Scores, intervals, breakdowns and distributions are those of every case. What is about a single
case (its entry, its page, its conversation, its differences) is left out; ``cases.jsonl`` and
``submissions.jsonl`` have it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from judge.core.records.cases import CaseComparison, CaseRun
from judge.core.records.runs import SubmissionRecord
from judge.core.verdict import CaseResult
from judge.errors import StoreError
from judge.files.documents import opened_regular
from judge.files.json_lines import MAX_LINES_BYTES
from judge.grading.store import CASES_FILE, RunDirectory

MAX_SHOWN_CASES = 100_000
"""A report of more cases has no entry for each of them; so many take about a gigabyte."""

MAX_EXCLUSIONS = 10_000
"""Of cases that are in no score, so many are named then."""

LARGE_NOTE = (
    "the run has {cases:,} cases, more than the {most:,} up to which a report lists and shows "
    "each: its numbers are those of all cases, cases.jsonl and report.json have the single ones"
)

_OF_RUN = ("cpu_s", "wall_s", "peak_memory_bytes", "output_bytes")
_OF_COMPARISON = (
    "equal", "official_equal", "cells", "difference_counts", "shares", "kept", "formula_asked",
)  # fmt: skip
_OF_SUBMISSION = (
    "id", "sample", "instruction_type", "calls", "model", "setting", "rounds", "tokens", "cost",
    "seconds", "truncated", "stands_alone",
)  # fmt: skip
_NO_RUN, _NO_COMPARISON = CaseRun(), CaseComparison()


def is_large(store: RunDirectory) -> bool:
    """Whether a run has more records than a report shows cases of.

    Raises:
        StoreError: cases.jsonl is too long, or something other than a file.
    """
    lines = 0
    with opened_regular(store.path / CASES_FILE, StoreError, MAX_LINES_BYTES) as file:
        while file is not None and (piece := file.read(1 << 20)):
            lines += piece.count(b"\n")
            if lines > MAX_SHOWN_CASES:
                return True
    return False


def without_details(result: CaseResult) -> CaseResult:
    """What the numbers of a report need of a result."""
    run = {name: result.run[name] for name in _OF_RUN if result.run.get(name)}  # type: ignore[literal-required]
    comparison = {
        name: result.comparison[name]  # type: ignore[literal-required]
        for name in _OF_COMPARISON
        if name in result.comparison
    }
    return replace(
        result,
        cause="" if result.verdict.is_scored else result.cause,
        run=cast("CaseRun", run) if run else _NO_RUN,
        comparison=cast("CaseComparison", comparison) if comparison else _NO_COMPARISON,
        timings_s={name: value for name, value in result.timings_s.items() if name != "run"},
    )


def without_texts(record: SubmissionRecord) -> SubmissionRecord:
    """What the numbers of a report need of a submission: what asking for it took."""
    kept = {name: value for name, value in record.items() if name in _OF_SUBMISSION}
    return cast("SubmissionRecord", kept)
