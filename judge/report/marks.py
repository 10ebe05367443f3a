"""Marks: what models and people say about items of checklists that the judge leaves to them.

``marks.jsonl`` of a results directory is append-only; the last mark of a rater for an item
counts. A mark changes no verdict and no record: it is looked up when points are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import NotRequired, TypedDict

from judge.core.records.cases import ItemRecord, PointsRecord
from judge.core.statistics import Estimate, cohens_kappa, wilson
from judge.errors import StoreError, UsageError
from judge.files.documents import MalformedError
from judge.files.forms import Count, Sha256, checked
from judge.grading.store import RunDirectory
from judge.report.load import LoadedRun, LoadedSubmission

MARKS_FILE = "marks.jsonl"
HOLDS_FROM = 0.6
"""From which score an item counts as holding, as IB-bench has it."""


class MarkRecord(TypedDict):
    """A line of ``marks.jsonl``: a score from 0 to 1 that a rater gives an item of an output.

    ``judged`` is ``llm`` or ``human``. A model's mark has its ``votes``, of which ``score`` is the
    median, their ``agreement`` (1 less their mean distance from it), the hash of the ``prompt``,
    and tokens and cost of all votes.
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
"""Task id, sample, case, item."""


@dataclass(frozen=True, slots=True)
class OpenItem:
    """An item of a case that waits for a mark.

    Attributes:
        submission: the submission.
        case: number of the case.
        output_sha256: hash of its output; None without one.
        record: the item as it is on record.
    """

    submission: LoadedSubmission
    case: int
    output_sha256: str | None
    record: ItemRecord

    @property
    def key(self) -> ItemKey:
        """What a mark names it by."""
        return self.submission.task_id, self.submission.sample, self.case, self.record["id"]


def open_items(run: LoadedRun, judged: str) -> Iterator[OpenItem]:
    """The items of a run that a model (``llm``) or a person (``human``) judges, in suite order."""
    for submission in run.submissions:
        for number, result in sorted(submission.automatic.items()):
            for record in result.comparison.get("items", ()):
                if record["judged"] == judged and record["state"] == "not_judged":
                    yield OpenItem(submission, number, result.run.get("output_sha256"), record)


# -- the file --------------------------------------------------------------------------------------


def read_marks(store: RunDirectory) -> list[MarkRecord]:
    """Every mark of a run that counts: the last one of each rater for each item.

    Raises:
        StoreError: a record is not of the form that this judge writes.
    """
    latest: dict[tuple[ItemKey, str], MarkRecord] = {}
    for record in store.read_records(MARKS_FILE):
        try:
            mark = checked(record, MarkRecord)
        except MalformedError as error:
            raise StoreError(
                f"{MARKS_FILE}: a record is not in the form that this judge writes ({error})",
                hint="Remove the record, and mark the item again.",
            ) from None
        latest[key_of(mark), mark["by"]] = mark
    return list(latest.values())


def key_of(mark: MarkRecord) -> ItemKey:
    """The item that a mark is about."""
    return mark["task"], mark["sample"], mark["case"], mark["item"]


def check_score(value: object, where: str) -> float:
    """A score from 0 to 1.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise UsageError(f"{where}: the score is not a number from 0 to 1")
    return float(value)


# -- points ----------------------------------------------------------------------------------------


def scores_of(marks: Sequence[MarkRecord]) -> dict[ItemKey, float]:
    """The score of each marked item: the mean over its raters."""
    by_item: dict[ItemKey, list[float]] = {}
    for mark in marks:
        by_item.setdefault(key_of(mark), []).append(mark["score"])
    return {key: fmean(scores) for key, scores in by_item.items()}


def points_with_marks(
    run: LoadedRun, marks: Sequence[MarkRecord]
) -> tuple[dict[str, PointsRecord], float, float | None]:
    """The points of all items of a run, marks included.

    Returns:
        The points by judge, and the shares of all points and of the judged points; the second is
        None if nothing is judged. Weights of groups do not count here.
    """
    scores = scores_of(marks)
    sums: dict[str, PointsRecord] = {}
    for submission in run.submissions:
        for number, result in submission.automatic.items():
            for item in result.comparison.get("items", ()):
                key = submission.task_id, submission.sample, number, item["id"]
                _add(sums, item, scores.get(key))
    possible = math.fsum(points["points"] for points in sums.values())
    judged = math.fsum(points["judged_points"] for points in sums.values())
    earned = max(0.0, math.fsum(points["earned"] for points in sums.values()))
    return sums, earned / possible if possible else 0.0, earned / judged if judged else None


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
        points["holding"] += score >= HOLDS_FROM
    else:
        points["earned"] += item["earned"]
        points["holding"] += item["state"] == "holds"


# -- agreement of raters ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """How far two raters agree on the items that both have marked.

    Attributes:
        first, second: their names.
        raw: share of the items on which both say that it holds, or both that it does not.
        kappa: Cohen's kappa of the same.
    """

    first: str
    second: str
    raw: Estimate
    kappa: Estimate


def agreements(marks: Sequence[MarkRecord]) -> list[RaterAgreement]:
    """The agreement of each pair of raters that have marked the same items."""
    by_rater: dict[str, dict[ItemKey, bool]] = {}
    for mark in marks:
        by_rater.setdefault(mark["by"], {})[key_of(mark)] = mark["score"] >= HOLDS_FROM
    found = []
    for first, second in combinations(sorted(by_rater), 2):
        shared = by_rater[first].keys() & by_rater[second].keys()
        pairs = [(by_rater[first][key], by_rater[second][key]) for key in sorted(shared)]
        if pairs:
            same = sum(one == two for one, two in pairs)
            found.append(
                RaterAgreement(first, second, wilson(same, len(pairs)), cohens_kappa(pairs))
            )
    return found


# -- sheets for people -----------------------------------------------------------------------------


def sheet_of(items: Sequence[OpenItem]) -> list[Mapping[str, object]]:
    """A document that a person fills in: the field ``score`` of each item, from 0 to 1."""
    return [
        {
            "task": item.submission.task_id,
            "sample": item.submission.sample,
            "case": item.case,
            "item": item.record["id"],
            "words": item.record["words"],
            "points": item.record["points"],
            "output_sha256": item.output_sha256,
            "score": None,
            "why": "",
        }
        for item in items
    ]


def marks_of_sheet(
    document: object, items: Sequence[OpenItem], by: str, at: str
) -> list[MarkRecord]:
    """The marks of a sheet that was filled in; items without a score are left out.

    Raises:
        UsageError: it is not such a sheet, an item is not of this run, or its output changed.
    """
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise UsageError("the sheet is not a list of items, as `judge checklist sheet` writes it")
    known = {item.key: item for item in items}
    marks = []
    for number, row in enumerate(document, start=1):
        if row.get("score") is None:
            continue
        key = str(row.get("task")), row.get("sample"), row.get("case"), str(row.get("item"))
        item = known.get(key)
        if item is None:
            raise UsageError(f"row {number}: item {key[3]!r} does not wait for a mark in this run")
        if row.get("output_sha256") != item.output_sha256:
            raise UsageError(f"row {number}: the output of task {key[0]} is another one by now")
        marks.append(
            MarkRecord(
                task=key[0],
                sample=item.submission.sample,
                case=item.case,
                item=key[3],
                judged=item.record["judged"],
                by=by,
                at=at,
                score=check_score(row["score"], f"row {number}"),
                output_sha256=item.output_sha256,
                why=str(row.get("why") or "")[:500],
            )
        )
    return marks
