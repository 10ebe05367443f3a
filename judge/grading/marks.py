"""Marks: the recorded scores that models, people and programs give to checklist items.

``marks.jsonl`` of a results directory is append-only; the last mark of a rater for an item counts.
A mark does not change a verdict or another record; it counts only when points are added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import NotRequired, TypedDict

from judge.core.records.cases import ItemRecord, PointsRecord
from judge.core.records.reports import AgreementReport, MarkedPointsReport
from judge.core.statistics import Estimate, cohens_kappa, wilson
from judge.core.verdict import CaseResult
from judge.errors import StoreError
from judge.files.documents import MalformedError
from judge.files.forms import Count, Sha256, checked
from judge.grading.store import MARKS_FILE, RunDirectory

MIN_FULFILLED_SCORE = 0.6
"""The lowest score with which an item counts as fulfilled, as in IB-bench."""

JUDGE = "the judge"
"""The judge's name as a rater, for items that a person marked in an audit."""


class MarkRecord(TypedDict):
    """A line of ``marks.jsonl``: a score from 0 to 1 that a rater gives an item of an output.

    ``judged`` says who judges the item: ``llm``, ``human``, ``program``, or in an audit
    ``deterministic``. A model's mark has its ``votes``, whose median is ``score``; their
    ``agreement`` (1 minus their mean distance from the median); and tokens and cost of all votes.
    ``prompt`` is the hash of the model's whole input, or of the program and its input.
    """

    task: str
    sample: Count
    case: Count
    item: str
    judged: str
    by: str
    at: str
    score: float
    output_sha256: Sha256 | None
    why: NotRequired[str]
    votes: NotRequired[list[float]]
    agreement: NotRequired[float]
    prompt: NotRequired[str]
    prompt_tokens: NotRequired[Count]
    completion_tokens: NotRequired[Count]
    cost_usd: NotRequired[float | None]


ItemKey = tuple[str, int, int, str]
"""The key of a mark: task id, sample, case, item."""


def read_marks(store: RunDirectory) -> list[MarkRecord]:
    """Reads the marks that count in a run: the last mark of each rater for each item.

    Raises:
        StoreError: a record does not have the format that this judge writes.
    """
    latest: dict[tuple[ItemKey, str], MarkRecord] = {}
    for record in store.read_records(MARKS_FILE):
        try:
            mark = checked(record, MarkRecord)
        except MalformedError as error:
            raise StoreError(
                f"{MARKS_FILE}: a record does not have the format that this judge writes ({error})",
                hint="Remove the record, and mark the item again.",
            ) from None
        latest[key_of(mark), mark["by"]] = mark
    return list(latest.values())


def key_of(mark: MarkRecord) -> ItemKey:
    """Returns the key of the item that a mark is about."""
    return mark["task"], mark["sample"], mark["case"], mark["item"]


# -- points ----------------------------------------------------------------------------------------


def scores_of(marks: Sequence[MarkRecord]) -> dict[ItemKey, float]:
    """Computes the score of each marked item: the mean over its raters."""
    by_item: dict[ItemKey, list[float]] = {}
    for mark in marks:
        by_item.setdefault(key_of(mark), []).append(mark["score"])
    return {key: fmean(scores) for key, scores in by_item.items()}


