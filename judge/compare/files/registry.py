"""All metrics, by their published names."""

from __future__ import annotations

from judge.compare.files import databases, documents, notebooks, pages, texts
from judge.compare.files.asked import Asked, Metric, Wrong

WORKBOOK = "compare_table"
"""The metric that is a list of rules over workbooks; see :mod:`judge.compare.rules`."""

INFEASIBLE = "infeasible"
FAIL = "FAIL"
"""What is right to answer to a task that cannot be done."""


def _published_infeasible(asked: Asked) -> float:
    return float(asked.text == FAIL)


def _right_infeasible(asked: Asked) -> Wrong | None:
    given = (asked.text or "").strip()
    return None if given == FAIL else Wrong(FAIL, given[:200] or None, "the task cannot be done")


METRICS: dict[str, Metric] = {
    **texts.METRICS,
    **documents.METRICS,
    **notebooks.METRICS,
    **databases.METRICS,
    **pages.METRICS,
    INFEASIBLE: Metric(_published_infeasible, _right_infeasible),
}

METRIC_NAMES = (WORKBOOK, *METRICS)

RULES_FROM_TASK = {
    "exact_match",
    "check_include_exclude",
    "check_json",
    "check_yaml_file",
    "check_pdf_pages",
}
"""Metrics that compare with what the task states and not with a gold."""
