"""An online judge for spreadsheet work.

The parts that other programs use are reachable from here; each is imported when it is first asked
for, so that ``import judge`` does no work:

- :func:`score_results`, :func:`run_program`, :class:`ScoreOptions` from :mod:`judge.api`
- :func:`load_suite` from :mod:`judge.suites`
- :func:`compare_workbooks` from :mod:`judge.api`
- :func:`recalculate` from :mod:`judge.recalc`
- :class:`Report`, :func:`report_data`, :func:`report_html` from :mod:`judge.report`
- :func:`compare_runs`, :func:`rejudge_run`, :func:`change_verdict`, :func:`make_audit`,
  :func:`read_audit` from :mod:`judge.api`
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.api import ScoreOptions, run_program
    from judge.api import score as score_results
    from judge.api.auditing import make_audit, read_audit
    from judge.api.comparing import compare_runs
    from judge.api.rejudging import change_verdict
    from judge.api.rejudging import rejudge as rejudge_run
    from judge.api.workbooks import compare as compare_workbooks
    from judge.recalc import recalculate
    from judge.report.data import report_data
    from judge.report.html import render_run as report_html
    from judge.report.report import Report
    from judge.suites import load_suite

__version__ = "0.1.0"

__all__ = [
    "Report",
    "ScoreOptions",
    "__version__",
    "change_verdict",
    "compare_runs",
    "compare_workbooks",
    "load_suite",
    "make_audit",
    "read_audit",
    "recalculate",
    "rejudge_run",
    "report_data",
    "report_html",
    "run_program",
    "score_results",
]

_HOMES = {
    "Report": ("judge.report.report", "Report"),
    "ScoreOptions": ("judge.api", "ScoreOptions"),
    "change_verdict": ("judge.api.rejudging", "change_verdict"),
    "compare_runs": ("judge.api.comparing", "compare_runs"),
    "compare_workbooks": ("judge.api.workbooks", "compare"),
    "load_suite": ("judge.suites", "load_suite"),
    "make_audit": ("judge.api.auditing", "make_audit"),
    "read_audit": ("judge.api.auditing", "read_audit"),
    "recalculate": ("judge.recalc", "recalculate"),
    # `judge.grading.rejudge` is a module, as `judge.core.score` is below.
    "rejudge_run": ("judge.api.rejudging", "rejudge"),
    "report_data": ("judge.report.data", "report_data"),
    "report_html": ("judge.report.html", "render_run"),
    "run_program": ("judge.api", "run_program"),
    # `judge.core.score` is a module, which would take the place of a function of that name.
    "score_results": ("judge.api", "score"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)