class MarkedPoints:
    """Sums up points by kind of judge; an item that was not judged is scored by its marks.

    Group weights are ignored.

    Args:
        marks: the marks of the run.
    """

    def __init__(self, marks: Sequence[MarkRecord]) -> None:
        self._marks = list(marks)
        self._scores = scores_of(marks)
        self._kinds: dict[ItemKey, str] = {}
        self.by_judge: dict[str, PointsRecord] = {}

    def add(self, result: CaseResult) -> None:
        """Adds the items of a case."""
        for item in result.comparison.get("items", ()):
            key = result.task_id, result.sample, result.case, item["id"]
            score = self._scores.get(key)
            _add(self.by_judge, item, score)
            if score is not None:
                self._kinds[key] = item["kind"]
                if item["state"] != "not_judged":
                    self._marks.append(_of_judge(key, item))

    def shares(self) -> tuple[float, float | None]:
        """The earned shares of all points and of the judged points; None if none were judged."""
        sums = self.by_judge.values()
        possible = math.fsum(points["points"] for points in sums)
        judged = math.fsum(points["judged_points"] for points in sums)
        earned = max(0.0, math.fsum(points["earned"] for points in sums))
        return earned / possible if possible else 0.0, earned / judged if judged else None

    def report(self) -> MarkedPointsReport:
        """Returns the points, how many items each rater marked, and how far the raters agree."""
        of_all, of_judged = self.shares()
        raters: dict[str, int] = {}
        for mark in self._marks:
            if mark["by"] != JUDGE:
                raters[mark["by"]] = raters.get(mark["by"], 0) + 1
        return {
            "by_judge": self.by_judge,
            "share_of_all": of_all,
            "share_of_judged": of_judged,
            "raters": raters,
            "agreement": [pair.report() for pair in self.agreements()],
        }

    def agreements(self) -> list[RaterAgreement]:
        """Computes how far raters, including the judge, agree: on all items and by kind."""
        by_kind: dict[str, list[MarkRecord]] = {}
        for mark in self._marks:
            by_kind.setdefault(self._kinds.get(key_of(mark), ""), []).append(mark)
        single = [
            pair
            for kind, marks in sorted(by_kind.items())
            if kind and len(by_kind) > 1
            for pair in agreements(marks, kind)
        ]
        return [*agreements(self._marks), *single]


def _of_judge(key: ItemKey, item: ItemRecord) -> MarkRecord:
    """The judge's own mark for an item that a person marked in an audit."""
    task, sample, case, name = key
    return MarkRecord(
        task=task,
        sample=sample,
        case=case,
        item=name,
        judged=item["judged"],
        by=JUDGE,
        at="",
        score=float(item["state"] == "holds"),
        output_sha256=None,
    )


def _add(sums: dict[str, PointsRecord], item: ItemRecord, score: float | None) -> None:
    points = sums.setdefault(
        item["judged"],
        {
            "points": 0.0,
            "judged_points": 0.0,
            "earned": 0.0,
            "items": 0,
            "judged_items": 0,
            "holding": 0,
        },
    )
    possible = 0.0 if item.get("penalty") else item["points"]
    is_open = item["state"] == "not_judged"
    points["items"] += 1
    points["points"] += possible
    if is_open and score is None:
        return
    points["judged_items"] += 1
    points["judged_points"] += possible
    if is_open and score is not None:
        lost = item["points"] if item.get("penalty") else 0.0
        points["earned"] += item["points"] * score - lost
        points["holding"] += score >= MIN_FULFILLED_SCORE
    else:
        points["earned"] += item["earned"]
        points["holding"] += item["state"] == "holds"


# -- agreement of raters ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """How far two raters agree on the items that both have marked.

    Attributes:
        first, second: the names of the raters.
        raw: share of the items that both call fulfilled, or both call not fulfilled.
        kappa: Cohen's kappa of the same ratings.
        kind: kind of the items, if all are of one kind; empty for all kinds.
    """

    first: str
    second: str
    raw: Estimate
    kappa: Estimate
    kind: str = ""

    def report(self) -> AgreementReport:
        """Returns the agreement as a record of report.json."""
        kind = {"kind": self.kind} if self.kind else {}
        return {
            "raters": [self.first, self.second],
            **kind,  # type: ignore[typeddict-item]
            "items": self.raw.n,
            "raw": self.raw.value,
            "kappa": self.kappa.value,
            "kappa_low": self.kappa.low,
            "kappa_high": self.kappa.high,
        }


def agreements(marks: Iterable[MarkRecord], kind: str = "") -> list[RaterAgreement]:
    """Computes the agreement of each pair of raters that have marked the same items.

    Args:
        marks: the marks.
        kind: kind of the marked items, which is only copied to the result; empty for all kinds.
    """
    by_rater: dict[str, dict[ItemKey, bool]] = {}
    for mark in marks:
        by_rater.setdefault(mark["by"], {})[key_of(mark)] = mark["score"] >= MIN_FULFILLED_SCORE
    pair_agreements = []
    for first, second in combinations(sorted(by_rater), 2):
        shared = by_rater[first].keys() & by_rater[second].keys()
        pairs = [(by_rater[first][key], by_rater[second][key]) for key in sorted(shared)]
        if pairs:
            same = sum(one == two for one, two in pairs)
            pair_agreements.append(
                RaterAgreement(first, second, wilson(same, len(pairs)), cohens_kappa(pairs), kind)
            )
    return pair_agreements
