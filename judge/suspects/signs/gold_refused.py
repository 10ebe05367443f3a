"""Finds golds that their own task does not accept, if the answer is not a range of cells."""

from __future__ import annotations

from collections.abc import Iterator

from judge.compare.registry import checker_of
from judge.console import counted
from judge.suspects.contract import suspect
from judge.suspects.material import TaskMaterial
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect


class GoldRefused:
    """See :mod:`judge.suspects.signs.gold_refused`."""

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


SIGN = GoldRefused()
