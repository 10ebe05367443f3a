"""Judges one workbook by a rule list, for the tests of rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from judge.compare.cells.computing import NoEngines
from judge.compare.contract import GoldFaultError, Rules
from judge.compare.profiles import get_profile
from judge.compare.registry import checker_of
from judge.core.finding import Finding
from judge.core.submission import Answer, Origin
from judge.core.task import CheckerSpec, Gold, Task, TestCase

CORPUS = Path(__file__).parents[3] / "workbook_rules" / "corpus"
PAIR: dict[str, Any] = {"sheet_idx0": 0, "sheet_idx1": "EI0"}
DATA: dict[str, Any] = {"type": "sheet_data", **PAIR}


def find(
    rules: list[dict[str, Any]],
    result: Path | str | bytes,
    gold: Path | str | None,
    *,
    evaluator: str = "spider2v",
    profile: str = "standard",
    compute: Any = None,
) -> Finding:
    """Returns what the checker finds; the names are those of the corpus."""
    golds = () if gold is None else (Gold(CORPUS / gold),)
    spec = CheckerSpec("rules", {"rules": rules, "evaluator": evaluator})
    task = Task("1", "?", "?", (TestCase(1, (), golds),), spec)
    data = result if isinstance(result, bytes) else (CORPUS / result).read_bytes()
    answer = Answer.of_workbook(data, Origin.FINISHED)
    return checker_of(spec).check(
        task, task.cases[0], golds, answer, compute or NoEngines(), Rules(get_profile(profile))
    )


def outcome(*given: Any, **options: Any) -> str:
    """Returns ``equal``, ``different``, ``raises`` (because of the answer) or ``bad test``."""
    try:
        found = find(*given, **options)
    except GoldFaultError:
        return "bad test"
    if options.get("profile") == "official" and "published_error" in found.record:
        return "raises"
    return "equal" if found.agrees else "different"
