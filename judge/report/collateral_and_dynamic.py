"""The two figures reported in addition to the score: collateral damage and dynamic answers. Pure.

A share of tasks has Wilson's interval, which assumes independence: tasks are independent of each
other, but the cases of one task are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from judge.compare.cells.comparison import Dynamic
from judge.core.records.cases import CollateralRecord, DynamicRecord
from judge.core.records.reports import (
    CollateralReport,
    DynamicGroup,
    DynamicReport,
    ShareReport,
)
from judge.core.statistics import Estimate, wilson
from judge.core.verdict import CaseResult, Verdict

_CELLS = ("overwritten", "erased", "formula_to_constant", "added", "other_than_gold", "style")


@dataclass(slots=True)
class CollateralTally:
    """Changes that outputs made outside the answer, counted case by case."""

    counts: Counter[str] = field(default_factory=Counter)
    damage: list[int] = field(default_factory=list)
    accepted_damage: list[int] = field(default_factory=list)
    tasks: dict[str, bool] = field(default_factory=dict)
    accepted_tasks: dict[str, bool] = field(default_factory=dict)
    cells: Counter[str] = field(default_factory=Counter)

    def add(self, result: CaseResult, record: CollateralRecord) -> None:
        """Counts a case."""
        if "damage" not in record:
            self.counts["not_examined"] += 1
            return
        damage, accepted = record["damage"], result.verdict is Verdict.AC
        self.counts["cases"] += 1
        self.counts["accepted"] += accepted
        for tasks in (self.tasks, self.accepted_tasks) if accepted else (self.tasks,):
            tasks[result.task_id] = tasks.get(result.task_id, False) or bool(damage)
        if damage:
            self.damage.append(damage)
            self.accepted_damage += [damage] if accepted else []
        self.counts["with_errors"] += bool(record.get("errors_left"))
        for name in _CELLS:
            count = record.get(name)
            self.cells[name] += count if isinstance(count, int) else 0
        self.counts["adding"] += bool(record.get("added"))

    def share(self) -> Estimate:
        """The share of tasks with damage among those that were examined."""
        return wilson(sum(self.tasks.values()), len(self.tasks))

    def report(self) -> CollateralReport:
        """The figures of report.json."""
        return {
            "cases": self.counts["cases"],
            "not_examined": self.counts["not_examined"],
            "tasks": _share(self.share(), sum(self.tasks.values())),
            "cases_with_damage": len(self.damage),
            "accepted_cases": self.counts["accepted"],
            "accepted_cases_with_damage": len(self.accepted_damage),
            "median_damage": median(self.damage) if self.damage else None,
            "largest_damage": max(self.damage, default=None),
            "accepted_tasks": _share(
                wilson(sum(self.accepted_tasks.values()), len(self.accepted_tasks)),
                sum(self.accepted_tasks.values()),
            ),
            "accepted_median_damage": median(self.accepted_damage)
            if self.accepted_damage
            else None,
            "accepted_largest_damage": max(self.accepted_damage, default=None),
            "cases_with_additions": self.counts["adding"],
            "cases_with_errors_left": self.counts["with_errors"],
            "cells": dict(self.cells),
        }


@dataclass(slots=True)
class DynamicTally:
    """Whether answers follow their inputs, counted output by output."""

    every: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    by_question: dict[str, Counter[str]] = field(default_factory=dict)
    by_change: dict[str, Counter[str]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, result: CaseResult, record: DynamicRecord) -> None:
        """Counts an output."""
        kind = record["class"]
        self.every[kind] += 1
        if "reason" in record:
            self.reasons[record["reason"]] += 1
        if result.verdict is Verdict.AC:
            self.accepted[kind] += 1
            self.by_question.setdefault(record["asked"], Counter())[kind] += 1
            if record["changes"]:
                change = "values" if record["changes"][0]["case"] is None else "cases"
                self.by_change.setdefault(change, Counter())[kind] += 1

    def share(self) -> Estimate:
        """The share of live outputs among those that are accepted and measurable."""
        return wilson(self.accepted[Dynamic.LIVE.value], _measured(self.accepted))

    def report(self) -> DynamicReport:
        """The figures of report.json."""
        return {
            "accepted": _group(self.accepted),
            "every_output": _group(self.every),
            "by_question": {name: _group(part) for name, part in sorted(self.by_question.items())},
            "by_change": {name: _group(part) for name, part in sorted(self.by_change.items())},
            "not_measurable": dict(self.reasons.most_common()),
        }


def _measured(counts: Counter[str]) -> int:
    return counts.total() - counts[Dynamic.NOT_MEASURABLE.value]


def _group(counts: Counter[str]) -> DynamicGroup:
    live = counts[Dynamic.LIVE.value]
    return {
        "live": _share(wilson(live, _measured(counts)), live),
        "classes": {kind.value: counts[kind.value] for kind in Dynamic if counts[kind.value]},
    }


def _share(estimate: Estimate, part: int) -> ShareReport:
    return {
        "part": part,
        "whole": estimate.n,
        "share": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
    }


def collateral_lines(report: CollateralReport) -> Iterator[str]:
    """Lines of text about collateral damage."""
    line = (
        f"collateral damage (outside the answer, left alone by the gold, changed by the output): "
        f"in {_percent(report['tasks'])} of tasks, {report['cases_with_damage']:,} of "
        f"{report['cases']:,} outputs, {report['accepted_cases_with_damage']:,} of the "
        f"{report['accepted_cases']:,} accepted ones"
    )
    if report["median_damage"] is not None:
        line += f"; median {report['median_damage']:g}, largest {report['largest_damage']:,} cells"
    if report["accepted_median_damage"] is not None:
        line += (
            f"; of tasks with accepted outputs {_percent(report['accepted_tasks'])}, median "
            f"{report['accepted_median_damage']:g}, largest "
            f"{report['accepted_largest_damage']:,} cells"
        )
    if report["cases_with_errors_left"]:
        line += f"; {report['cases_with_errors_left']:,} outputs hold error values that are new"
    if report["cases_with_additions"]:
        line += f"; cells were added in {report['cases_with_additions']:,} outputs, "
        line += "which is not damage"
    if report["not_examined"]:
        line += f"; {report['not_examined']:,} outputs could not be examined"
    yield line


_WORDS = {
    Dynamic.LIVE.value: "live",
    Dynamic.HARD_CODED.value: "constants",
    Dynamic.STALE.value: "stale",
    Dynamic.PARTIAL.value: "partial",
    Dynamic.NOT_MEASURABLE.value: "not measurable",
}


def dynamic_lines(report: DynamicReport) -> Iterator[str]:
    """Lines of text about answers that follow their inputs."""
    for name, group in (("accepted", report["accepted"]), ("all", report["every_output"])):
        classes = ", ".join(f"{_WORDS[kind]} {n:,}" for kind, n in group["classes"].items())
        yield (
            f"answers that follow a changed input, of {name} measurable outputs: "
            f"{_percent(group['live'])}" + (f" ({classes})" if classes else "")
        )
    for name, group in report["by_question"].items():
        if not group["live"]["whole"]:
            continue  # nothing could be measured
        constants = group["classes"].get(Dynamic.HARD_CODED.value, 0)
        asks = {
            "formula": "the question asks for a formula",
            "program": "the question asks for a program",
            "nothing": "the question asks for neither, so constants are not a fault",
        }[name]
        live = _percent(group["live"])
        yield f"accepted outputs where {asks}: live {live}, constants {constants:,}"


def _percent(share: ShareReport) -> str:
    if share["share"] is None or share["low"] is None or share["high"] is None:
        return "0 of 0"
    low, high = 100 * share["low"], 100 * share["high"]
    return (
        f"{share['part']:,} of {share['whole']:,} ({100 * share['share']:.1f} % "
        f"[{low:.1f}, {high:.1f}])"
    )
