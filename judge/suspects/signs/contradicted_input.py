"""Constants outside the answer that differ between the case's input and its gold.

Somebody changed an input value in one of the two files only, so the gold answers a question that no
program was given. Where the gold holds formulas, they decide what matters: they
are computed again with the input's own constants, and only answers that then differ count. The
engines are compared with themselves, with and without the change, never with the stored values
alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.errors import JudgeError
from judge.suspects.books import Place, agree
from judge.suspects.contract import and_more, counted, evidence, place_in, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, Traces, traces_of
from judge.suspects.model import Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.cell import CellValue

MAX_RESTORED = 2_000
"""Most constants of a gold that are replaced by the input's to see what follows."""


@dataclass(frozen=True, slots=True)
class Contradictions:
    """Cells outside the answer in which a gold and its input differ.

    Attributes:
        changed: both hold a constant, and not the same one.
        added: the input's cell is blank, the gold's holds a constant.
    """

    changed: tuple[Place, ...]
    added: tuple[Place, ...]


class ContradictedInput:
    """See :mod:`judge.suspects.signs.contradicted_input`."""

    name = "contradicted-input"
    title = "outside the answer, the gold and the input hold different constants"
    blind_spots = (
        "a constant that the gold changed within the answer range is not compared",
        (
            "values that a macro of the question changes on purpose look the same; where every "
            "case has the change in the same cells, the sign is weaker, or left out"
        ),
        ("formulas that reach cells through names of other workbooks or macros are not followed"),
        "in a gold of constants, only values that can be traced into the answer are sure",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """One suspect for each case whose gold contradicts its input."""
        found = {case.number: contradictions(case) for case in material.cases}
        for case in material.cases:
            mine = found[case.number]
            if not mine.changed and not mine.added:
                continue
            others = [found[other.number] for other in material.cases if other is not case]
            everywhere = _everywhere(mine, others)
            if case.answer_formulas:
                yield from self._with_formulas(material, case, mine, everywhere)
            else:
                elsewhere = [place for other in others for place in other.changed]
                yield from self._with_constants(material, case, mine, elsewhere)

    def _with_formulas(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        mine: Contradictions,
        everywhere: frozenset[Place],
    ) -> Iterator[Suspect]:
        for places in (mine.changed, mine.added):
            if not places or len(places) > MAX_RESTORED:
                continue
            moved = what_moves(case, {place: case.input.value(place) for place in places})
            if not moved:
                continue
            own = [place for place in places if place not in everywhere]
            certainty = _certainty(case, places, own, added=places is mine.added)
            if places is mine.added and len(material.cases) == 1:
                certainty = Certainty.POSSIBLE  # nothing tells a fault from the solution's own work
            yield self._suspect(material, case, own or list(places), moved, certainty)
            return

    def _with_constants(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        mine: Contradictions,
        elsewhere: Sequence[Place],
    ) -> Iterator[Suspect]:
        # A macro that changes its input does so in other rows in each case.
        columns = {(place.sheet, place.column) for place in elsewhere}
        own = [
            place
            for place in mine.changed
            if (place.sheet, place.column) not in columns and not _is_heading(case, place)
        ]
        if not own:
            return
        traces = traces_of(case.answer.values())
        traced = [place for place in own if _is_traced(case, place, traces)]
        if traced:
            certainty = Certainty.SURE
        else:
            alone = len(material.cases) == 1
            certainty = Certainty.POSSIBLE if alone or len(own) > FEW else Certainty.LIKELY
        yield self._suspect(material, case, traced or own, {}, certainty)

    def _suspect(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        places: Sequence[Place],
        moved: Mapping[Place, tuple[CellValue, CellValue]],
        certainty: Certainty,
    ) -> Suspect:
        first = places[0]
        gold, given = case.gold.value(first), case.input.value(first)
        cells: list[Evidence] = [
            evidence(
                EvidenceFile.GOLD,
                place,
                expected=case.input.value(place),
                found=case.gold.value(place),
                note="the input has the expected value",
            )
            for place in places[:LISTED]
        ]
        if moved:
            place, (was, now) = next(iter(moved.items()))
            why = (
                f"with the input's own values, the gold's formulas give {shown(now)} in "
                f"{place_in(case.gold, place)}, not {shown(was)} ({counted(len(moved), 'cell')} "
                "of the answer)"
            )
            cells += [
                evidence(
                    EvidenceFile.GOLD,
                    each,
                    expected=after,
                    found=before,
                    note="answer; expected with the input's values",
                )
                for each, (before, after) in moved.items()
            ]
        elif certainty is Certainty.SURE:
            why = "the answer holds the gold's value, which the input does not have"
        else:
            why = "a program is given the input's value, and the gold was made with another one"
        return suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {place_in(case.gold, first)} is {shown(gold)}, the input's is "
            f"{shown(given)}{and_more(len(places))}",
            why,
            cells,
        )


