"""Which sheet of an answer stands for which sheet of its gold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

from judge.workbook.address import folded
from judge.workbook.workbook_parts import Tab

_MOST_TRIED = 5
"""Sheets without a partner of their name among which all orders are tried: 120 at most."""


def paired_sheets(
    gold: Sequence[Tab], answer: Sequence[Tab], distance: Callable[[Tab, Tab], float]
) -> Mapping[str, Tab]:
    """Name of each sheet of the gold -> the sheet of the answer that stands for it.

    Sheets of one name belong together. New sheets, whose names a task leaves open, are paired such
    that they differ least; of several such ways, the first, in the order of the sheets, counts.

    Args:
        gold: sheets of the gold, in order.
        answer: sheets of the answer, in order.
        distance: how far two sheets differ, from 0 up.
    """
    by_name = {folded(each.name): each for each in reversed(answer)}
    found = {each.name: by_name[folded(each.name)] for each in gold if folded(each.name) in by_name}
    taken = {each.name for each in found.values()}
    left = [each for each in gold if each.name not in found]
    free = [each for each in answer if each.name not in taken]
    if not left or not free:
        return found
    if len(left) == len(free) == 1 or max(len(left), len(free)) > _MOST_TRIED:
        return {**found, **{one.name: other for one, other in zip(left, free, strict=False)}}
    known = {(a.name, b.name): distance(a, b) for a in left for b in free}
    short, long, flipped = (left, free, False) if len(left) <= len(free) else (free, left, True)

    def pairs(order: Sequence[Tab]) -> list[tuple[Tab, Tab]]:
        return [(b, a) if flipped else (a, b) for a, b in zip(short, order, strict=True)]

    best = min(
        permutations(long, len(short)),
        key=lambda order: sum(known[a.name, b.name] for a, b in pairs(order)),
    )
    return {**found, **{a.name: b for a, b in pairs(best)}}
