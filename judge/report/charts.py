"""How much of the golds' charts outputs have, where a suite asks for charts. Pure.

The figure is the judge's own. It is not the published score, which a vision model gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from judge.core.records.reports import ChartsReport
from judge.core.verdict import CaseResult


class ChartsTally:
    """The figure counted case by case: a sum for each task that has it."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, float]] = {}

    def add(self, result: CaseResult) -> None:
        """Takes a case."""
        if "charts" in result.comparison:
            cases, total = self._sums.get(result.task_id, (0, 0.0))
            share = result.comparison["charts"]["share"]
            self._sums[result.task_id] = cases + 1, total + share

    def report(self) -> ChartsReport | None:
        """The mean over the cases with the figure, and that of each task; None if none has it."""
        if not self._sums:
            return None
        cases = sum(count for count, _ in self._sums.values())
        total = sum(shares for _, shares in self._sums.values())
        return {
            "cases": cases,
            "mean_share": round(total / cases, 4),
            "tasks": {task: round(shares / n, 4) for task, (n, shares) in self._sums.items()},
        }


def charts_of(results: Iterable[CaseResult]) -> ChartsReport | None:
    """The figure of a whole run; None if no case has it."""
    tally = ChartsTally()
    for result in results:
        tally.add(result)
    return tally.report()


def chart_lines(charts: ChartsReport | None) -> Iterator[str]:
    """The same for people: a line for the mean, and one for the tasks."""
    if charts is None:
        return
    yield (
        f"charts of {charts['cases']:,} outputs, compared with the golds' by their facts: on "
        f"average {100 * charts['mean_share']:.2f} % is there (this judge's own figure, not the "
        "published score of a vision model)"
    )
    yield "charts by task: " + ", ".join(
        f"{task} {100 * share:.0f} %" for task, share in charts["tasks"].items()
    )
