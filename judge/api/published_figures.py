"""What a suite's own evaluation gives for a folder of results with logs, as part of a report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from judge.core.records.reports import ReportDocument
from judge.core.verdict import CaseResult, Verdict
from judge.errors import SubmissionError, SuiteError
from judge.suites.suite import Suite


def add_published_figures(
    report: ReportDocument, suite: Suite, folder: str | Path | None, results: Iterable[CaseResult]
) -> bool:
    """Adds the published figures to a report; nothing if there are no logs to read.

    They are about the published verdicts, whatever the profile is.

    Args:
        report: the report, which is changed.
        suite: the suite that was answered.
        folder: the folder of finished outputs; None if there is none.
        results: results of the reported outputs.

    Returns:
        Whether something was added.
    """
    if folder is None:
        return False
    accepted: dict[tuple[str, int], bool] = {}
    for result in results:
        key = result.task_id, result.sample
        official = result.comparison.get("official_equal")
        agrees = result.verdict is Verdict.AC if official is None else official
        accepted[key] = accepted.get(key, True) and agrees
    # A folder that is gone leaves the report as it is; each case says so where it matters.
    with contextlib.suppress(SubmissionError, SuiteError):
        if figures := suite.conventions.published_figures(suite.whole, Path(folder), accepted):
            report["published_figures"] = figures
            return True
    return False
