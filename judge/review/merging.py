"""From decisions to a file of corrections; what contradicts itself is left out and named. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from judge.suites.corrections import Correction, CorrectionFaultError, correction_of
from judge.suspects.decisions import Decision, Finding
from judge.suspects.standing import Standing, Suspicions

_Key = tuple[str, int | None, str]


@dataclass(frozen=True, slots=True)
class Merged:
    """The corrections that follow from all decisions.

    Attributes:
        corrections: those on which nobody disagrees, in the order of the suspects.
        conflicts: what is left out, one line each.
    """

    corrections: tuple[Correction, ...]
    conflicts: tuple[str, ...]


def merge_decisions(suspicions: Suspicions, suite_format: str) -> Merged:
    """The corrections of all faults that no reviewer disputes.

    Several suspects of one gold, and several reviewers of one suspect, can give cells of it: these
    add up. If two of them give different values for a cell, the gold is left as it is.

    Args:
        suspicions: the suspects with what was decided.
        suite_format: the format of the suite.
    """
    found: dict[_Key, Correction] = {}
    conflicts: dict[_Key, str] = {}
    broken: list[str] = []
    for point in suspicions.points:
        if point.standing is Standing.DISPUTED:
            task, case, sign = point.suspect.key
            named = f"task {task}" + ("" if case is None else f", case {case}")
            broken.append(f"{named}: reviewers contradict each other on {sign}")
        if point.standing is not Standing.FAULT:
            continue
        for each in _corrections(point.decisions, suite_format, broken):
            key = (each.task, each.case, each.field)
            known = found.get(key)
            merged = each if known is None else _merge(known, each)
            if merged is None:
                conflicts[key] = f"{_named(each)}: two decisions give different {_what(each)}"
            else:
                found[key] = merged
    for task, case, field in list(found):
        excluded = (task, case, "exclude") in found
        if field == "gold" and (excluded or (task, None, "exclude") in found):
            each = found[task, case, field]
            conflicts[task, case, field] = f"{_named(each)}: it is both corrected and left out"
    kept = tuple(each for key, each in found.items() if key not in conflicts)
    return Merged(kept, (*broken, *conflicts.values()))


def _corrections(
    decisions: Sequence[Decision], suite_format: str, broken: list[str]
) -> Iterator[Correction]:
    for decision in decisions:
        if decision.finding is not Finding.FAULT:
            continue
        for entry in decision.corrections:
            try:
                yield correction_of(suite_format, entry)
            except CorrectionFaultError as fault:
                broken.append(f"task {decision.key[0]}, decision of {decision.by}: {fault}")


def _merge(first: Correction, second: Correction) -> Correction | None:
    """Both as one; None if they contradict each other."""
    if first.field == "gold":
        cells = {cell.ref: cell for cell in first.cells}
        for cell in second.cells:
            if cells.setdefault(cell.ref, cell) != cell:
                return None
        if first.gold_sha256 != second.gold_sha256:
            return None
        first = replace(first, cells=tuple(cells.values()))
    elif first.field != "exclude" and first.now != second.now:
        return None
    return replace(
        first,
        by=", ".join(dict.fromkeys([*first.by.split(", "), second.by])),
        at=max(first.at, second.at),
        reason=_both(first.reason, second.reason),
        evidence=_both(first.evidence, second.evidence),
        source=_both(first.source, second.source),
    )


def _both(first: str, second: str) -> str:
    return first if second in first else f"{first} / {second}"


def _named(each: Correction) -> str:
    return f"task {each.task}" + ("" if each.case is None else f", case {each.case}")


def _what(each: Correction) -> str:
    return "values of a cell" if each.field == "gold" else f"values of {each.field}"
