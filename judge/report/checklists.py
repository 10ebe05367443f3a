"""Sums up the points of checklists over the cases of a run, and writes them as text. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from judge.console import clipped
from judge.core.finding import in_words
from judge.core.records.cases import CaseComparison, ChecklistRecord, ItemRecord, PointsRecord
from judge.core.records.reports import MarkedPointsReport, PointsReport
from judge.core.verdict import CaseResult

if TYPE_CHECKING:
    from judge.grading.marks import MarkedPoints, MarkRecord

JUDGES = {
    "deterministic": "deterministic",
    "llm": "LLM",
    "human": "human",
    "program": "program",
}
"""Who judges an item -> the word for this judge in a line."""

_MAX_VALUE_CHARS = 200


class ItemGroup(TypedDict):
    """A group of items on a page: its points in words, and its items."""

    name: str
    points: str
    items: list[ShownItem]


class ItemsPart(TypedDict):
    """The checklist of a case on its page."""

    lines: list[str]
    groups: list[ItemGroup]


def _marked_points(marks: Sequence[MarkRecord]) -> MarkedPoints:
    from judge.grading.marks import MarkedPoints  # noqa: PLC0415  few runs have checklists

    return MarkedPoints(marks)


class PointsTally:
    """The points of all cases that were judged by a checklist.

    Args:
        marks: the marks given by models, people and programs.
    """

    def __init__(self, marks: Sequence[MarkRecord] = ()) -> None:
        self._marked = _marked_points(marks) if marks else None
        self._cases = self._passing = self._with_pass_share = 0
        self._of_all: list[float] = []
        self._of_judged: list[float] = []
        self._parts: dict[str, dict[str, PointsRecord]] = {
            "by_judge": {},
            "by_group": {},
            "by_kind": {},
        }

    def add(self, result: CaseResult) -> None:
        """Adds a case."""
        record = result.comparison.get("checklist")
        if record is None:
            return
        self._cases += 1
        if self._marked is not None:
            self._marked.add(result)
        self._of_all.append(record["share_of_all"])
        if record["share_of_judged"] is not None:
            self._of_judged.append(record["share_of_judged"])
        if "passed" in record:
            self._with_pass_share += 1
            self._passing += record["passed"]
        for part, points in (
            ("by_judge", record["by_judge"]),
            ("by_group", record["by_group"]),
            ("by_kind", record["by_kind"]),
        ):
            for name, own in points.items():
                before = self._parts[part].get(name)
                self._parts[part][name] = own if before is None else _sum(before, own)

    def report(self) -> PointsReport | None:
        """The sums and the mean of both shares; None if no case has points."""
        if not self._cases:
            return None
        report: PointsReport = {
            "cases": self._cases,
            "by_judge": self._parts["by_judge"],
            "by_group": self._parts["by_group"],
            "by_kind": self._parts["by_kind"],
            "mean_share_of_all": _mean(self._of_all) or 0.0,
            "mean_share_of_judged": _mean(self._of_judged),
            "with_pass_share": self._with_pass_share,
            "passing": self._passing,
        }
        if self._marked is not None:
            report["with_marks"] = self._marked.report()
        return report


def _sum(first: PointsRecord, second: PointsRecord) -> PointsRecord:
    return {
        "points": first["points"] + second["points"],
        "judged_points": first["judged_points"] + second["judged_points"],
        "earned": first["earned"] + second["earned"],
        "items": first["items"] + second["items"],
        "judged_items": first["judged_items"] + second["judged_items"],
        "holding": first["holding"] + second["holding"],
    }


def _mean(shares: Sequence[float]) -> float | None:
    return math.fsum(shares) / len(shares) if shares else None


# -- lines -----------------------------------------------------------------------------------------


def judges_line(by_judge: Mapping[str, PointsRecord]) -> str:
    """The points by kind of judge: ``deterministic 15 of 18 points, LLM 0 of 5 (0 judged)``."""
    parts: list[str] = []
    for judge, word in JUDGES.items():
        points = by_judge.get(judge)
        if points is None:
            continue
        unit = " points" if not parts else ""
        judged = ""
        if judge != "deterministic":
            judged = f" ({points['judged_items']:,} of {points['items']:,} judged)"
        parts.append(f"{word} {points['earned']:,g} of {points['points']:,g}{unit}{judged}")
    return ", ".join(parts)


def points_lines(points: PointsReport | None) -> Iterator[str]:
    """Lines about a run: points by judge, kind and group; mean scores of all and judged points."""
    if points is None:
        return
    yield f"checklists of {points['cases']:,} cases: {judges_line(points['by_judge'])}"
    left_out = points["mean_share_of_judged"]
    yield (
        f"mean score {percent(points['mean_share_of_all'])} of all points (points that were not "
        f"judged count as not earned), {percent(left_out)} of the judged points"
    )
    if points["with_pass_share"]:
        yield (
            f"{points['passing']:,} of {points['with_pass_share']:,} cases pass by the suite's "
            "own share of points"
        )
    yield f"points by kind: {_listed(points['by_kind'])}"
    if set(points["by_group"]) - {""}:
        yield f"points by group: {_listed(points['by_group'])}"
    if "with_marks" in points:
        yield from marks_lines(points["with_marks"])


def marks_lines(marked: MarkedPointsReport) -> Iterator[str]:
    """Lines about points that include marks: who gave the marks, and how far raters agree."""
    raters = ", ".join(f"{name} {count:,}" for name, count in marked["raters"].items())
    with_marks = f"with marks ({raters})" if raters else "without marks"
    yield f"{with_marks}: {judges_line(marked['by_judge'])}"
    yield (
        f"{with_marks.partition(' (')[0]}, {percent(marked['share_of_all'])} of all points, "
        f"{percent(marked['share_of_judged'])} of the judged points"
    )
    for pair in marked["agreement"]:
        kappa = "none" if pair["kappa"] is None else f"{pair['kappa']:.2f}"
        if pair["kappa_low"] is not None and pair["kappa_high"] is not None:
            kappa += f" [{pair['kappa_low']:.2f}, {pair['kappa_high']:.2f}]"
        of = f" of kind {pair['kind']}" if "kind" in pair else ""
        yield (
            f"{' and '.join(pair['raters'])}: agree on {percent(pair['raw'])} of "
            f"{pair['items']:,} items{of}, Cohen's kappa {kappa}"
        )


def _listed(parts: Mapping[str, PointsRecord]) -> str:
    return ", ".join(
        f"{name or 'no group'} {points['earned']:,g} of {points['points']:,g}"
        for name, points in parts.items()
    )


def checklist_lines(record: ChecklistRecord) -> Iterator[str]:
    """Lines about one case: points by judge, under both denominators."""
    yield judges_line(record["by_judge"])
    line = (
        f"score {percent(record['share_of_all'])} of all points, "
        f"{percent(record['share_of_judged'])} of the judged points"
    )
    if "passed" in record:
        outcome = "passes" if record["passed"] else "does not pass"
        line += f"; {outcome} at {percent(record['pass_share'])} of all points"
    yield line


def percent(share: float | None) -> str:
    """A share as a percentage; ``no share`` for None."""
    return "no share" if share is None else f"{100 * share:.1f} %"


def item_lines(item: ItemRecord) -> Iterator[str]:
    """Lines about an item: its state, points and requirement, and below them the findings."""
    state = {"holds": "holds", "fails": "FAILS", "error": "ERROR"}.get(item["state"], "not judged")
    points = f"{item['earned']:g} of {item['points']:g}"
    if item.get("penalty"):
        points = f"{item['earned']:g}, penalty {item['points']:g}"
    yield f"{state:10} {points:>12}  {item['id']}: {item['words']}"
    if item["state"] == "holds" and "official" not in item and "standard" not in item:
        return
    values = [
        f"{name} {_short(item[name])}"
        for name in ("expected", "found")
        if item.get(name) is not None
    ]
    details = [*values, item.get("place", ""), item.get("detail", "")]
    if any(details) and item["state"] != "holds":
        yield f"{'':25}{'; '.join(filter(None, details))}"
    for name in ("official", "standard"):
        reading = item.get(name)
        if isinstance(reading, dict):
            fault = f" (fault {item['fault']})" if "fault" in item else ""
            why = f": {reading['detail']}" if "detail" in reading else ""
            yield f"{'':25}{name}: {reading['state'].replace('_', ' ')}{why}{fault}"


def _short(value: object) -> str:
    return clipped(in_words(value), _MAX_VALUE_CHARS)


# -- pages -----------------------------------------------------------------------------------------


class ShownMark(TypedDict):
    """A mark of an item on a page."""

    by: str
    score: float
    why: str


class ShownItem(ItemRecord):
    """An item on a page, with its marks."""

    marks: list[ShownMark]


def items_part(record: CaseComparison, marks: Sequence[MarkRecord] = ()) -> ItemsPart | None:
    """The items of a case for its page, by group; None if no checklist judged the case.

    Args:
        record: the comparison as recorded.
        marks: the marks of the case.
    """
    checklist = record.get("checklist")
    if checklist is None:
        return None
    marks_by_item: dict[str, list[ShownMark]] = {}
    for mark in marks:
        shown_mark: ShownMark = {
            "by": mark["by"],
            "score": mark["score"],
            "why": mark.get("why", ""),
        }
        marks_by_item.setdefault(mark["item"], []).append(shown_mark)
    groups: dict[str, list[ShownItem]] = {}
    for item in record.get("items", []):
        values = {
            name: _short(item[name]) for name in ("expected", "found") if item.get(name) is not None
        }
        shown: ShownItem = {**item, **values, "marks": marks_by_item.get(item["id"], [])}  # type: ignore[typeddict-item]
        groups.setdefault(item["group"], []).append(shown)
    return {
        "lines": list(checklist_lines(checklist)),
        "groups": [
            {"name": name, "points": _group_points(checklist, name), "items": items}
            for name, items in groups.items()
        ],
    }


def _group_points(checklist: ChecklistRecord, name: str) -> str:
    points = checklist["by_group"].get(name)
    return "" if points is None else f"{points['earned']:g} of {points['points']:g} points"
