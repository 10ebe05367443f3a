"""Signs about the cells outside the answer in which a gold differs from its input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from judge.compare.cells.value import text_as_number
from judge.console import counted
from judge.errors import JudgeError
from judge.suspects.books import CellAddress, agree, same_constant
from judge.suspects.contract import Sign, address_in, and_more, evidence, shown, suspect
from judge.suspects.material import CaseMaterial, Contradictions, TaskMaterial, Traces, traces_of
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.cell import CellValue

MAX_RESTORED = 2_000
"""The most cells of a gold that are replaced by the input's; if more differ, none is."""


MAX_CHANGED_CONSTANTS = 20
"""If more constants differ, the gold was probably made from another version of the input."""


class ContradictedInput:
    """Finds constants outside the answer that differ between a case's input and its gold.

    Somebody changed an input value in only one of the two files, so the gold answers a question
    that no program gets. If the gold has formulas, they are computed again with the input's
    constants, and only answers that then differ count. The engines' results with the change are
    compared with their results without it, not just with the stored values.
    """

    name = "contradicted-input"
    title = "outside the answer, the gold and the input hold different constants"
    about = About.GOLD
    blind_spots = (
        "a constant that the gold changed within the answer range is not compared",
        (
            "values that a macro in the question changes on purpose look the same; if every case "
            "has the change in the same cells, the suspect is less sure, or is left out"
        ),
        ("references through names of other workbooks, or through macros, are not followed"),
        (
            "in a task with one case, a row or column of which the gold changed half or more is "
            "taken to be part of the solution"
        ),
        "in a gold of constants, only values that can be traced into the answer are sure",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose gold contradicts its input."""
        by_case = {case.number: case.contradictions for case in material.cases}
        for case in material.cases:
            mine = by_case[case.number]
            changed = [
                address for address in mine.changed if not _is_layout(material.cases, address)
            ]
            if len(material.cases) == 1:
                changed = without_whole_lines(case, changed)
            if not changed:
                continue
            others = [by_case[other.number] for other in material.cases if other is not case]
            if case.answer_formulas:
                own = unchanged_somewhere(changed, others)
                yield from self._with_formulas(material, case, changed, own)
            else:
                elsewhere = [address for other in others for address in other.changed]
                yield from self._with_constants(material, case, changed, elsewhere)

    def _with_formulas(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        changed: Sequence[CellAddress],
        own: Sequence[CellAddress],
    ) -> Iterator[Suspect]:
        if len(changed) > MAX_RESTORED:
            return
        moved = moved_answers(case, {address: case.input.value(address) for address in changed})
        if moved:
            # A string that every case changes may be the value that the formulas look up; a number
            # or a date is data.
            data = any(not isinstance(case.gold.value(address), str) for address in changed)
            certainty = Certainty.SURE if own or data else Certainty.POSSIBLE
            yield suspect_of_contradiction(
                self, material, case, own or changed, moved=moved, certainty=certainty
            )

    def _with_constants(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        changed: Sequence[CellAddress],
        elsewhere: Sequence[CellAddress],
    ) -> Iterator[Suspect]:
        # A macro that changes its input changes different rows in each case.
        columns = {(address.sheet, address.column) for address in elsewhere}
        own = [
            address
            for address in changed
            if (address.sheet, address.column) not in columns
            and not is_heading(material.cases, case, address)
        ]
        if not own:
            return
        traces = traces_of(case.answer.values())
        traced = [address for address in own if _is_traced(case, address, traces)]
        if traced:
            certainty = Certainty.SURE
        else:
            alone = len(material.cases) == 1
            certainty = (
                Certainty.POSSIBLE
                if alone or len(own) > MAX_CHANGED_CONSTANTS
                else Certainty.LIKELY
            )
        yield suspect_of_contradiction(self, material, case, traced or own, certainty=certainty)


MAX_LISTED = 10  # cells in the evidence; all are counted


def suspect_of_contradiction(
    sign: Sign,
    material: TaskMaterial,
    case: CaseMaterial,
    addresses: Sequence[CellAddress],
    *,
    moved: Mapping[CellAddress, tuple[CellValue, CellValue]] = MappingProxyType({}),
    certainty: Certainty,
) -> Suspect:
    """Makes a suspect for a gold and an input that differ in some cells.

    Args:
        sign: the sign.
        material: the task.
        case: the case.
        addresses: the cells, at least one.
        moved: the effect on the answer, as :func:`moved_answers` returns it.
        certainty: how sure the suspicion is.
    """
    first = addresses[0]
    gold, given = case.gold.value(first), case.input.value(first)
    cells: list[Evidence] = [
        evidence(
            EvidenceFile.GOLD,
            address,
            expected=case.input.value(address),
            found=case.gold.value(address),
            note="the input has the expected value",
        )
        for address in addresses[:MAX_LISTED]
    ]
    if moved:
        address, (was, now) = next(iter(moved.items()))
        why = (
            f"with the input's own values, the gold's formulas give {shown(now)} in "
            f"{address_in(case.gold, address)}, not {shown(was)} "
            f"({counted(len(moved), 'cell')} of the answer)"
        )
        cells += _evidence_of_effect(moved)
    elif certainty is Certainty.SURE:
        why = "the answer holds the gold's value, which the input does not have"
    else:
        why = "a program is given the input's value, and the gold was made with another one"
    return suspect(
        material,
        case.number,
        sign,
        certainty,
        f"the gold's {address_in(case.gold, first)} is {shown(gold)}, the input's is "
        f"{shown(given)}{and_more(len(addresses))}",
        why,
        cells,
    )


def _evidence_of_effect(
    moved: Mapping[CellAddress, tuple[CellValue, CellValue]],
) -> Iterator[Evidence]:
    for address, (before, after) in moved.items():
        yield evidence(
            EvidenceFile.GOLD,
            address,
            expected=after,
            found=before,
            note="answer; expected with the input's values",
        )


HEADING_ROWS = 2  # at the top of a sheet or above a table
MIN_LINE = 5
"""If at least this many cells of a row or column are changed, the whole line may have been
rewritten."""


def moved_answers(
    case: CaseMaterial,
    constants: Mapping[CellAddress, CellValue],
    formulas: Mapping[CellAddress, str] | None = None,
) -> dict[CellAddress, tuple[CellValue, CellValue]]:
    """Finds answer cells whose values change if cells of the gold get new contents.

    Args:
        case: the case.
        constants: cell -> its constant.
        formulas: cell -> its formula, with the leading ``=``.

    Returns:
        Cell -> its value in the gold, and its value with the new contents. It only has cells for
        which the engines compute the gold's value without the change.
    """
    baseline = case.recomputed
    if not baseline:
        return {}
    try:
        restored = case.tools.edit(
            case.gold.workbook.data,
            {address.ref: value for address, value in constants.items()},
            {address.ref: text.removeprefix("=") for address, text in (formulas or {}).items()},
        )
        computed = case.tools.compute(restored, case.ranges)
    except JudgeError:
        return {}
    after = {CellAddress.of(ref): value for ref, value in computed.values.items()}
    return {
        address: (value, after[address])
        for address, value in sorted(baseline.items())
        if address in after
        and address not in case.changing
        and agree(case.answer.get(address), value)
        and not agree(value, after[address])
    }


def unchanged_somewhere(
    addresses: Iterable[CellAddress], others: Sequence[Contradictions]
) -> list[CellAddress]:
    """Selects the cells that at least one other case does not change."""
    if not others:
        return list(addresses)
    common = frozenset.intersection(*(other.cells for other in others))
    return [address for address in addresses if address not in common]


def _is_layout(cases: Sequence[CaseMaterial], address: CellAddress) -> bool:
    """Returns whether every gold has a number in a cell in which its input has a string.

    In that case, the column is only stored differently, and a program that reads the string knows
    the number too. In a task with one case, the number must be the one that the string spells out.
    """
    for case in cases:
        given, gold = case.input.value(address), case.gold.value(address)
        if not isinstance(given, str) or gold is None or isinstance(gold, str):
            return False
        if len(cases) == 1 and not agree(text_as_number(given), gold):
            return False
    return True


def without_whole_lines(case: CaseMaterial, changed: Sequence[CellAddress]) -> list[CellAddress]:
    """Selects the cells that the gold changed individually, not with most of a row or column.

    Sorting a list, or writing headings again, changes most of a row or column. This is not checked
    if other cases show whether the change was intended.
    """
    cells_by_line: Counter[tuple[str, str, int]] = Counter()
    for sheet in {address.sheet for address in changed}:
        formulas = case.gold.formulas(sheet)
        for key in case.gold.values(sheet):
            if key not in formulas:
                cells_by_line.update(_lines(CellAddress(sheet, key)))
    rewritten = Counter(line for address in changed for line in _lines(address))
    whole = {
        line
        for line, count in rewritten.items()
        if count >= MIN_LINE and count * 2 >= cells_by_line[line]
    }
    return [address for address in changed if whole.isdisjoint(_lines(address))]


def _lines(address: CellAddress) -> tuple[tuple[str, str, int], tuple[str, str, int]]:
    """Returns the row and the column of a cell."""
    return (address.sheet, "row", address.row), (address.sheet, "column", address.column)


def is_heading(cases: Sequence[CaseMaterial], case: CaseMaterial, address: CellAddress) -> bool:
    """Returns whether a cell is a string in the first rows, or directly above the answer.

    A cell in which the inputs of the cases differ is data, wherever it is.
    """
    given, gold = case.input.value(address), case.gold.value(address)
    if not isinstance(given if gold is None else gold, str):
        return False
    if any(not same_constant(other.input.value(address), given) for other in cases):
        return False
    return address.row <= HEADING_ROWS or any(
        area.sheet == address.sheet
        and area.min_column <= address.column <= area.max_column
        and area.min_row - HEADING_ROWS <= address.row < area.min_row
        for area in case.ranges
    )


def _is_traced(case: CaseMaterial, address: CellAddress, traces: Traces) -> bool:
    """Returns whether the answer has the value that a cell has in the gold, not in the input."""
    gold, given = case.gold.value(address), case.input.value(address)
    return traces.holds(gold) and not traces.holds(given)


CONTRADICTED_INPUT = ContradictedInput()


class BlankConstant:
    """Finds cells outside the answer that are blank in either input or gold, but not in both.

    Somebody filled in or emptied a cell in only one of the two files. A program gets the input, so
    its answer may differ from the gold's.
    """

    name = "blank-constant"
    title = "a cell outside the answer is blank in the gold, a constant in the input, or vice versa"
    about = About.GOLD
    blind_spots = (
        "a question may want cells to be filled in or emptied outside the answer position",
        (
            "in a task with one case, that cannot be distinguished from a fault, and counts as one "
            "if the gold's formulas read the cell"
        ),
        "in a gold of constants, a cell that was emptied leaves no trace in the answer",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer may depend on one of these cells."""
        by_case = {case.number: case.contradictions for case in material.cases}
        for case in material.cases:
            mine = by_case[case.number]
            if not mine.emptied and not mine.added:
                continue
            others = [by_case[other.number] for other in material.cases if other is not case]
            if case.answer_formulas:
                yield from self._with_formulas(material, case, mine, others)
            elif others:
                yield from self._with_constants(material, case, mine, others)

    def _with_formulas(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        mine: Contradictions,
        others: Sequence[Contradictions],
    ) -> Iterator[Suspect]:
        for addresses in (mine.emptied, mine.added):
            if not addresses or len(addresses) > MAX_RESTORED:
                continue
            moved = moved_answers(
                case, {address: case.input.value(address) for address in addresses}
            )
            if not moved:
                continue
            own = unchanged_somewhere(addresses, others)
            certainty = Certainty.LIKELY if own else Certainty.POSSIBLE
            yield suspect_of_contradiction(
                self, material, case, own or addresses, moved=moved, certainty=certainty
            )
            return

    def _with_constants(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        mine: Contradictions,
        others: Sequence[Contradictions],
    ) -> Iterator[Suspect]:
        # Cells that the question wants emptied or filled in are in different rows in each case.
        columns = {(address.sheet, address.column) for other in others for address in other.cells}
        own: list[CellAddress] = [
            address
            for address in (*mine.emptied, *mine.added)
            if (address.sheet, address.column) not in columns
            and not is_heading(material.cases, case, address)
        ]
        if not own or len(own) > MAX_CHANGED_CONSTANTS:
            return
        traces = traces_of(case.answer.values())
        traced = [address for address in own if traces.holds(case.gold.value(address))]
        certainty = Certainty.LIKELY if traced else Certainty.POSSIBLE
        yield suspect_of_contradiction(self, material, case, traced or own, certainty=certainty)


BLANK_CONSTANT = BlankConstant()


class FrozenInput:
    """Finds formulas in the input that the answer depends on and the gold replaced with constants.

    A program gets the formula and its value. If the gold has a different constant there, it answers
    the question for data that no program has.
    """

    name = "frozen-input"
    title = "outside the answer, the gold holds a constant where the input has a formula"
    about = About.GOLD
    blind_spots = (
        "a gold of constants does not show which cells its answer was made from",
        "if every case has the change in the same cells, it may be part of the solution",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields a suspect for each case whose answer depends on a constant replacing a formula."""
        frozen_by_case = {case.number: _frozen(case) for case in material.cases}
        for case in material.cases:
            others = [frozen for number, frozen in frozen_by_case.items() if number != case.number]
            everywhere = set.intersection(*others) if others else set()
            yield from self._case(material, case, is_everywhere=everywhere >= _frozen(case))

    def _case(
        self, material: TaskMaterial, case: CaseMaterial, *, is_everywhere: bool
    ) -> Iterator[Suspect]:
        formulas = {
            address: formula
            for address in sorted(_frozen(case))
            if (formula := case.input.formula(address)) is not None
        }
        if not formulas or len(formulas) > MAX_RESTORED:
            return
        moved = moved_answers(case, {}, formulas)
        if not moved:
            return
        first, (was, now) = next(iter(moved.items()))
        frozen = next(iter(formulas))
        certainty = Certainty.POSSIBLE if is_everywhere else Certainty.LIKELY
        yield suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, frozen)} is the constant "
            f"{shown(case.gold.value(frozen))}, the input's is {formulas[frozen]}"
            f"{and_more(len(formulas))}",
            f"with the input's own formulas, the gold's give {shown(now)} in "
            f"{address_in(case.gold, first)}, not {shown(was)} "
            f"({counted(len(moved), 'cell')} of the answer)",
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    expected=after,
                    found=before,
                    note="answer; expected with the input's formulas",
                )
                for address, (before, after) in moved.items()
            ],
        )


def _frozen(case: CaseMaterial) -> set[CellAddress]:
    """Finds cells outside the answer with a formula in the input and a constant in the gold."""
    return {
        address
        for address in case.differences
        if case.input.formula(address) is not None
        and case.gold.formula(address) is None
        and case.gold.value(address) is not None
    }


FROZEN_INPUT = FrozenInput()
