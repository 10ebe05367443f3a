"""Finds cases that any program passes, and cases that repeat another case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from judge.console import counted
from judge.core.submission import Origin
from judge.grading.verify import CaseCheck
from judge.suspects.books import CellAddress, agree, differing, same_looks
from judge.suspects.contract import address_in, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial, holds, moved_address
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.cell import CellValue

MAX_COMPARED = 200_000


class SaysNothing:
    """Finds cases that any program passes, and cases that repeat another case."""

    name = "says-nothing"
    title = "the case cannot tell a right answer from the untouched input"
    about = About.CASE
    blind_spots = (
        (
            "only values are compared here: a case whose answer is a colour is left out if the "
            "checker compares styles"
        ),
        (
            "a case that accepts most wrong programs, but not the untouched input, is not seen; "
            "`judge annotate strength` measures that"
        ),
        (
            "a case with the same answer as another case, but different data, still rejects "
            "programs that read the data wrongly; it is listed as possible"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case that tests nothing."""
        for check in material.checks:
            yield from self._whole_answer(material, check)
        if material.task.checker.options.get("style"):
            return
        for case in material.cases:
            yield from self._case(material, case)

    def _whole_answer(self, material: TaskMaterial, check: CaseCheck) -> Iterator[Suspect]:
        """Examines a case whose answer is not a range of cells."""
        notes: tuple[str, ...]
        if check.untouched_accepted:
            summary, why = (
                "the untouched input is accepted",
                "a program that changes nothing passes",
            )
            file, notes = EvidenceFile.INPUT, ("accepted as the answer",)
        elif not check.cells and not check.gold_problem:
            summary = "nothing is compared with the answer"
            why = "any answer passes, or none"
            file, notes = EvidenceFile.GOLD, check.doubts or ("blank, or not given",)
        else:
            return
        items = [Evidence(file, note=note) for note in notes]
        yield suspect(material, check.case, self, Certainty.SURE, summary, why, items)

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
        self, material: TaskMaterial, case: CaseMaterial, given: Mapping[CellAddress, CellValue]
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
            f"{address_in(case.gold, first)} is {shown(case.answer[first])}){_where(case)}",
            _why("a program that changes nothing passes", elsewhere, case),
            elsewhere,
        )

    def _repeated(self, material: TaskMaterial, case: CaseMaterial, other: CaseMaterial) -> Suspect:
        changes = input_changes(other, case)
        outside = [address for address in changes if not _in_input_answer(case, address)]
        shown_changes = outside or changes
        summary = f"the answer is that of case {other.number}"
        if shown_changes:
            first = shown_changes[0]
            where = "" if outside else " of the answer range"
            certainty = Certainty.POSSIBLE
            why = (
                f"the inputs differ in {counted(len(shown_changes), 'cell')}{where} "
                f"({address_in(case.input, first)} is {shown(case.input.value(first))}, not "
                f"{shown(other.input.value(first))}), but the answer is the same"
            )
        elif not same_looks(case.input, other.input):
            certainty = Certainty.POSSIBLE
            why = "the inputs differ in the formatting of cells, but the answer is the same"
        else:
            certainty, why = Certainty.SURE, "the input is the same too: the case adds nothing"
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
                    address,
                    expected=other.input.value(address),
                    found=case.input.value(address),
                    note=f"expected as in case {other.number}",
                )
                for address in shown_changes
            ],
        )


def input_answer(case: CaseMaterial) -> Mapping[CellAddress, CellValue]:
    """Returns the values of the input in the answer range, at the addresses of the gold."""
    values: dict[CellAddress, CellValue] = {}
    pairs = [
        (gold, given)
        for gold, given in zip(case.ranges, case.input_ranges, strict=True)
        if given is not None
    ]
    areas = [given for _, given in pairs]
    computed = case.tools.recalculator.fill(case.input.workbook, areas, origin=Origin.GOLD)
    for gold, given in pairs:
        for key, value in case.input.values(given.sheet).items():
            address = CellAddress(given.sheet, key)
            if holds((given,), address):
                values[moved_address(address, given, gold)] = value
        for ref, computed_value in computed.values.items():
            address = CellAddress.of(ref)
            if holds((given,), address):
                values[moved_address(address, given, gold)] = computed_value
    return values


def _same(
    case: CaseMaterial,
    first: Mapping[CellAddress, CellValue],
    second: Mapping[CellAddress, CellValue],
) -> bool:
    if any(given is None for given in case.input_ranges):
        return False
    addresses = first.keys() | second.keys()
    return len(addresses) <= MAX_COMPARED and all(
        agree(first.get(address), second.get(address)) for address in addresses
    )


def _repeats(case: CaseMaterial, other: CaseMaterial) -> bool:
    if case.ranges != other.ranges:
        return False
    addresses = case.answer.keys() | other.answer.keys()
    return len(addresses) <= MAX_COMPARED and all(
        agree(case.answer.get(address), other.answer.get(address)) for address in addresses
    )


def input_changes(first: CaseMaterial, second: CaseMaterial) -> list[CellAddress]:
    """Finds cells in which the inputs of two cases differ; formulas are compared as text."""
    changes: list[CellAddress] = []
    for sheet in second.input.sheet_names:
        if sheet in first.input:
            changes += differing(first.input, second.input, sheet)
        else:
            changes += [CellAddress(sheet, key) for key in sorted(second.input.values(sheet))]
    return changes


def same_input(first: CaseMaterial, second: CaseMaterial) -> bool:
    """Returns whether two cases have the same input, including the formatting of its cells."""
    return not input_changes(first, second) and same_looks(first.input, second.input)


def _in_input_answer(case: CaseMaterial, address: CellAddress) -> bool:
    return holds(case.input_ranges, address)


def _changes(case: CaseMaterial) -> Iterator[Evidence]:
    """Makes evidence of where the gold differs from the input outside the answer."""
    for address in case.differences:
        yield evidence(
            EvidenceFile.GOLD,
            address,
            expected=case.input.value(address),
            found=case.gold.value(address),
            note="changed outside the answer range; expected as in the input",
        )
    for sheet in case.gold.sheet_names:
        if sheet not in case.input:
            yield Evidence(EvidenceFile.GOLD, sheet, note="a sheet that the input does not have")


def _why(reason: str, elsewhere: list[Evidence], case: CaseMaterial) -> str:
    if not elsewhere:
        return reason
    sheets = list(dict.fromkeys(item.sheet for item in elsewhere))
    new = [sheet for sheet in sheets if sheet not in case.input]
    where = ", ".join(f"'{sheet}'" for sheet in (new or sheets)[:3])
    return (
        f"{reason}; the gold differs from the input elsewhere, in {where} "
        f"({counted(len(elsewhere), 'place')}): is the answer there?"
    )


def _where(case: CaseMaterial) -> str:
    hidden = sorted({area.sheet for area in case.ranges if area.sheet in case.gold.hidden})
    return f", on the hidden sheet '{hidden[0]}'" if hidden else ""


SAYS_NOTHING = SaysNothing()
