"""Signs about the cases of a task: one that any program passes, a repeated one, another rule.

For another rule, the formulas of case 1's answer are filled into the other cases and computed
there. This also finds cases whose inputs are the same but whose answers differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from judge.console import counted
from judge.core.submission import Origin
from judge.formulas.references import Reference, references
from judge.grading.verify import CaseCheck
from judge.suspects.books import CellAddress, agree, differing, same_looks
from judge.suspects.contract import (
    address_in,
    and_more,
    evidence,
    gold_evidence,
    shown,
    suspect,
)
from judge.suspects.material import (
    CaseMaterial,
    TaskMaterial,
    formula_values,
    holds,
    moved_address,
)
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect
from judge.suspects.signs.formulas import resembles_last_row
from judge.suspects.signs.stored_values import alike
from judge.workbook.cell import CellValue, ErrorValue

MAX_COMPARED = 200_000


class UninformativeCase:
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


UNINFORMATIVE_CASE = UninformativeCase()


_NUMBERS = re.compile(r"\d+")


class ChangedRule:
    """Finds tasks whose rule changes between cases.

    The formulas of case 1's answer are filled into the other cases and computed there. This sign
    also finds cases whose inputs are the same but whose answers differ.
    """

    name = "changed-rule"
    title = "the rule of case 1's answer does not give the answer of another case"
    about = About.GOLD
    blind_spots = (
        "a gold of constants in case 1 has no rule that could be filled into the other cases",
        ("a formula whose ranges end where the data of case 1 end is not filled into longer data"),
        "a wrong formula that all cases share causes no contradiction",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each later case that follows a different rule."""
        if len(material.cases) < 2:
            return
        first = material.cases[0]
        for case in material.cases[1:]:
            suspect = next(self._same_input(material, case), None) or next(
                self._filled(material, first, case), None
            )
            if suspect is not None:
                yield suspect

    def _same_input(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        for other in material.cases:
            if other.number >= case.number or other.ranges != case.ranges:
                continue
            differing = _apart(case, other)
            if not differing or case.changing or not same_input(other, case):
                continue
            address = differing[0]
            yield suspect(
                material,
                case.number,
                self,
                Certainty.SURE,
                f"the input is that of case {other.number}, but "
                f"{address_in(case.gold, address)} of the answer is "
                f"{shown(case.answer.get(address))}, not "
                f"{shown(other.answer.get(address))}{and_more(len(differing))}",
                "one of the two golds is wrong: no rule gives two answers to one input",
                gold_evidence(
                    case,
                    differing,
                    expected={address: other.answer.get(address) for address in differing},
                    note=f"expected as in case {other.number}",
                ),
            )

    def _filled(
        self, material: TaskMaterial, first: CaseMaterial, case: CaseMaterial
    ) -> Iterator[Suspect]:
        if first.ranges != case.ranges or not first.answer_formulas:
            return
        expected = dict(_other_than_first(first, case))
        if not expected:
            return
        values = formula_values(case, expected)
        # In case 1 itself the formulas must give its answer; otherwise they prove nothing.
        trusted = {
            address: value
            for address, value in values.items()
            if address in first.recomputed
            and alike(first.answer, address, first.recomputed[address])
            and not isinstance(value, ErrorValue)
        }
        differing = sorted(
            address for address, value in trusted.items() if not alike(case.answer, address, value)
        )
        if not differing or first.changing:
            return
        right = len(trusted) - len(differing)
        address = differing[0]
        by_hand = all(case.gold.formula(address) is None for address in expected)
        certainty = Certainty.LIKELY if by_hand or right else Certainty.POSSIBLE
        own_formula = case.gold.formula(address)
        yield suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, address)} is {shown(case.answer.get(address))}, "
            f"case {first.number}'s formula gives {shown(trusted[address])} there"
            f"{and_more(len(differing))}",
            (
                f"the cells hold {'constants' if own_formula is None else 'another formula'} in "
                f"this case; of {counted(len(trusted), 'cell')}, {right} are as case "
                f"{first.number}'s formula gives them"
            ),
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=trusted[address],
                    found=case.answer.get(address),
                    note=f"case {first.number}: {first.answer_formulas[address]}",
                )
                for address in differing
            ],
        )


def _other_than_first(first: CaseMaterial, case: CaseMaterial) -> Iterator[tuple[CellAddress, str]]:
    """Yields the cells that lack the first case's formula, each with this formula."""
    moved = _moved_columns(first, case)
    for address, formula in first.answer_formulas.items():
        own = case.gold.formula(address)
        if own == formula or (address.sheet, address.column) in moved:
            continue
        if own is None and (case.gold.value(address) is None or case.is_given(address)):
            continue  # the data are shorter, or the cell is data
        if own is not None and _NUMBERS.sub("1", own) == _NUMBERS.sub("1", formula):
            continue  # the same formula for different rows
        if any(_grew(first, case, address, reference) for reference in references(formula)):
            continue
        yield address, formula


def _grew(
    first: CaseMaterial, case: CaseMaterial, address: CellAddress, reference: Reference
) -> bool:
    """Returns whether a range covers a whole table in the first case, but not in another case."""
    sheet, below = reference.sheet or address.sheet, reference.max_row + 1
    return (
        reference.max_row > reference.min_row
        and resembles_last_row(case.gold, sheet, reference, below)
        and not resembles_last_row(first.gold, sheet, reference, below)
    )


def _moved_columns(first: CaseMaterial, case: CaseMaterial) -> frozenset[tuple[str, int]]:
    """Finds columns whose formulas are in different rows than in case 1: the table has moved."""
    return frozenset(
        (address.sheet, address.column)
        for address in case.answer_formulas
        if address not in first.answer_formulas
    )


def _apart(case: CaseMaterial, other: CaseMaterial) -> list[CellAddress]:
    return sorted(
        address
        for address in case.answer.keys() | other.answer.keys()
        if not agree(case.answer.get(address), other.answer.get(address))
    )


CHANGED_RULE = ChangedRule()
