"""Finds checklist items that are fulfilled without any work, or that no gold fulfils.

The items are judged as in ``judge verify``: on the unchanged inputs, on an empty folder and on each
gold.
"""

from __future__ import annotations

from collections.abc import Iterator

from judge.suspects.contract import counted, suspect
from judge.suspects.material import TaskMaterial
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect


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
            counts = (
                (len(checked.unreached), "on no gold"),
                (len(checked.without_work), "without work"),
            )
            summary = " and ".join(
                f"{counted(count, 'item')} {'holds' if count == 1 else 'hold'} {where}"
                for count, where in counts
                if count
            )
            why = "the points of such an item say nothing about the work"
            yield suspect(material, check.case, self, certainty, summary, why, named)


def _evidence(file: EvidenceFile, item: str, holds_on: str) -> Evidence:
    return Evidence(file, note=f"item {item}: holds on {holds_on}")


SIGN = Items()
