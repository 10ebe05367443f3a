"""An online judge for spreadsheet work.

What other programs use is reachable from here; each name is imported when it is first asked for, so
that ``import judge`` does no work:

- :class:`Judge` (with :class:`JudgingOptions`) is opened once and judges answers one by one
- :class:`Rewards` makes numbers for training of them
- :func:`score` (with :class:`ScoreOptions`), :func:`run` and :func:`verify` judge what is on disk
- :func:`infer` (with :class:`InferOptions`) asks a chat model for solutions
- :func:`compare_workbooks` compares two workbooks (``judge.compare`` is short for it),
  :func:`recalculate` computes the formulas of one
- :func:`rejudge` and :func:`change_verdict` judge a run again, or one case by hand
- :class:`Report`, :func:`report_data`, :func:`report_html` and :func:`compare_runs` report
- :func:`make_audit` and :func:`read_audit` have a person mark a sample of the verdicts
- :func:`load_suite` loads a suite
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.api.answers import JudgedSubmission
    from judge.api.auditing import make_audit, read_audit
    from judge.api.commands import run, score, verify
    from judge.api.comparing import compare_runs
    from judge.api.infer_options import InferOptions
    from judge.api.inferring import infer
    from judge.api.judging import Judge
    from judge.api.options import JudgingOptions, ScoreOptions
    from judge.api.rejudging import change_verdict, rejudge
    from judge.api.rewards import Rewards
    from judge.api.workbooks import compare_workbooks
    from judge.api.workbooks import compare_workbooks as compare
    from judge.core.submission import Submission
    from judge.recalc import recalculate
    from judge.report.data import report_data
    from judge.report.html import render_run as report_html
    from judge.report.report import Report
    from judge.suites import load_suite
    from judge.version import __version__

__all__ = [
    "InferOptions",
    "Judge",
    "JudgedSubmission",
    "JudgingOptions",
    "Report",
    "Rewards",
    "ScoreOptions",
    "Submission",
    "__version__",
    "change_verdict",
    "compare",
    "compare_runs",
    "compare_workbooks",
    "infer",
    "load_suite",
    "make_audit",
    "read_audit",
    "recalculate",
    "rejudge",
    "report_data",
    "report_html",
    "run",
    "score",
    "verify",
]

# `compare` is the package itself, which can be called: importing one of its modules sets the
# attribute as well.
_HOMES = {
    "InferOptions": ("judge.api.infer_options", "InferOptions"),
    "Judge": ("judge.api.judging", "Judge"),
    "JudgedSubmission": ("judge.api.answers", "JudgedSubmission"),
    "JudgingOptions": ("judge.api.options", "JudgingOptions"),
    "Report": ("judge.report.report", "Report"),
    "Rewards": ("judge.api.rewards", "Rewards"),
    "ScoreOptions": ("judge.api.options", "ScoreOptions"),
    "Submission": ("judge.core.submission", "Submission"),
    "__version__": ("judge.version", "__version__"),
    "change_verdict": ("judge.api.rejudging", "change_verdict"),
    "compare": ("judge.compare", ""),
    "compare_runs": ("judge.api.comparing", "compare_runs"),
    "compare_workbooks": ("judge.api.workbooks", "compare_workbooks"),
    "infer": ("judge.api.inferring", "infer"),
    "load_suite": ("judge.suites", "load_suite"),
    "make_audit": ("judge.api.auditing", "make_audit"),
    "read_audit": ("judge.api.auditing", "read_audit"),
    "recalculate": ("judge.recalc", "recalculate"),
    "rejudge": ("judge.api.rejudging", "rejudge"),
    "report_data": ("judge.report.data", "report_data"),
    "report_html": ("judge.report.html", "render_run"),
    "run": ("judge.api.commands", "run"),
    "score": ("judge.api.commands", "score"),
    "verify": ("judge.api.commands", "verify"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    home, attribute = _HOMES[name]
    module = importlib.import_module(home)
    return getattr(module, attribute) if attribute else module
