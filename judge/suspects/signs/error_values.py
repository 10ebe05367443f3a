"""Finds error values in a gold's answer that the input's data do not explain."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from judge.console import counted
from judge.formulas.references import references
from judge.formulas.traits import traits
from judge.suspects.books import CellAddress
from judge.suspects.contract import address_in, and_more, evidence, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.workbook.address import COLUMN_MASK
from judge.workbook.cell import CellValue, ErrorValue

CURLY = re.compile("[\u201c\u201d\u201e\u201f]")
"""Quotation marks that are not allowed in formulas."""

_ERROR_TEXT = re.compile(r"#(?:REF!|NAME\?|NULL!|DIV/0!|VALUE!|NUM!|N/A)")
MAX_FOLLOWED = 500
"""Largest number of errors that are examined in an answer, and in a sheet."""


class ErrorValues:
    """See :mod:`judge.suspects.signs.error_values`."""

    name = "error-value"
    title = "the gold's answer holds an error value that the input's data do not explain"
    about = About.GOLD
    blind_spots = (
        (
            "an error that the question asks for, such as #N/A for a missing key, is listed as "
            "possible"
        ),
        "a wrong value that an IFERROR hides is no longer an error",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer shows errors."""
        for case in material.cases:
            yield from self._case(material, case)

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        shown = {address: value for address, value in case.answer.items() if is_error(value)}
        # If the input has the error in the same cell, the author of the gold did not make it.
        own = {
            address: value
            for address, value in shown.items()
            if case.input.value(address) != value or _is_written_wrongly(case, address, value)
        }
        if not own:
            return
        written = [address for address in own if _is_written_wrongly(case, address, own[address])]
        answered = len(case.answer)
        explained = not written and _is_in_data(case, own)
        is_mentioned = any(_code(value) in material.task.instruction for value in own.values())
        if is_mentioned or explained or (not written and _is_shown_before(case, own)):
            certainty = Certainty.POSSIBLE
        elif written:
            certainty = Certainty.SURE
        else:
            certainty = Certainty.LIKELY
        first = (written or sorted(own))[0]
        formula = case.gold.formula(first)
        yield suspect(
            material,
            case.number,
            self,
            certainty,
            f"the gold's {address_in(case.gold, first)} is {_code(own[first])}{and_more(len(own))}",
            f"{counted(len(own), 'cell')} of {answered:,} in the answer can only be matched by the "
            "same error"
            + (
                "; the formula is broken, whatever the data are"
                if written
                else "; the input's data hold such an error themselves"
                if explained
                else "; no cell of the input that the formula reads holds an error"
            ),
            [
                evidence(
                    EvidenceFile.GOLD,
                    address,
                    found=own[address],
                    note=(formula or "") if address == first else case.gold.formula(address) or "",
                )
                for address in sorted(own, key=lambda item: (item not in written, item))
            ],
        )


def _is_shown_before(case: CaseMaterial, errors: Mapping[CellAddress, CellValue]) -> bool:
    """Returns whether the input's own formulas already show errors in the answer's columns.

    Then the user knows about them, and a question about something else does not change them.
    """
    columns = {(address.sheet, address.column, _code(value)) for address, value in errors.items()}
    before = {
        (area.sheet, key & COLUMN_MASK, _code(value))
        for area in case.ranges
        if area.sheet in case.input
        for key, value in case.input.values(area.sheet).items()
        if isinstance(value, ErrorValue) and key in case.input.formulas(area.sheet)
    }
    return columns <= before


def is_error(value: CellValue) -> bool:
    """Returns whether a value is an error, or a string that is written like one."""
    if isinstance(value, str):
        return _ERROR_TEXT.fullmatch(value.strip()) is not None
    return isinstance(value, ErrorValue)


def _code(value: CellValue) -> str:
    return value.code if isinstance(value, ErrorValue) else str(value)


def _is_written_wrongly(case: CaseMaterial, address: CellAddress, value: CellValue) -> bool:
    """Returns whether the formula would show an error whatever the data are."""
    formula = case.gold.formula(address)
    if formula is None:
        return _code(value) in {"#REF!", "#NAME?"}
    formula_traits = traits(formula)
    return (
        CURLY.search(formula) is not None
        or formula_traits.broken
        or bool(formula_traits.unprefixed)
        or _code(value) in {"#REF!", "#NAME?"}
    )


def _is_in_data(case: CaseMaterial, errors: Iterable[CellAddress]) -> bool:
    """Returns whether cells that the formulas read already have errors in the input."""
    held: dict[str, list[CellAddress]] = {}
    for address in itertools.islice(errors, MAX_FOLLOWED):
        formula = case.gold.formula(address)
        if formula is None:
            return False
        for reference in references(formula):
            sheet = reference.sheet or address.sheet
            if sheet not in held:
                held[sheet] = _errors_in(case, sheet)
            if any(
                reference.min_row <= area.row <= reference.max_row
                and reference.min_column <= area.column <= reference.max_column
                for area in held[sheet]
            ):
                break
        else:
            return False
    return True


def _errors_in(case: CaseMaterial, sheet: str) -> list[CellAddress]:
    errors = (
        CellAddress(sheet, key)
        for key, value in case.input.values(sheet).items()
        if isinstance(value, ErrorValue)
    )
    return list(itertools.islice(errors, MAX_FOLLOWED))


SIGN = ErrorValues()
