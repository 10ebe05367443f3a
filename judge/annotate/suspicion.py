"""The annotator's part in an audit: makes edited copies, and checks the rules of the manual."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from judge.annotate.archive import CaseData
from judge.annotate.edit import set_cells
from judge.annotate.edits import Formula, SetCell
from judge.annotate.rules import RULES, BrokenRule, check_cases
from judge.suspects.contract import suspect
from judge.suspects.material import TaskMaterial
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.cell import CellRef, CellValue

RULES_OF_OTHER_SIGNS = frozenset(
    {"readable", "first-change", "answers-differ", "near-a1", "recorded"}
)
"""Rules that another sign covers, or that do not concern golds."""


def edited(
    data: bytes, constants: Mapping[CellRef, CellValue], formulas: Mapping[CellRef, str]
) -> bytes:
    """A copy of a workbook with new constants and formulas in some cells.

    See :class:`judge.suspects.material.EditCells`.

    Raises:
        WorkbookError: a cell cannot be set.
    """
    return set_cells(
        data,
        [
            *(SetCell(ref, value) for ref, value in constants.items()),
            *(SetCell(ref, Formula(text)) for ref, text in formulas.items()),
        ],
    )


class ManualRules:
    """Suspects from the rules of the manual (:mod:`judge.annotate.rules`)."""

    name = "manual-rule"
    title = "the case breaks a rule of the annotation manual"
    about = About.CASE
    blind_spots = (
        (
            "the rules are about how cases are made; a case that keeps to them all can have a "
            "wrong gold, and most that break one do not"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields a suspect for each case that breaks rules which no other sign covers."""
        violations = check_cases(
            material.task,
            [
                CaseData(case.number, case.input.workbook.data, case.gold.workbook.data)
                for case in material.cases
            ],
            recalculator=material.tools.recalculator,
        )
        by_case: dict[int, list[BrokenRule]] = {}
        for rule in violations:
            covered = rule.rule in RULES_OF_OTHER_SIGNS or (
                rule.rule == "second-change" and rule.message.startswith("no cell")
            )
            if not covered:
                by_case.setdefault(rule.case, []).append(rule)
        for case, broken in by_case.items():
            first = broken[0]
            yield suspect(
                material,
                case,
                self,
                Certainty.POSSIBLE,
                first.message,
                f"the manual requires that {RULES[first.rule]}",
                [
                    Evidence(EvidenceFile.GOLD, note=f"{rule.rule}: {rule.message}")
                    for rule in broken
                ],
            )


SIGN = ManualRules()
