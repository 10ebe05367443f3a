"""What a checker found about an answer: whether it agrees, and where it does not."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from judge.core.results import CaseComparison, DifferenceRecord


class PlaceKind(enum.StrEnum):
    """What kind of place a difference is at."""

    CELL = "cell"
    SHEET = "sheet"
    CHART = "chart"
    KEY = "key"
    """A key of a typed answer."""
    RULE = "rule"
    """A rule over a whole workbook."""


@dataclass(frozen=True, slots=True)
class DifferencePlace:
    """Where an answer differs from its gold.

    Attributes:
        kind: what the place is.
        name: address of the cell, name of the chart, key or rule; empty for a sheet.
        sheet: the sheet that it is on; empty where there is none.
    """

    kind: PlaceKind
    name: str = ""
    sheet: str = ""

    def __str__(self) -> str:
        parts = [part for part in (self.sheet, self.name) if part]
        return "!".join(parts) if self.kind is PlaceKind.CELL else " ".join((self.kind, *parts))


@dataclass(frozen=True, slots=True)
class FoundDifference:
    """One thing in which an answer differs from its gold.

    Attributes:
        kind: its class, in the checker's own words.
        place: where.
        expected: what the gold has, as JSON.
        actual: what the answer has, as JSON.
        detail: a line for people, if the values do not say everything.
    """

    kind: str
    place: DifferencePlace
    expected: object = None
    actual: object = None
    detail: str = ""

    def __str__(self) -> str:
        said = f"{self.place}: {self.kind.replace('_', ' ')}: "
        said += f"expected {self.expected!r}, found {self.actual!r}"
        return f"{said} ({self.detail})" if self.detail else said


@dataclass(frozen=True, slots=True)
class Finding:
    """What a checker says about an answer.

    Attributes:
        agrees: whether the answer is right.
        cause: one line on what is wrong; empty if nothing is.
        record: the comparison as it is written to ``cases.jsonl``: ``equal``, ``cells`` and
            ``differing_cells`` (units compared, and how many of them differ),
            ``difference_counts``, ``differences`` and ``notes``, and whatever else the checker
            has to say.
        undecided: whether the only differences are values that could not be computed.
    """

    agrees: bool
    cause: str = ""
    record: CaseComparison = field(default_factory=CaseComparison)
    undecided: bool = False

    @property
    def differing_share(self) -> float:
        """Share of the compared units that differ, from 0 up."""
        units, differing = self.record.get("cells"), self.record.get("differing_cells")
        if units is None or differing is None:
            return float(not self.agrees)
        return differing / max(units, 1)


def finding_of(
    differences: Sequence[FoundDifference],
    *,
    units: int,
    notes: Sequence[str] = (),
    most_kept: int = 50,
) -> Finding:
    """The finding of a checker that lists what differs, one entry for each differing unit.

    Args:
        differences: what differs; empty if the answer is right.
        units: how many units (cells, keys, rules …) were compared.
        notes: liberties taken, and what could not be checked.
        most_kept: how many differences are kept on record; all are counted.
    """
    counts: dict[str, int] = {}
    for each in differences:
        counts[each.kind] = counts.get(each.kind, 0) + 1
    cause = ""
    if differences:
        more = len(differences) - 1
        cause = str(differences[0]) + (f" (and {more:,} more of {units:,})" if more else "")
    return Finding(
        agrees=not differences,
        cause=cause,
        record={
            "equal": not differences,
            "cells": units,
            "differing_cells": len(differences),
            "difference_counts": counts,
            "differences": [_as_json(each) for each in differences[:most_kept]],
            "notes": list(notes),
        },
    )


def _as_json(difference: FoundDifference) -> DifferenceRecord:
    place = difference.place
    record: DifferenceRecord = {
        "kind": difference.kind,
        "sheet": place.sheet,
        "cell": place.name if place.kind is PlaceKind.CELL else "",
        "expected": difference.expected,
        "actual": difference.actual,
    }
    if place.kind is not PlaceKind.CELL:
        record["place"] = {"kind": place.kind.value, "name": place.name}
    if difference.detail:
        record["detail"] = difference.detail
    return record


def nearest(findings: Sequence[tuple[str, Finding]]) -> Finding:
    """The finding that counts if there are several golds.

    The first gold that the answer agrees with decides; if there is none, the nearest one does.

    Args:
        findings: name of the gold and what was found, in the order of the golds; at least one.

    Returns:
        That finding; with several golds, its notes name the gold.
    """
    name, found = next(
        ((name, found) for name, found in findings if found.agrees),
        min(findings, key=lambda each: each[1].differing_share),
    )
    if len(findings) == 1:
        return found
    said = f"agrees with {name}" if found.agrees else f"{name} is the nearest"
    notes = found.record.get("notes")
    noted = [
        f"of {len(findings)} golds, the answer {said}"
        if found.agrees
        else f"of {len(findings)} golds, {said}"
    ]
    noted += list(notes) if isinstance(notes, list | tuple) else []
    return Finding(found.agrees, found.cause, {**found.record, "notes": noted}, found.undecided)
