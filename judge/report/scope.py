"""What the options ``keep`` and ``formula_asked`` found over a run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from judge.core.records.reports import KeptReport, ScopeReport
from judge.core.verdict import CaseResult, Verdict


def scope_of(results: Iterable[CaseResult]) -> ScopeReport | None:
    """The counts of a run; None if neither option was set for any of its cases.

    Args:
        results: the cases that are reported on, verdicts changed by hand in place.
    """
    tally = ScopeTally()
    for result in results:
        tally.add(result)
    return tally.report()


class ScopeTally:
    """The same counted case by case."""

    def __init__(self) -> None:
        self._kept: Counter[str] = Counter()
        self._formula: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._tasks: set[str] = set()

    def add(self, result: CaseResult) -> None:
        """Counts a case."""
        accepted = result.verdict is Verdict.AC
        if (record := result.comparison.get("kept")) is not None:
            self._kept["cases"] += 1
            self._kept["not_examined"] += "problem" in record
            if record.get("lost"):
                self._kept["losing"] += 1
                self._kept["accepted"] += accepted
                self._tasks.add(result.task_id)
                self._kinds.update(record.get("counts", {}).keys())
        if (asked := result.comparison.get("formula_asked")) is not None:
            self._formula["cases"] += 1
            self._formula["not_examined"] += "problem" in asked
            self._formula["asked"] += bool(asked.get("asked") and asked.get("gold_formulas"))
            if asked.get("constants"):
                self._formula["constants"] += 1
                self._formula["accepted"] += accepted

    def report(self) -> ScopeReport | None:
        """The counts; None if neither option was set for any case."""
        scope: ScopeReport = {}
        if self._kept:
            scope["kept"] = self._kept_report()
        if self._formula:
            scope["formula_asked"] = {
                "cases": self._formula["cases"],
                "not_examined": self._formula["not_examined"],
                "asked": self._formula["asked"],
                "constants": self._formula["constants"],
                "accepted_constants": self._formula["accepted"],
            }
        return scope or None

    def _kept_report(self) -> KeptReport:
        kinds = sorted(self._kinds.items(), key=lambda item: (-item[1], item[0]))
        return {
            "cases": self._kept["cases"],
            "not_examined": self._kept["not_examined"],
            "cases_with_losses": self._kept["losing"],
            "tasks_with_losses": len(self._tasks),
            "accepted_cases_with_losses": self._kept["accepted"],
            "by_kind": dict(kinds),
        }


def scope_lines(scope: ScopeReport | None) -> Iterator[str]:
    """The same for people: a line for each option that was set."""
    scope = scope or {}
    if (kept := scope.get("kept")) is not None:
        kinds = ", ".join(
            f"{kind.replace('_', ' ')} {count:,}" for kind, count in kept["by_kind"].items()
        )
        yield (
            f"what the input had and the gold kept is lost in {kept['cases_with_losses']:,} of "
            f"{kept['cases']:,} cases, {kept['accepted_cases_with_losses']:,} of them accepted"
            + (f": {kinds}" if kinds else "")
            + _not_examined(kept["not_examined"])
        )
    if (formula := scope.get("formula_asked")) is not None:
        yield (
            f"constants where the question asks for a formula: {formula['constants']:,} of "
            f"{formula['asked']:,} such cases, {formula['accepted_constants']:,} of them accepted"
            + _not_examined(formula["not_examined"])
        )


def _not_examined(cases: int) -> str:
    return f"; {cases:,} cases could not be examined" if cases else ""