LISTED = 10
FEW = 20
HEADING_ROWS = 2


def contradictions(case: CaseMaterial) -> Contradictions:
    """Constants outside the answer in which a gold differs from its input."""
    changed, added = [], []
    for place in case.differences:
        if case.gold.formula(place) is not None or case.input.formula(place) is not None:
            continue
        if case.gold.value(place) is None:
            continue
        if case.input.value(place) is None:
            added.append(place)
        else:
            changed.append(place)
    return Contradictions(tuple(changed), tuple(added))


def what_moves(
    case: CaseMaterial, constants: Mapping[Place, CellValue]
) -> dict[Place, tuple[CellValue, CellValue]]:
    """Cells of the answer that the gold's formulas compute differently with other constants.

    Returns:
        Cell -> its value in the gold, and with the constants. Only cells for which the engines
        give the gold's value without the change are in it.
    """
    baseline = case.recomputed
    if not baseline:
        return {}
    try:
        restored = case.tools.edit(
            case.gold.workbook.data,
            {place.ref: value for place, value in constants.items()},
            {},
        )
        computed = case.tools.compute(restored, case.ranges)
    except JudgeError:
        return {}
    after = {Place.of(ref): value for ref, value in computed.values.items()}
    return {
        place: (value, after[place])
        for place, value in sorted(baseline.items())
        if place in after
        and place not in case.changing
        and agree(case.answer.get(place), value)
        and not agree(value, after[place])
    }


def _everywhere(mine: Contradictions, others: Sequence[Contradictions]) -> frozenset[Place]:
    """Cells in which every case differs: what the question itself changes."""
    common = {*mine.changed, *mine.added}
    if not others:
        return frozenset()
    for other in others:
        common &= {*other.changed, *other.added}
    return frozenset(common)


def _certainty(
    case: CaseMaterial, places: Sequence[Place], own: Sequence[Place], *, added: bool
) -> Certainty:
    if added:
        return Certainty.LIKELY if own else Certainty.POSSIBLE
    # A string that every case changes may be what the formulas are meant to look for; a number or
    # a date is data.
    data = any(not isinstance(case.gold.value(place), str) for place in places)
    return Certainty.SURE if own or data else Certainty.POSSIBLE


def _is_heading(case: CaseMaterial, place: Place) -> bool:
    """Whether a cell is a string in the first rows, or directly above the answer."""
    if not isinstance(case.gold.value(place), str):
        return False
    return place.row <= HEADING_ROWS or any(
        area.sheet == place.sheet
        and area.min_column <= place.column <= area.max_column
        and area.min_row - HEADING_ROWS <= place.row < area.min_row
        for area in case.ranges
    )


def _is_traced(case: CaseMaterial, place: Place, traces: Traces) -> bool:
    """Whether the answer holds the gold's value of a cell, and nowhere the input's."""
    gold, given = case.gold.value(place), case.input.value(place)
    return traces.holds(gold) and not traces.holds(given)


SIGN = ContradictedInput()
