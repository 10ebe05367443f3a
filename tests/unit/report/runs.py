"""Small suites and runs on disk, made for tests."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import openpyxl

from judge.core.records.cases import CaseComparison, CaseRun
from judge.core.records.runs import RunDocument
from judge.core.verdict import CaseResult, Verdict
from judge.grading.case_records import record_of_result
from judge.grading.keys import CaseKeys
from judge.grading.store import CASES_FILE, REPORT_FILE, SUBMISSIONS_FILE, RunDirectory
from judge.report.report_json import build_report
from judge.suites import Suite, load_suite

CELL, SHEET = "Cell-Level Manipulation", "Sheet-Level Manipulation"

Rows = tuple[tuple[Any, ...], ...]
TABLE: Rows = (("Name", "Amount"), ("Ann", 1), ("Bob", 2), ("Cyd", 3))


@cache
def book(*sheets: Rows) -> bytes:
    """Makes a workbook with these rows on its sheets, from A1 on."""
    workbook = openpyxl.Workbook()
    del workbook["Sheet"]
    for number, rows in enumerate(sheets, start=1):
        sheet = workbook.create_sheet(f"Sheet{number}")
        for row in rows:
            sheet.append(row)
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()


@dataclass(frozen=True)
class TaskSpec:
    """A task of a made-up suite: each case has the same input and the same gold."""

    id: str
    kind: str = CELL
    cases: int = 3
    position: str = "Sheet1!B2:B4"
    input: bytes = field(default_factory=lambda: book(TABLE))
    gold: bytes = field(default_factory=lambda: book(TABLE))
    category: str | None = None


def make_suite(folder: Path, tasks: Sequence[TaskSpec]) -> Suite:
    """Writes a suite and loads it."""
    records = []
    for task in tasks:
        place = folder / "spreadsheet" / task.id
        place.mkdir(parents=True)
        for number in range(1, task.cases + 1):
            (place / f"{number}_{task.id}_input.xlsx").write_bytes(task.input)
            (place / f"{number}_{task.id}_answer.xlsx").write_bytes(task.gold)
        record = {
            "id": task.id,
            "instruction": f"Do the work of {task.id}.",
            "spreadsheet_path": f"spreadsheet/{task.id}",
            "instruction_type": task.kind,
            "answer_position": task.position,
        }
        records.append(record | ({"category": task.category} if task.category else {}))
    (folder / "dataset.json").write_text(json.dumps(records), encoding="utf-8")
    return load_suite(str(folder))


@dataclass(frozen=True)
class Solution:
    """A submission of a made-up run: verdicts in case order (None: not run), and its properties.

    A verdict may be a whole :class:`CaseResult`'s other fields: ``("WA", {"cause": "B2"})``.
    """

    task: str
    verdicts: Sequence[str | tuple[str, Mapping[str, Any]] | None]
    sample: int = 0
    record: Mapping[str, Any] = field(default_factory=dict)
    output: bytes | None = None


def make_run(
    folder: Path,
    suite: Suite,
    solutions: Sequence[Solution],
    *,
    report: bool = True,
    **run: Any,
) -> Path:
    """Writes a results directory as ``judge score`` would leave it."""
    described: RunDocument = {
        "suite": {"name": suite.name, "source": str(suite.root), "digest": suite.digest},
        "profile": "standard",
        "style": [],
        "recalc": {"mode": "never", "engine": "auto", "engines": ["never"]},
        "limits": {"cpu_s": 60.0},
        "sandbox": None,
        "judge_version": "0",
        "solutions": "/somewhere/else.jsonl",
    }
    described.update(cast("RunDocument", run))
    results: list[CaseResult] = []
    with RunDirectory(folder) as store:
        store.write_run(described)
        for each in solutions:
            store.append(
                SUBMISSIONS_FILE,
                {"id": each.task, "sample": each.sample, "solution": "pass", **each.record},
            )
            digest = None if each.output is None else store.put_workbook(each.output)
            found = [
                _result(each, number, said, digest)
                for number, said in enumerate(each.verdicts, start=1)
                if said is not None
            ]
            for result in found:
                store.append(CASES_FILE, record_of_result(_keys(result), result))
            results += found
        if report:
            graded = [(suite.task(each.task), each.sample) for each in solutions]
            store.write_document(
                REPORT_FILE,
                build_report(
                    described,
                    graded,
                    results,
                    without_submission=len(suite.tasks) - len({each.task for each in solutions}),
                ),
            )
    return folder


def _result(
    solution: Solution, case: int, said: str | tuple[str, Mapping[str, Any]], digest: str | None
) -> CaseResult:
    code, rest = (said, {}) if isinstance(said, str) else said
    fields: dict[str, Any] = {"cause": "" if code == "AC" else f"{code} for a reason", **rest}
    run: CaseRun = {"status": "ok", "cpu_s": 0.5, "wall_s": 1.0, "peak_memory_bytes": 1_000}
    if digest is not None:
        run["output_sha256"] = digest
    comparison: CaseComparison = {}
    if code in {"AC", "WA", "NC"}:
        counts = {"WA": {"wrong_value": 1}, "NC": {"not_calculated": 2}}.get(code, {})
        comparison = {
            "equal": code == "AC",
            "cells": 3,
            "differing_cells": sum(counts.values()),
            "difference_counts": counts,
            "differences": [],
            "official_equal": code == "AC",
            "computed_cells": {"gold": 0, "output": 0},
        }
    run.update(fields.get("run", {}))
    comparison.update(fields.get("comparison", {}))
    return CaseResult(
        task_id=solution.task,
        sample=solution.sample,
        case=case,
        verdict=Verdict(code),
        cause=fields["cause"],
        run=run,
        comparison=comparison,
        timings_s={"recalculation": 0.25, "comparison": 0.125},
    )


def _keys(result: CaseResult) -> CaseKeys:
    named = f"{result.task_id} {result.sample} {result.case}"
    return CaseKeys(hashlib.sha256(named.encode()).hexdigest(), "as first judged")
