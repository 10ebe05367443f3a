"""The sample of rules: finished workbooks and programs get their intended verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from judge.api import ScoreOptions, score
from judge.authoring.proposals import propose
from judge.compare.profiles import get_profile
from judge.core.submission import Answer, Origin, Submission
from judge.core.task import TestCase
from judge.grading.case import CaseJudge, GradingRules
from judge.recalc.policy import Recalculator
from judge.suites import Suite, load_suite
from judge.suites.submissions import load_submissions
from judge.suites.validate import validate_suite
from tests.conftest import REPOSITORY

SAMPLE = REPOSITORY / "dataset" / "sample-rules"
FOREIGN = ("xlsxwriter", "pandas")
"""Packages that only the sandbox has; the end-to-end test runs programs that need them."""

RUN = """
import json, sys

for code in json.load(open(sys.argv[1])):
    exec(compile(code, "program.py", "exec"), {"__name__": "__main__"})
"""


@pytest.fixture(scope="module")
def suite() -> Suite:
    return load_suite("sample-rules")


def test_finished_workbooks_get_their_verdicts(tmp_path: Path) -> None:
    expected = json.loads((SAMPLE / "finished.json").read_text())
    out = tmp_path / "run"
    options = ScoreOptions(dataset="sample-rules", out=out, recalc="never")
    (run,) = score(SAMPLE / "finished", options)
    found = {task["id"]: task["test_case_results"] for task in run.report["tasks"]}
    assert found == expected
    assert {code for codes in expected.values() for code in codes} == {"AC", "WA"}


@pytest.mark.slow
def test_programs_get_their_verdicts(suite: Suite, tmp_path: Path) -> None:
    planned: list[tuple[Submission, TestCase, str, Path]] = []
    programs = []
    for each in load_submissions(SAMPLE / "submissions.jsonl", suite):
        code = each.code or ""
        if any(f"import {name}" in code for name in FOREIGN):
            continue
        verdicts = each.expected * (3 if len(each.expected) == 1 else 1)
        for case, verdict in list(zip(suite.task(each.task_id).cases, verdicts, strict=True))[:2]:
            output = tmp_path / f"{each.task_id}-{each.sample}-{case.number}.xlsx"
            code_of_case = code.replace(each.input_path, str(case.input_path))
            programs.append(code_of_case.replace(each.output_path, str(output)))
            planned.append((each, case, verdict, output))
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(programs))
    subprocess.run([sys.executable, "-c", RUN, plan], check=True, timeout=120)
    judge = CaseJudge(Recalculator((), mode="never"), GradingRules(get_profile("standard")))
    surprises = []
    for each, case, expected, output in planned:
        answer = Answer.of_workbook(output.read_bytes(), Origin.SOLUTION, output.name)
        found = judge.judge(suite.task(each.task_id), case, answer)
        if found.verdict != expected:
            surprises.append((each.task_id, each.label, case.number, found.verdict, found.cause))
    assert not surprises
    assert {each.task_id for each, *_ in planned} == {"chart", "style", "pivot"}
    assert {expected for *_, expected, _ in planned} == {"AC", "WA"}


def _without_names(rule: dict[str, object]) -> dict[str, object]:
    asked = rule.get("chart_props")
    if not isinstance(asked, list):
        return rule
    return {**rule, "chart_props": [each for each in asked if each != "series_names"]}


def test_its_rules_are_those_that_are_proposed_and_the_cells_to_keep(suite: Suite) -> None:
    assert validate_suite(suite) == []
    for task in suite.tasks:
        pairs = [(case.input_path, case.golds[0].path) for case in task.cases]
        proposed = propose([(question, gold) for question, gold in pairs if gold is not None])
        assert proposed.uncovered == ()
        kept = {"type": "sheet_data"}
        rules = [rule for rule in task.checker.options["rules"] if rule["type"] != kept["type"]]  # type: ignore[attr-defined]
        # The question says nothing of the names of series, so the author dropped them.
        assert [_without_names(each.rules[0]) for each in proposed.listed] == rules, task.id
