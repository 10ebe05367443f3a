"""Finds examples of the answer in the input that the gold contradicts."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from judge.console import counted
from judge.recalc.functions.conversions import UnsureError, text_number
from judge.suspects.books import CellAddress, agree, same_constant
from judge.suspects.contract import address_in, and_more, gold_evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, Suspect
from judge.suspects.signs.stored_values import is_error
from judge.workbook.cell import CellValue
from judge.workbook.number_formats import to_serial

MIN_EXAMPLES = 2
SHARE = 0.6
"""Constants in the input's answer range count as examples if the gold has this share of them."""

MIN_IN_ROWS = 10
SHARE_OF_ROWS = 0.7
"""If the gold continues rows of constants below, it must have at least this many of them, and at
least this share."""

MAX_COLUMNS_APART = 1
MIN_COMPUTED = 3
"""The input's formulas are examples only if at least this many have their values in the gold."""


class ContradictedExample:
    """Finds examples of the answer in the input that the gold contradicts."""

    name = "contradicted-example"
    title = "the input shows an example of the answer, and the gold has another value there"
    about = About.GOLD
    blind_spots = (
        (
            "the input's content in the answer range may be what the question wants corrected; it "
            "counts as examples only if the gold keeps most of it"
        ),
        (
            "if the gold has the same content in another form, a column counts only if the input "
            "leaves some of its cells to be filled in and the gold never has the input's form there"
        ),
        (
            "examples that a later case copies unchanged from case 1 are left out: they were "
            "simply not computed again"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose examples the gold contradicts."""
        if not material.cases:
            return
        first = material.cases[0]
        for case in material.cases:
            yield from self._case(material, case, first)

    def _case(
        self, material: TaskMaterial, case: CaseMaterial, first: CaseMaterial
    ) -> Iterator[Suspect]:
        if case.ranges != case.input_ranges:
            return
        other_form = [
            address
            for address in _examples(case)
            if is_other_form(case.input.value(address), case.answer.get(address))
            and not _has_both_forms(case, address)
        ]
        if other_form:
            yield self._suspect(
                material,
                case,
                other_form,
                Certainty.LIKELY,
                "the same content in another form, and the form is compared: an answer like the "
                "input's examples is rejected",
            )
            return
        spaced = _spaced(case)
        if spaced:
            yield self._suspect_of_spaces(material, case, spaced)
            return
        rows = [
            address
            for address in _rows_apart(first)
            if agree(case.input.value(address), first.input.value(address))
            and agree(case.answer.get(address), first.answer.get(address))
        ]
        if rows:
            yield self._suspect(
                material,
                case,
                rows,
                Certainty.LIKELY,
                "the gold has all other values of the rows that the input shows as examples, and "
                "more rows below them",
            )
            return
        computed = _formulas_apart(case)
        if computed:
            yield self._suspect(
                material,
                case,
                computed,
                Certainty.LIKELY,
                "the gold agrees with the other cells that the input computes as examples",
            )
            return
        same, differing = _compared(case, first)
        if differing and same >= MIN_EXAMPLES and same >= SHARE * (same + len(differing)):
            yield self._suspect(
                material,
                case,
                differing,
                Certainty.LIKELY if case is not first else Certainty.POSSIBLE,
                f"the gold keeps {counted(same, 'other example')} of the input",
            )

    def _suspect_of_spaces(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        spaced: Sequence[tuple[CellAddress, CellAddress]],
    ) -> Suspect:
        return suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY,
            f"the gold's {address_in(case.gold, spaced[0][0])} is "
            f"{shown(case.answer.get(spaced[0][0]))}, the input shows "
            f"{shown(case.input.value(spaced[0][1]))} in {address_in(case.input, spaced[0][1])}"
            f"{and_more(len(spaced))}",
            "the same strings with more spaces, which are compared",
            gold_evidence(
                case,
                [address for address, _ in spaced],
                expected={address: case.input.value(example) for address, example in spaced},
                note="expected as the input shows it in another column",
            ),
        )

    def _suspect(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        cells: Sequence[CellAddress],
        certainty: Certainty,
        why: str,
    ) -> Suspect:
        first = cells[0]
        return suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, "
            f"the input shows {shown(case.input.value(first))} there{and_more(len(cells))}",
            why,
            gold_evidence(
                case,
                cells,
                expected={address: case.input.value(address) for address in cells},
                note="expected as the input shows it",
            ),
        )


def _examples(case: CaseMaterial) -> list[CellAddress]:
    """Finds the input's constants in answer columns that the gold continues or fills gaps in."""
    given: dict[tuple[str, int], list[CellAddress]] = defaultdict(list)
    filled: set[tuple[str, int]] = set()
    for address in sorted(case.answer):
        column = (address.sheet, address.column)
        value = case.input.value(address)
        if value is None or value == "":
            filled.add(column)
        elif case.input.formula(address) is None and not is_error(value):
            given[column].append(address)
    return [cell for column, cells in given.items() if column in filled for cell in cells]


def _compared(case: CaseMaterial, first: CaseMaterial) -> tuple[int, list[CellAddress]]:
    """Counts the examples that the gold's formulas agree with, and lists those that differ."""
    same = 0
    differing: list[CellAddress] = []
    for address in case.answer_formulas:
        given = case.input.value(address)
        if given is None or is_error(given) or case.input.formula(address) is not None:
            continue
        if agree(case.answer.get(address), given) or _noise(case.answer.get(address), given):
            same += 1
        elif case is first or not same_constant(given, first.input.value(address)):
            differing.append(address)
    return same, differing


def _spaced(case: CaseMaterial) -> list[tuple[CellAddress, CellAddress]]:
    """Finds strings in an answer column that another input column has with fewer spaces.

    A column that only prepares the answer also has the extra spaces; a column without them shows
    the result.
    """
    written: dict[tuple[str, int], dict[CellAddress, str]] = defaultdict(dict)
    for address, value in case.answer.items():
        if (
            isinstance(value, str)
            and " " in value.strip()
            and not agree(value, case.input.value(address))
        ):
            written[address.sheet, address.column][address] = value
    if not written:
        return []
    examples: dict[tuple[str, int], dict[str, CellAddress]] = defaultdict(dict)
    for sheet in case.input.sheet_names:
        for key, value in case.input.values(sheet).items():
            if isinstance(value, str) and " " in value:
                cell = CellAddress(sheet, key)
                examples[sheet, cell.column].setdefault(" ".join(value.split()), cell)
    for column, texts in written.items():
        for other, neat in examples.items():
            spaced = [
                (address, example)
                for address, text in sorted(texts.items())
                if other != column
                and (example := neat.get(" ".join(text.split()))) is not None
                and len(text) > len(str(case.input.value(example)))
                and not agree(text, case.input.value(example))
            ]
            if len(spaced) >= MIN_EXAMPLES and 2 * len(spaced) >= len(texts):
                return spaced
    return []


def _rows_apart(case: CaseMaterial) -> list[CellAddress]:
    """Finds cells in a gold of constants that differ from the examples, if few columns differ."""
    examples = [address for address in _examples(case) if case.gold.formula(address) is None]
    differing = [
        address
        for address in examples
        if not agree(case.answer.get(address), case.input.value(address))
        and not _noise(case.answer.get(address), case.input.value(address))
        and not _has_both_forms(case, address)
    ]
    same = len(examples) - len(differing)
    if same < MIN_IN_ROWS or same < SHARE_OF_ROWS * len(examples):
        return []
    return differing if len({address.column for address in differing}) <= MAX_COLUMNS_APART else []


def _formulas_apart(case: CaseMaterial) -> list[CellAddress]:
    """Finds cells that the input computes as examples and in which the gold has another value."""
    examples = [
        address
        for address in case.answer
        if case.input.formula(address) is not None
        and case.input.value(address) is not None
        and not is_error(case.input.value(address))
    ]
    blank = sum(case.input.value(address) is None for address in case.answer)
    differing = [
        address
        for address in examples
        if not agree(case.answer.get(address), case.input.value(address))
    ]
    same = len(examples) - len(differing)
    is_shown = same >= MIN_COMPUTED and same >= SHARE * len(examples) and blank >= len(examples)
    return sorted(differing) if is_shown else []


def _has_both_forms(case: CaseMaterial, address: CellAddress) -> bool:
    """Returns whether the gold has the input's value elsewhere in the column, as if rows moved."""
    given = case.input.value(address)
    return any(
        (other.sheet, other.column) == (address.sheet, address.column)
        and type(value) is type(given)
        and value == given
        for other, value in case.answer.items()
    )


def is_other_form(given: CellValue, gold: CellValue) -> bool:
    """Returns whether two values mean the same but do not compare as equal.

    Such values are words in different letter case, or a number, a share or a date and its text.
    """
    if agree(given, gold) or isinstance(given, bool) or isinstance(gold, bool):
        return False
    if isinstance(given, str) and isinstance(gold, str):
        return given.split() != gold.split() and given.casefold().split() == gold.casefold().split()
    text, other = (given, gold) if isinstance(given, str) else (gold, given)
    if not isinstance(text, str):
        return False
    try:
        number = text_number(text)
    except UnsureError:
        return False
    if number is None:
        return False
    if isinstance(other, dt.datetime | dt.date | dt.time):
        other = to_serial(other)
    return agree(number, other)


def _noise(first: CellValue, second: CellValue) -> bool:
    """Returns whether two values are equal apart from spaces and letter case."""
    return str(first).split() == str(second).split()


CONTRADICTED_EXAMPLE = ContradictedExample()
