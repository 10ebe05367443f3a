"""Finds checklist items that are fulfilled without any work, or that no gold fulfils.

The items are judged as in ``judge verify``: on the unchanged inputs, on an empty folder and on each
gold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.suspects.contract import suspect
from judge.suspects.material import TaskMaterial
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect

MAX_ITEMS_NAMED = 3
"""How many items a summary names; the evidence has all of them."""


class Items:
    """See :mod:`judge.suspects.signs.items`."""

    name = "item-unsound"
    title = "an item of the checklist holds on no gold, or holds without work"
    about = About.GOLD
    blind_spots = (
        "an item that asks to keep something rightly holds without work",
        "items for models, people and programs are not examined",
        "for a task without a gold, only items that hold without work are listed",
    )

    def examine(self, material: TaskMaterial) -> Iterator[Suspect]:
        """Yields one suspect for each case with unsound items."""
        for check in material.checks:
            checked = check.items
            if checked is None:
                continue
            named = [
                *(_evidence(EvidenceFile.GOLD, name, "no gold") for name in checked.unreached),
                *(
                    _evidence(EvidenceFile.INPUT, name, "the unchanged input, or no files")
                    for name in checked.without_work
                ),
            ]
            if not named:
                continue
            certainty = Certainty.LIKELY if checked.unreached else Certainty.POSSIBLE
            summary = "; ".join(
                f"{_names(items)} {where}"
                for items, where in (
                    (checked.unreached, "on no gold"),
                    (checked.without_work, "without work"),
                )
                if items
            )
            why = "the points of such an item say nothing about the work"
            yield suspect(material, check.case, self, certainty, summary, why, named)


def _names(items: Sequence[str]) -> str:
    """Names up to three items, with their verb: ``items a, b, c and 2 more hold``."""
    if len(items) == 1:
        return f"item {items[0]} holds"
    more = len(items) - MAX_ITEMS_NAMED
    shown = ", ".join(items[:MAX_ITEMS_NAMED])
    return f"items {shown} and {more} more hold" if more > 0 else f"items {shown} hold"


def _evidence(file: EvidenceFile, item: str, holds_on: str) -> Evidence:
    return Evidence(file, note=f"item {item}: holds on {holds_on}")


SIGN = Items()
