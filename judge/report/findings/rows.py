"""What two objects have in common, property by property, and which objects belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Property:
    """A property of an object.

    Attributes:
        name: what people call it.
        value: what is compared.
        text: the value for people; empty for none.
        asked: whether it counts.
    """

    name: str
    value: object
    text: str
    asked: bool = True


def rows_of(
    expected: Sequence[Property] | None, found: Sequence[Property] | None
) -> list[dict[str, Any]]:
    """The properties of two objects, side by side; only those that one of them has.

    Args:
        expected: those of the gold's object; None without one.
        found: those of the output's.

    Returns:
        For each property ``name``, ``expected``, ``found`` and ``state``: ``agrees``, ``differs``,
        ``unasked`` for a difference that does not count, or ``listed`` if there is only one object.
    """
    first = {each.name: each for each in expected or ()}
    second = {each.name: each for each in found or ()}
    rows = []
    for name in dict.fromkeys((*first, *second)):
        one, other = first.get(name), second.get(name)
        texts = ["" if each is None else clip(each.text) for each in (one, other)]
        if not any(texts):
            continue
        alike = one is not None and other is not None and one.value == other.value
        asked = any(each is not None and each.asked for each in (one, other))
        state = "agrees" if alike else "differs" if asked else "unasked"
        if expected is None or found is None:
            state = "listed"
        rows.append({"name": name, "expected": texts[0], "found": texts[1], "state": state})
    return rows


def row(name: str, expected: object, found: object, *, asked: bool = True) -> dict[str, Any]:
    """One row of a table: two values, marked if they differ."""
    first, second = (clip("" if each is None else str(each)) for each in (expected, found))
    state = "agrees" if first == second else "differs" if asked else "unasked"
    return {"name": name, "expected": first, "found": second, "state": state}


def clip(text: str) -> str:
    """Text of a page, cut if it is very long."""
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


_Object = TypeVar("_Object")


@dataclass(frozen=True, slots=True)
class Paired:
    """Objects of both sheets, by their places.

    Attributes:
        agreeing: how many agree in all that is asked.
        pairs: those that do not, the most similar together; None where there is none left.
    """

    agreeing: int
    pairs: tuple[tuple[int | None, int | None], ...]


def pair(
    expected: Sequence[_Object],
    found: Sequence[_Object],
    properties: Callable[[_Object], Sequence[Property]],
    *,
    most: int = 60,
) -> Paired:
    """Puts objects of two sheets together: first those that agree, then by similarity.

    Args:
        expected: those of the gold.
        found: those of the output.
        properties: what is compared of an object.
        most: how many of each are compared.
    """
    sides = [[list(properties(each)) for each in side[:most]] for side in (expected, found)]
    left, right = list(range(len(sides[0]))), list(range(len(sides[1])))
    agreeing = 0
    for one in list(left):
        twin = next((each for each in right if _agree(sides[0][one], sides[1][each])), None)
        if twin is not None:
            left.remove(one)
            right.remove(twin)
            agreeing += 1
    ranked = sorted(
        (-_likeness(sides[0][one], sides[1][other]), one, other) for one in left for other in right
    )
    pairs: list[tuple[int | None, int | None]] = []
    for _, one, other in ranked:
        if one in left and other in right:
            left.remove(one)
            right.remove(other)
            pairs.append((one, other))
    pairs += [(one, None) for one in left] + [(None, other) for other in right]
    pairs.sort(key=lambda each: (each[0] is None, each[0] or 0, each[1] or 0))
    return Paired(agreeing, tuple(pairs))


def _agree(expected: Sequence[Property], found: Sequence[Property]) -> bool:
    first, second = (
        [(each.name, each.value) for each in side if each.asked] for side in (expected, found)
    )
    return first == second


def _likeness(expected: Sequence[Property], found: Sequence[Property]) -> int:
    other = {each.name: each.value for each in found}
    return sum(
        (2 if each.asked else 1)
        for each in expected
        if each.name in other and each.value == other[each.name]
    )
