"""An online judge for spreadsheet work.

The parts that other programs use are reachable from here; each is imported when it is first asked
for, so that ``import judge`` does no work:

- :func:`score_results`, :func:`run_program`, :class:`ScoreOptions` from :mod:`judge.api`
- :func:`load_suite` from :mod:`judge.dataset`
- :func:`compare_workbooks` from :mod:`judge.compare`
- :func:`recalculate` from :mod:`judge.recalc`
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.api import ScoreOptions, run_program
    from judge.api import score as score_results
    from judge.compare import compare_workbooks
    from judge.dataset import load_suite
    from judge.recalc import recalculate

__version__ = "0.1.0"

__all__ = [
    "ScoreOptions",
    "__version__",
    "compare_workbooks",
    "load_suite",
    "recalculate",
    "run_program",
    "score_results",
]

_HOMES = {
    "ScoreOptions": ("judge.api", "ScoreOptions"),
    "compare_workbooks": ("judge.compare", "compare_workbooks"),
    "load_suite": ("judge.dataset", "load_suite"),
    "recalculate": ("judge.recalc", "recalculate"),
    "run_program": ("judge.api", "run_program"),
    # `judge.score` is a module, which would take the place of a function of that name.
    "score_results": ("judge.api", "score"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)
