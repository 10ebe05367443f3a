"""Signs about golds and items that the checker of their own task, or of another one, refuses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from judge.compare.registry import checker_of
from judge.console import counted
from judge.core.task import Task, TestCase
from judge.errors import GoldFaultError
from judge.grading.verify import refused_golds
from judge.suspects.contract import suspect
from judge.suspects.material import TaskMaterial, digest_of_file
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect


class GoldRefused:
    """Finds golds that their own task does not accept, if the answer is not a range of cells."""

    name = "gold-refused"
    title = "the gold is not accepted as an answer to its own task"
    about = About.GOLD
    blind_spots = (
        "tasks whose answer is a range of cells: there a gold always agrees with itself",
        "a wrong gold that agrees with the rules that were made from it",
        "with several golds, an answer must match only one; every refused gold is listed",
    )

    def examine(self, material: TaskMaterial) -> Iterator[Suspect]:
        """Yields one suspect for each case whose gold is refused, missing or doubtful."""
        needs_golds = not checker_of(material.task.checker).lists_items
        cases = {case.number: case for case in material.task.cases}
        for check in material.checks:
            case = cases[check.case]
            notes: tuple[str, ...]
            if not case.golds and needs_golds:
                summary = "no gold is given"
                why = "nothing says what a right answer is"
                certainty, notes = Certainty.SURE, ("not given",)
            elif check.gold_problem:
                summary = f"the gold is refused: {check.gold_problem}"
                why = "a right answer that looks like the gold is rejected"
                certainty, notes = Certainty.SURE, (check.gold_problem,)
            elif check.doubts and check.cells:
                summary = f"{counted(len(check.doubts), 'thing')} about the gold: {check.doubts[0]}"
                why = "a right answer to the question may be rejected"
                certainty, notes = Certainty.POSSIBLE, check.doubts
            else:
                continue
            items = [Evidence(EvidenceFile.GOLD, note=note) for note in notes]
            yield suspect(material, check.case, self, certainty, summary, why, items)


GOLD_REFUSED = GoldRefused()


MAX_ITEMS_NAMED = 3
"""How many items a summary names; the evidence has all of them."""


class Items:
    """Finds checklist items that are fulfilled without any work, or that no gold fulfils.

    The items are judged as in ``judge verify``: on the unchanged inputs, on an empty folder and on
    each gold.
    """

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


ITEMS = Items()


class SameQuestion:
    """Finds tasks with the same question and input that do not accept each other's golds."""

    name = "same-question"
    title = "another task has the same question and input, but a different gold"
    about = About.GOLD
    blind_spots = (
        "which of the two golds is wrong; if the question leaves it open, neither is",
        "questions that say the same in other words, and inputs that differ in any byte",
        "tasks that are judged with different options, such as another answer position",
    )

    def examine(self, material: TaskMaterial) -> Iterator[Suspect]:
        """Yields one suspect for each case that refuses all golds of another task's case."""
        for case in material.task.cases:
            for other, twin in _twins(material, case):
                try:
                    refused = refused_golds(material.judge, material.task, case, twin.golds)
                except GoldFaultError:
                    continue
                if len(refused) < len(twin.golds) or not refused:
                    continue
                yield suspect(
                    material,
                    case.number,
                    self,
                    Certainty.LIKELY,
                    f"task {other.id} has the same question and input, but its gold is refused "
                    f"here: {refused[0]}",
                    "one of the two golds is wrong, or the question leaves the answer open",
                    [Evidence(EvidenceFile.OTHER_CASE, note=f"task {other.id}: {refused[0]}")],
                )
                break


def _twins(material: TaskMaterial, case: TestCase) -> Iterator[tuple[Task, TestCase]]:
    own = [digest_of_file(file.path) for file in case.inputs]
    if None in own:
        return
    for other in material.same_question:
        if other.checker != material.task.checker:
            continue
        for twin in other.cases:
            if [digest_of_file(file.path) for file in twin.inputs] == own:
                yield other, twin


SAME_QUESTION = SameQuestion()
