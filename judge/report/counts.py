"""Counts of a run besides its scores: shares of cells, options of scope, usage, charts. Pure.

Each subject has a tally; cases (or submissions) are added to it one at a time. The results for
people are lines of text.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pkgutil import resolve_name
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from judge.core.records.cases import CaseComparison
from judge.core.records.reports import (
    ChartsReport,
    GroupSharesReport,
    KeptReport,
    Latencies,
    PointsReport,
    ScopeReport,
    UsageReport,
)
from judge.core.records.runs import RecordedUsage
from judge.core.verdict import CaseResult, Verdict

if TYPE_CHECKING:
    from judge.report.collateral_and_dynamic import CollateralTally, DynamicTally


class ShareTally:
    """The shares of cells to change and of cells to keep that are right, eight bytes each.

    Attributes:
        cases: cases that were judged by their groups of cells.
        unreadable: outputs that are not workbooks.
        change: the share of right cells among those to change, for every case that has such cells.
        keep: the share of right cells among those to keep, for every case that has such cells.
    """

    __slots__ = ("cases", "change", "keep", "unreadable")

    def __init__(self) -> None:
        self.cases = self.unreadable = 0
        self.change, self.keep = array("d"), array("d")

    def add(self, result: CaseResult) -> None:
        """Adds a case."""
        self.unreadable += result.verdict is Verdict.IW
        shares = result.comparison.get("shares")
        if shares is not None:
            self.cases += 1
            if (change := shares["modification"]) is not None:
                self.change.append(change)
            if (keep := shares["regression"]) is not None:
                self.keep.append(keep)


def shares_of_tallies(tallies: Sequence[ShareTally]) -> GroupSharesReport:
    """Means over the cases of several tallies, without cases that have no output.

    An output that is not a workbook has no right cells. A group without cells is left out of the
    mean, unless the profile gives it a share.

    Args:
        tallies: the tallies of a group of tasks, in a run that is judged by groups of cells.
    """
    unreadable = sum(tally.unreadable for tally in tallies)
    return {
        "cases": sum(tally.cases for tally in tallies) + unreadable,
        "modification": _mean([share for tally in tallies for share in tally.change], unreadable),
        "regression": _mean([share for tally in tallies for share in tally.keep], unreadable),
    }


def _mean(shares: Sequence[float], unreadable: int) -> float | None:
    counted = [*shares, *[0.0] * unreadable]
    return fmean(counted) if counted else None


def share_lines(groups: Mapping[str, GroupSharesReport | None]) -> Iterator[str]:
    """Lines of text, one for each group that has outputs.

    Args:
        groups: name of a group -> its shares.
    """
    for name, shares in groups.items():
        if shares is not None and shares["cases"]:
            yield (
                f"{name}, {shares['cases']:,} outputs: on average, "
                f"{_percent(shares['modification'])} of the cells to change are right, and "
                f"{_percent(shares['regression'])} of the cells to keep"
            )


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.2f} %"


MAX_NAMED = 20
"""How many tasks whose outputs lost features or formulas are named; the others are counted."""


def _of_figures(name: str) -> Any:
    """Imports a name from a module that only runs with these figures need."""
    return resolve_name(f"judge.report.collateral_and_dynamic:{name}")


def lines_of_points(points: PointsReport | None) -> Iterator[str]:
    """Lines of text about points; their module is imported only for runs with checklists."""
    if points is not None:
        yield from resolve_name("judge.report.checklists:points_lines")(points)


class ScopeTally:
    """Results of the options on scope and on the two figures, counted case by case.

    Attributes:
        collateral: changes outside the answer; None if no case was examined for them.
        dynamic: whether answers follow their inputs; None if no case was examined for it.
    """

    def __init__(self) -> None:
        self._kept: Counter[str] = Counter()
        self._formula: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._tasks: set[str] = set()
        self.collateral: CollateralTally | None = None
        self.dynamic: DynamicTally | None = None

    def add(self, result: CaseResult) -> None:
        """Counts a case, whose verdict already includes manual changes."""
        accepted = result.verdict is Verdict.AC
        if (damage := result.comparison.get("collateral")) is not None:
            self.collateral = self.collateral or _of_figures("CollateralTally")()
            self.collateral.add(result, damage)
        if (dynamic := result.comparison.get("dynamic")) is not None:
            self.dynamic = self.dynamic or _of_figures("DynamicTally")()
            self.dynamic.add(result, dynamic)
        if (record := result.comparison.get("kept")) is not None:
            self._kept["cases"] += 1
            self._kept["not_examined"] += "problem" in record
            if record.get("lost"):
                self._kept["losing"] += 1
                self._kept["accepted"] += accepted
                self._tasks.add(result.task_id)
                self._kinds.update(record.get("counts", {}).keys())
        if (formula := result.comparison.get("formula_asked")) is not None:
            self._formula["cases"] += 1
            self._formula["not_examined"] += "problem" in formula
            self._formula["asked"] += bool(formula.get("asked") and formula.get("gold_formulas"))
            if formula.get("constants"):
                self._formula["constants"] += 1
                self._formula["accepted"] += accepted

    def report(self) -> ScopeReport | None:
        """The counts; None if no option was set for any case."""
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
        if self.collateral is not None:
            scope["collateral"] = self.collateral.report()
        if self.dynamic is not None:
            scope["dynamic"] = self.dynamic.report()
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
            "losing_tasks": sorted(self._tasks)[:MAX_NAMED],
        }


def scope_lines(scope: ScopeReport | None) -> Iterator[str]:
    """Lines of text, one for each option that was set."""
    scope = scope or {}
    if (kept := scope.get("kept")) is not None:
        kinds = ", ".join(
            f"{kind.replace('_', ' ')} {count:,}" for kind, count in kept["by_kind"].items()
        )
        yield (
            f"parts of the input that the gold keeps are lost in {kept['cases_with_losses']:,} of "
            f"{kept['cases']:,} cases, {kept['accepted_cases_with_losses']:,} of them accepted"
            + (f": {kinds}" if kinds else "")
            + _named_tasks(kept)
            + _not_examined(kept["not_examined"])
        )
    if (formula := scope.get("formula_asked")) is not None:
        yield (
            f"constants where the question asks for a formula: {formula['constants']:,} of "
            f"{formula['asked']:,} such cases, {formula['accepted_constants']:,} of them accepted"
            + _not_examined(formula["not_examined"])
        )
    if (collateral := scope.get("collateral")) is not None:
        yield from _of_figures("collateral_lines")(collateral)
    if (dynamic := scope.get("dynamic")) is not None:
        yield from _of_figures("dynamic_lines")(dynamic)


def _named_tasks(kept: KeptReport) -> str:
    """The tasks whose outputs lost something; empty for a report that does not name them."""
    named = kept.get("losing_tasks", [])
    if not named:
        return ""
    others = kept["tasks_with_losses"] - len(named)
    return f"; tasks {', '.join(named)}" + (f" and {others:,} more" if others > 0 else "")


def _not_examined(cases: int) -> str:
    return f"; {cases:,} cases could not be examined" if cases else ""


class UsageTally:
    """Tokens, cost and time of the requests to the chat model, added up by submission."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._retries = self._prompt = self._completion = 0.0
        self._costs, self._seconds, self._latencies = array("d"), array("d"), array("d")

    def add(self, usage: RecordedUsage) -> None:
        """Adds the recorded usage of the requests for a submission."""
        if not usage.is_counted:
            return
        self._counts["submissions"] += 1
        self._counts["calls"] += len(usage.calls)
        self._counts["truncated"] += usage.is_truncated
        self._counts["not_alone"] += usage.stands_alone is False
        self._retries += sum(max(call.attempts - 1, 0) for call in usage.calls)
        self._prompt += usage.prompt_tokens or 0
        self._completion += usage.completion_tokens or 0
        self._seconds.append(usage.seconds or 0)
        if usage.cost_usd is not None:
            self._costs.append(usage.cost_usd)
        self._latencies.extend(
            float(call.latency_s) for call in usage.calls if call.latency_s is not None
        )

    def report(self) -> UsageReport | None:
        """Tokens, cost and time of the submissions, as ``judge infer`` recorded them.

        Returns:
            A JSON object; None if no submission has its tokens on record:

            - ``submissions`` with tokens on record, ``calls`` (including those answered from the
              cache), ``retries`` (attempts beyond the first of a call), ``truncated`` replies,
              ``not_alone`` (solutions that only work together with the programs of earlier rounds);
            - ``prompt_tokens``, ``completion_tokens``;
            - ``cost_usd``, null if the price of some call is not known;
            - ``inference_s``, seconds of all calls together, including waits between attempts;
            - ``latency_s`` of answered calls: ``median``, ``p95``, ``maximum``; null if no call
              was timed.
        """
        submissions = self._counts["submissions"]
        if not submissions:
            return None
        return {
            "submissions": submissions,
            "calls": self._counts["calls"],
            "retries": round(self._retries),
            "truncated": self._counts["truncated"],
            "not_alone": self._counts["not_alone"],
            "prompt_tokens": round(self._prompt),
            "completion_tokens": round(self._completion),
            "cost_usd": round(math.fsum(self._costs), 8)
            if len(self._costs) == submissions
            else None,
            "inference_s": round(math.fsum(self._seconds), 3),
            "latency_s": _latencies(list(self._latencies)),
        }


