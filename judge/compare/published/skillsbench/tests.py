"""Every test of SkillsBench's workbook tasks by task and name."""

from __future__ import annotations

from collections.abc import Mapping

from judge.compare.published.skillsbench.attempt import Attempt, Test, TestOutcome
from judge.compare.published.skillsbench.objects import OBJECT_TESTS
from judge.compare.published.skillsbench.values import VALUE_TESTS
from judge.compare.rules.published_error import PublishedError, Side

TESTS: Mapping[str, Mapping[str, Test]] = {**OBJECT_TESTS, **VALUE_TESTS}
"""Task -> name of a test, as pytest writes it -> the test."""

OUTPUTS: Mapping[str, str] = {
    "exceltable-in-ppt": "/root/results.pptx",
    "jpg-ocr-stat": "/app/workspace/stat_ocr.xlsx",
    "powerlifting-coef-calc": "/root/data/openipf.xlsx",
    "protein-expression-analysis": "/root/protein_expression.xlsx",
    "sales-pivot-analysis": "/root/demographic_analysis.xlsx",
    "weighted-gdp-calc": "/root/gdp.xlsx",
    "xlsx-recover-data": "/root/nasa_budget_recovered.xlsx",
}
"""Task -> the file that its tests open."""


def judge_test(task: str, name: str, attempt: Attempt) -> TestOutcome:
    """Returns the result of a published test.

    Args:
        task: the task, such as ``jpg-ocr-stat``.
        name: the test as pytest names it.
        attempt: the files that it checks.

    Raises:
        PublishedError: the task has no such test.
    """
    test = TESTS.get(task, {}).get(name)
    if test is None:
        raise PublishedError("UsageError", f"not found: {task} {name}", Side.RULES)
    return test.outcome(attempt)
