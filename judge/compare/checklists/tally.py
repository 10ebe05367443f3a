"""Adds up the points of a list of items by judge, group and kind, as shares of two totals.

An item that was not judged is never dropped: in one share it earns none of its points, and in the
other its points are left out of the total.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from judge.compare.checklists.items import (
    ChecklistOptions,
    Item,
    Judged,
    Outcome,
    Reading,
    State,
)
from judge.compare.checklists.kinds import kind_of, words_of
from judge.core.records.cases import ChecklistRecord, ItemReading, ItemRecord, PointsRecord

_LONGEST = 400
"""Longest recorded string, in characters; a longer string is cut and ends with an ellipsis."""
_MAX_LISTED = 20
_MAX_NESTED = 3


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """An item with its outcomes.

    Attributes:
        item: the item.
        outcome: the outcome under the reading that counts.
        other: the outcome under the other reading; None if the item was not judged under it.
        gated_by: id of the failed item because of which this item earns nothing under
            ``official``; empty if no gate failed.
    """

    item: Item
    outcome: Outcome
    other: Outcome | None = None
    gated_by: str = ""

    @property
    def judged(self) -> Judged:
        """Who judges the item."""
        return kind_of(self.item).judged

    @property
    def is_judged(self) -> bool:
        """Whether the item has been judged."""
        return self.outcome.ended is not State.NOT_JUDGED

    @property
    def points(self) -> float:
        """The points that the item adds to the total; 0 for a penalty."""
        return 0.0 if self.item.penalty else self.item.points

    @property
    def earned(self) -> float:
        """The points that the item earns; below 0 for a penalty that applies."""
        return earned_by(self.item, self.outcome)


def earned_by(item: Item, outcome: Outcome) -> float:
    """Returns the points that an item earns with an outcome."""
    if outcome.ended is State.NOT_JUDGED:
        return 0.0
    share = min(max(outcome.share, 0.0), 1.0) if outcome.state in {None, State.HOLDS} else 0.0
    return item.points * (share - 1.0) + 0.0 if item.penalty else item.points * share


def with_gates(items: Sequence[JudgedItem], reading: Reading) -> list[JudgedItem]:
    """Applies the gates: under ``official``, items behind a failed gate earn nothing.

    Under ``standard``, these items keep their outcomes and are only marked.
    """
    shut: dict[str, str] = {}
    for entry in items:
        if entry.item.gates and entry.is_judged and entry.outcome.ended is not State.HOLDS:
            for kind in entry.item.gates:
                shut.setdefault(kind, entry.item.id)
    return [_gated(entry, shut.get(entry.item.kind, ""), reading) for entry in items]


def _gated(entry: JudgedItem, gate: str, reading: Reading) -> JudgedItem:
    if not gate or gate == entry.item.id:
        return entry
    if reading is Reading.STANDARD:
        return JudgedItem(entry.item, entry.outcome, entry.other, gate)
    nothing = Outcome(0.0, detail=f"item {gate} fails, so that this one earns nothing")
    return JudgedItem(entry.item, nothing, entry.other, gate)


# -- sums ------------------------------------------------------------------------------------------


def points_of(items: Iterable[JudgedItem]) -> PointsRecord:
    """Adds up the points of items."""
    listed = list(items)
    judged = [entry for entry in listed if entry.is_judged]
    return {
        "points": math.fsum(entry.points for entry in listed),
        "judged_points": math.fsum(entry.points for entry in judged),
        "earned": math.fsum(entry.earned for entry in judged),
        "items": len(listed),
        "judged_items": len(judged),
        "holding": sum(entry.outcome.ended is State.HOLDS for entry in judged),
    }


def share_of(
    items: Sequence[JudgedItem], weights: Mapping[str, float], *, all_items: bool
) -> float | None:
    """Returns the earned share of the points, from 0 to 1; None if no item with points counts.

    Args:
        items: the items.
        weights: group -> weight; empty for the plain sum. With weights, the share is the weighted
            mean of the shares of the groups that have points.
        all_items: whether items that were not judged count as earning nothing; otherwise they are
            left out.
    """
    if not weights:
        return _plain_share(points_of(items), all_items=all_items)
    total = weight_sum = 0.0
    for group, weight in weights.items():
        share = _plain_share(
            points_of(entry for entry in items if entry.item.group == group), all_items=all_items
        )
        if share is not None:
            total += weight * share
            weight_sum += weight
    return total / weight_sum if weight_sum else None


def _plain_share(points: PointsRecord, *, all_items: bool) -> float | None:
    possible = points["points"] if all_items else points["judged_points"]
    return min(max(points["earned"] / possible, 0.0), 1.0) if possible else None


def checklist_record(
    items: Sequence[JudgedItem], options: ChecklistOptions, profile: str
) -> ChecklistRecord:
    """Returns the points of a list, as they are written to ``cases.jsonl``."""
    share = share_of(items, options.groups, all_items=True) or 0.0
    record: ChecklistRecord = {
        "evaluator": options.evaluator,
        "profile": profile,
        "by_judge": _by(items, lambda entry: entry.judged.value),
        "by_group": _by(items, lambda entry: entry.item.group),
        "by_kind": _by(items, lambda entry: entry.item.kind),
        "share_of_all": share,
        "share_of_judged": share_of(items, options.groups, all_items=False),
    }
    if options.pass_share is not None:
        record["pass_share"] = options.pass_share
        record["passed"] = share >= options.pass_share
    return record


def _by(
    items: Sequence[JudgedItem], name_of: Callable[[JudgedItem], str]
) -> dict[str, PointsRecord]:
    parts: dict[str, list[JudgedItem]] = {}
    for entry in items:
        parts.setdefault(name_of(entry), []).append(entry)
    return {name: points_of(entries) for name, entries in parts.items()}


# -- records ---------------------------------------------------------------------------------------


def item_record(entry: JudgedItem, reading: Reading) -> ItemRecord:
    """Returns an item as it is written to ``cases.jsonl``."""
    item, outcome = entry.item, entry.outcome
    record: ItemRecord = {
        "id": item.id,
        "kind": item.kind,
        "judged": entry.judged.value,
        "group": item.group,
        "points": item.points,
        "earned": entry.earned,
        "state": outcome.ended.value,
        "words": shortened(words_of(item)),
    }
    if outcome.expected is not None:
        record["expected"] = shown(outcome.expected)
    if outcome.found is not None:
        record["found"] = shown(outcome.found)
    if outcome.place:
        record["place"] = shortened(outcome.place)
    if outcome.detail:
        record["detail"] = shortened(outcome.detail)
    if item.penalty:
        record["penalty"] = True
    if entry.gated_by:
        record["gated_by"] = entry.gated_by
    other = entry.other
    if other is not None and (other.ended, other.share) != (outcome.ended, outcome.share):
        said: ItemReading = {"state": other.ended.value, "earned": earned_by(item, other)}
        if other.detail:
            said["detail"] = shortened(other.detail)
        if reading is Reading.STANDARD:
            record["official"] = said
        else:
            record["standard"] = said
        if fault := outcome.fault or other.fault:
            record["fault"] = fault
    return record


def shortened(text: str) -> str:
    """Returns a string cut to the length that a record allows."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def shown(value: object, depth: int = 0) -> object:
    """Returns a value as JSON of the size that a record allows; other values become text."""
    if value is None or isinstance(value, bool | int):
        return value if not isinstance(value, int) or abs(value) < 2**53 else shortened(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return shortened(value)
    if depth >= _MAX_NESTED:
        return "…"
    if isinstance(value, Mapping):
        listed = list(value.items())[:_MAX_LISTED]
        return {shortened(str(name)): shown(part, depth + 1) for name, part in listed}
    if isinstance(value, list | tuple | set | frozenset):
        parts: list[object] = [shown(part, depth + 1) for part in list(value)[:_MAX_LISTED]]
        return [*parts, "…"] if len(value) > _MAX_LISTED else parts
    return shortened(str(value))
