"""What Inspect finds by name: it imports this module through the entry point ``sheetjudge``."""

from __future__ import annotations

from sheetjudge.inspect.metrics import by_type
from sheetjudge.inspect.scorer import judge_verdict
from sheetjudge.inspect.solver import judge_rounds
from sheetjudge.inspect.tasks import babelbench, spreadsheetbench, typed

__all__ = [
    "babelbench",
    "by_type",
    "judge_rounds",
    "judge_verdict",
    "spreadsheetbench",
    "typed",
]
