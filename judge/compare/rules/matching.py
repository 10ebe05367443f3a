"""Things matched one to one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

_First = TypeVar("_First")
_Second = TypeVar("_Second")
_MOST = 1000


def unmatched(
    wanted: Sequence[_First], found: Sequence[_Second], agree: Callable[[_First, _Second], bool]
) -> tuple[list[_First], list[_Second]]:
    """Matches things one to one, as many as possible.

    Args:
        wanted: what has to be found.
        found: what there is.
        agree: whether two of them belong together.

    Returns:
        Those of both sides that are left over; of more than a thousand, the rest is left over.
    """
    partner: dict[int, int] = {}
    edges = [
        [place for place, each in enumerate(found[:_MOST]) if agree(one, each)]
        for one in wanted[:_MOST]
    ]

    def place_for(index: int, tried: set[int]) -> bool:
        waiting = [(index, iter(edges[index]))]
        path: list[tuple[int, int]] = []
        while waiting:
            here, candidates = waiting[-1]
            place = next((candidate for candidate in candidates if candidate not in tried), None)
            if place is None:
                waiting.pop()
                if path:
                    path.pop()
                continue
            tried.add(place)
            path.append((here, place))
            if place not in partner:
                partner.update({taken: one for one, taken in path})
                return True
            waiting.append((partner[place], iter(edges[partner[place]])))
        return False

    for index in range(len(edges)):
        place_for(index, set())
    matched = set(partner.values())
    return (
        [each for index, each in enumerate(wanted) if index not in matched],
        [each for index, each in enumerate(found) if index not in partner],
    )
