"""An online judge for spreadsheet work.

The parts that other programs use are reachable from here; each is imported when it is first asked
for, so that ``import judge`` does no work:

- :func:`score`, :func:`run_program`, :class:`ScoreOptions` from :mod:`judge.api`
- :func:`load_suite` from :mod:`judge.dataset`
- :func:`compare_workbooks` from :mod:`judge.compare`
- :func:`recalculate` from :mod:`judge.recalc`
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from judge.api import ScoreOptions, run_program, score
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
    "score",
]

_HOMES = {
    "ScoreOptions": "judge.api",
    "compare_workbooks": "judge.compare",
    "load_suite": "judge.dataset",
    "recalculate": "judge.recalc",
    "run_program": "judge.api",
    "score": "judge.api",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'judge' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
