"""Cells of an answer that do not follow the formula of their column."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from judge.formulas.shift import shift_formula
from judge.suspects.books import Place
from judge.suspects.contract import and_more, counted, evidence, place_in, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, apart_by_rewriting
from judge.suspects.model import Certainty, EvidenceFile, Suspect

MIN_FORMULAS = 4
"""Cells of a column that have to share a formula before another one is odd."""

SHARE = 0.75
"""Share of a column's cells that have to share it."""


class OddFormula:
    """See :mod:`judge.suspects.signs.odd_formula`."""

    name = "odd-formula"
    title = "a cell of the answer does not have the formula of its column"
    blind_spots = (
        "a constant that the input holds in the same column is taken for data",
        ("a column in which fewer than three in four cells share a formula has no rule to break"),
        (
            "the first and the last cell of a column may follow a rule of their own, such as a "
            "total, and are only listed as possible"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """One suspect for each case with such cells whose value is not the rule's."""
        for case in material.cases:
            yield from self._case(material, case)

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        wanted = dict(_by_the_rule(case))
        apart = apart_by_rewriting(case, wanted)
        if not apart:
            return
        ends = {place for places in _columns(case).values() for place in (min(places), max(places))}
        inner = [place for place in apart if place not in ends]
        first = (inner or list(apart))[0]
        own = case.gold.formula(first)
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if inner else Certainty.POSSIBLE,
            f"the gold's {place_in(case.gold, first)} is {shown(case.answer.get(first))}, the "
            f"formula of its column gives {shown(apart[first])}{and_more(len(apart))}",
            f"{counted(len(apart), 'cell')} of the answer "
            + (
                "holds a constant among formulas"
                if own is None
                else "does not have the formula of the others in the column"
            ),
            [
                evidence(
                    EvidenceFile.GOLD,
                    place,
                    expected=value,
                    found=case.answer.get(place),
                    note=f"the column's formula: {wanted[place]}",
                )
                for place, value in apart.items()
            ],
        )


def _columns(case: CaseMaterial) -> Mapping[tuple[str, int], list[Place]]:
    columns: dict[tuple[str, int], list[Place]] = defaultdict(list)
    for place in case.answer_places:
        columns[place.sheet, place.column].append(place)
    return columns


def _by_the_rule(case: CaseMaterial) -> Iterator[tuple[Place, str]]:
    """Odd cells of the answer's columns, each with the column's formula written for its row."""
    if len(case.answer_formulas) < MIN_FORMULAS:
        return
    for places in _columns(case).values():
        formulas = {
            place: case.answer_formulas[place] for place in places if place in case.answer_formulas
        }
        if len(formulas) < MIN_FORMULAS or len(formulas) == len(places) == 1:
            continue
        anchor = max(place.row for place in places)
        written = {
            place: shift_formula(text, anchor - place.row, 0) for place, text in formulas.items()
        }
        rule, count = Counter(written.values()).most_common(1)[0]
        if count < MIN_FORMULAS or count < SHARE * len(places) or "#REF!" in rule:
            continue
        for place in places:
            if written.get(place) != rule and not case.is_given(place):
                text = shift_formula(rule, place.row - anchor, 0)
                if "#REF!" not in text:
                    yield place, text


SIGN = OddFormula()
