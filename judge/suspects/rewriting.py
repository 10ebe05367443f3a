"""What a gold would hold with other formulas in its answer."""

from __future__ import annotations

from collections.abc import Mapping

from judge.errors import JudgeError
from judge.suspects.books import Place, agree
from judge.suspects.material import CaseMaterial
from judge.workbook.cell import CellValue, ErrorValue

MAX_REWRITTEN = 5_000
"""Most formulas that are replaced in one workbook."""


def what_formulas_give(case: CaseMaterial, formulas: Mapping[Place, str]) -> dict[Place, CellValue]:
    """What some formulas give in a case's gold; nothing where that cannot be computed."""
    if not formulas or len(formulas) > MAX_REWRITTEN:
        return {}
    try:
        filled = case.tools.edit(
            case.gold.workbook.data,
            {},
            {place.ref: text.removeprefix("=") for place, text in formulas.items()},
        )
        computed = case.tools.compute(filled, case.ranges)
    except JudgeError:
        return {}
    return {
        place: value
        for ref, value in computed.values.items()
        if (place := Place.of(ref)) in formulas
    }


def apart_by_rewriting(case: CaseMaterial, formulas: Mapping[Place, str]) -> dict[Place, CellValue]:
    """Cells of the answer that other formulas would change, with what these give.

    The engines have to give the gold's value for the formulas that are there, so that a fault of
    theirs is not taken for one of the gold. Errors do not count: a formula need not fit elsewhere.
    Array formulas are left alone: written into a single cell, the same text gives something else.
    """
    if not formulas:
        return {}
    baseline = case.recomputed
    trusted = {
        place: text
        for place, text in formulas.items()
        if not case.gold.is_array(place)
        and (
            case.gold.formula(place) is None
            or (place in baseline and agree(case.answer.get(place), baseline[place]))
        )
    }
    given = what_formulas_give(case, trusted)
    return {
        place: value
        for place, value in sorted(given.items())
        if not isinstance(value, ErrorValue) and not _alike(case.answer.get(place), value)
    }


def _alike(stored: CellValue, value: CellValue) -> bool:
    first, second = (
        None if isinstance(each, str) and not each.strip() else each for each in (stored, value)
    )
    return agree(first, second)