def _latencies(seconds: list[float]) -> Latencies | None:
    if not seconds:
        return None
    ordered = sorted(seconds)
    return {
        "median": round(median(ordered), 3),
        # The smallest number that at least 95 % do not exceed.
        "p95": ordered[math.ceil(0.95 * len(ordered)) - 1],
        "maximum": ordered[-1],
    }


class ChartsTally:
    """Counts, case by case, how much of the golds' charts the outputs contain.

    The figure is the judge's own. It is not the published score, which comes from a vision model.
    """

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, float]] = {}

    def add(self, result: CaseResult) -> None:
        """Adds a case."""
        if "charts" in result.comparison:
            cases, total = self._sums.get(result.task_id, (0, 0.0))
            share = result.comparison["charts"]["share"]
            self._sums[result.task_id] = cases + 1, total + share

    def report(self) -> ChartsReport | None:
        """The mean share over all cases, and that of each task; None if no case has a share."""
        if not self._sums:
            return None
        cases = sum(count for count, _ in self._sums.values())
        total = sum(shares for _, shares in self._sums.values())
        return {
            "cases": cases,
            "mean_share": round(total / cases, 4),
            "tasks": {task: round(shares / n, 4) for task, (n, shares) in self._sums.items()},
        }


def chart_lines(charts: ChartsReport | None) -> Iterator[str]:
    """Lines of text: one for the mean, one for the tasks."""
    if charts is None:
        return
    yield (
        f"charts of {charts['cases']:,} outputs: on average, {100 * charts['mean_share']:.2f} % of "
        "the properties of the golds' charts are present (this judge's own figure, not the "
        "published score of a vision model)"
    )
    yield "charts by task: " + ", ".join(
        f"{task} {100 * share:.0f} %" for task, share in charts["tasks"].items()
    )


class DifferenceTally:
    """Classes of differences, counted case by case.

    Attributes:
        different: cases that were compared and do not agree.
        cases: class -> cases that show such a difference.
        only: class -> cases whose differences are all of this class.
        cells: class -> differing cells.
    """

    def __init__(self) -> None:
        self.different = 0
        self.cases: Counter[str] = Counter()
        self.only: Counter[str] = Counter()
        self.cells: Counter[str] = Counter()

    def add(self, result: CaseResult) -> None:
        """Adds a case."""
        if result.comparison.get("equal") is not False:
            return
        self.different += 1
        counts = difference_counts(result.comparison)
        self.cases.update(counts.keys())
        self.cells.update(counts)
        if len(counts) == 1:
            self.only.update(counts.keys())


def difference_counts(comparison: CaseComparison) -> dict[str, int]:
    """Class -> number of differing cells in one comparison, for the classes that occur."""
    return {kind: n for kind, n in comparison.get("difference_counts", {}).items() if n}
