"""Cases that any program passes, or that repeat another case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from judge.core.submission import Origin
from judge.suspects.books import Place, agree, differing, same_looks
from judge.suspects.contract import counted, evidence, place_in, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.address import COLUMN_BITS
from judge.workbook.cell import CellRange, CellValue

MAX_COMPARED = 200_000


class SaysNothing:
    """See :mod:`judge.suspects.signs.says_nothing`."""

    name = "says-nothing"
    title = "the case cannot tell a right answer from the untouched input"
    blind_spots = (
        (
            "only values are compared here: a case whose answer is a colour is left out if the "
            "checker compares styles"
        ),
        (
            "a case that passes most wrong programs, but not the untouched input, is not seen; "
            "`judge annotate strength` measures that"
        ),
        (
            "a case that repeats another's answer from other data still kills programs that read "
            "the data wrongly; it is listed as possible"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """One suspect for each case that says nothing."""
        if material.task.checker.options.get("style"):
            return
        for case in material.cases:
            yield from self._case(material, case)

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        given = input_answer(case)
        if not case.answer:
            yield self._blank(material, case, given)
            return
        if _same(case, case.answer, given):
            yield self._untouched(material, case)
            return
        for other in material.cases:
            if other.number < case.number and _repeats(case, other):
                yield self._repeated(material, case, other)
                return

    def _blank(
        self, material: TaskMaterial, case: CaseMaterial, given: Mapping[Place, CellValue]
    ) -> Suspect:
        elsewhere = list(_changes(case))
        emptied = any(value is not None for value in given.values())
        return suspect(
            material,
            case.number,
            self,
            Certainty.POSSIBLE if emptied else Certainty.SURE,
            f"the answer range is blank in the gold{_where(case)}",
            _why(
                "a program that empties the range passes"
                if emptied
                else "a program that writes nothing there passes",
                elsewhere,
                case,
            ),
            elsewhere,
        )

    def _untouched(self, material: TaskMaterial, case: CaseMaterial) -> Suspect:
        elsewhere = list(_changes(case))
        first = min(case.answer)
        return suspect(
            material,
            case.number,
            self,
            Certainty.SURE,
            f"the input already holds the whole answer ({counted(len(case.answer), 'cell')}, "
            f"{place_in(case.gold, first)} is {shown(case.answer[first])}){_where(case)}",
            _why("a program that changes nothing passes", elsewhere, case),
            elsewhere,
        )

    def _repeated(self, material: TaskMaterial, case: CaseMaterial, other: CaseMaterial) -> Suspect:
        changes = input_changes(other, case)
        outside = [place for place in changes if not _in_input_answer(case, place)]
        summary = f"the answer is that of case {other.number}"
        if not outside and not same_looks(case.input, other.input):
            certainty = Certainty.POSSIBLE
            why = "the inputs differ in the looks of their cells, and no cell of the answer follows"
        elif not outside:
            certainty, why = Certainty.SURE, "so is the input: the case adds nothing"
        else:
            first = outside[0]
            certainty = Certainty.POSSIBLE
            why = (
                f"the inputs differ in {counted(len(outside), 'cell')} "
                f"({place_in(case.input, first)} is {shown(case.input.value(first))}, not "
                f"{shown(other.input.value(first))}), and no cell of the answer follows"
            )
        return suspect(
            material,
            case.number,
            self,
            certainty,
            summary,
            why,
            [
                evidence(
                    EvidenceFile.INPUT,
                    place,
                    expected=other.input.value(place),
                    found=case.input.value(place),
                    note=f"expected as in case {other.number}",
                )
                for place in outside
            ],
        )


def input_answer(case: CaseMaterial) -> Mapping[Place, CellValue]:
    """What the input holds in the answer range, at the places of the gold."""
    found: dict[Place, CellValue] = {}
    pairs = [
        (gold, given)
        for gold, given in zip(case.ranges, case.input_ranges, strict=True)
        if given is not None
    ]
    areas = [given for _, given in pairs]
    computed = case.tools.recalculator.fill(case.input.workbook, areas, origin=Origin.GOLD)
    for gold, given in pairs:
        for key, value in case.input.values(given.sheet).items():
            place = Place(given.sheet, key)
            if _within(given, place):
                found[_moved(place, given, gold)] = value
        for ref, computed_value in computed.values.items():
            place = Place.of(ref)
            if _within(given, place):
                found[_moved(place, given, gold)] = computed_value
    return found


def _moved(place: Place, given: CellRange, gold: CellRange) -> Place:
    row = place.row - given.min_row + gold.min_row
    column = place.column - given.min_column + gold.min_column
    return Place(gold.sheet, row << COLUMN_BITS | column)


def _within(area: CellRange, place: Place) -> bool:
    return (
        area.sheet == place.sheet
        and area.min_row <= place.row <= area.max_row
        and area.min_column <= place.column <= area.max_column
    )


def _same(
    case: CaseMaterial, first: Mapping[Place, CellValue], second: Mapping[Place, CellValue]
) -> bool:
    if any(given is None for given in case.input_ranges):
        return False
    places = first.keys() | second.keys()
    return len(places) <= MAX_COMPARED and all(
        agree(first.get(place), second.get(place)) for place in places
    )


def _repeats(case: CaseMaterial, other: CaseMaterial) -> bool:
    if case.ranges != other.ranges:
        return False
    places = case.answer.keys() | other.answer.keys()
    return len(places) <= MAX_COMPARED and all(
        agree(case.answer.get(place), other.answer.get(place)) for place in places
    )


def input_changes(first: CaseMaterial, second: CaseMaterial) -> list[Place]:
    """Cells in which the inputs of two cases differ, formulas by text."""
    found: list[Place] = []
    for sheet in second.input.sheet_names:
        if sheet in first.input:
            found += differing(first.input, second.input, sheet)
        else:
            found += [Place(sheet, key) for key in sorted(second.input.values(sheet))]
    return found


def same_input(first: CaseMaterial, second: CaseMaterial) -> bool:
    """Whether two cases have the same input: its cells, and how they look."""
    return not input_changes(first, second) and same_looks(first.input, second.input)


def _in_input_answer(case: CaseMaterial, place: Place) -> bool:
    return any(area is not None and _within(area, place) for area in case.input_ranges)


def _changes(case: CaseMaterial) -> Iterator[Evidence]:
    """Where the gold differs from the input, outside the answer."""
    for place in case.differences:
        yield evidence(
            EvidenceFile.GOLD,
            place,
            expected=case.input.value(place),
            found=case.gold.value(place),
            note="changed outside the answer range; expected as in the input",
        )
    for sheet in case.gold.sheet_names:
        if sheet not in case.input:
            yield Evidence(EvidenceFile.GOLD, sheet, note="a sheet that the input does not have")


def _why(said: str, elsewhere: list[Evidence], case: CaseMaterial) -> str:
    if not elsewhere:
        return said
    sheets = list(dict.fromkeys(each.sheet for each in elsewhere))
    new = [sheet for sheet in sheets if sheet not in case.input]
    where = ", ".join(f"'{sheet}'" for sheet in (new or sheets)[:3])
    return (
        f"{said}; the gold differs from the input elsewhere, in {where} "
        f"({counted(len(elsewhere), 'place')}): is the answer there?"
    )


def _where(case: CaseMaterial) -> str:
    hidden = sorted({area.sheet for area in case.ranges if area.sheet in case.gold.hidden})
    return f", on the hidden sheet '{hidden[0]}'" if hidden else ""


SIGN = SaysNothing()
