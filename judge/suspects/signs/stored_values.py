"""Signs about the values that are stored with a gold: outdated, of one day, and errors."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from judge.console import counted
from judge.errors import JudgeError
from judge.formulas.references import references
from judge.formulas.traits import traits
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, evidence, gold_evidence, shown, suspect
from judge.suspects.material import MAX_REWRITTEN, CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK
from judge.workbook.cell import CellRef, CellValue, ErrorValue

WEAK = frozenset({"#REF!", "#NAME?", "#VALUE!", "#NUM!", "#NULL!", "#SPILL!", "#CALC!"})
"""Errors that an engine also shows if it lacks a feature."""


class Stale:
    """Finds golds whose stored values differ from what their formulas compute now."""

    name = "stale-gold"
    title = "the gold's stored values differ from what its own formulas compute from its own cells"
    about = About.GOLD
    blind_spots = (
        "a gold of constants has no formulas that could be computed",
        (
            "if the calculation engines share an error, or differ from Excel in the same way, the "
            "gold is suspected without reason; a cell that only one engine computes is never sure"
        ),
        "if the input shows a stored value as an example, the suspect is only possible",
        "golds that a library wrote have no stored values that could be out of date",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose gold has outdated stored values."""
        for case in material.cases:
            yield from self._case(material, case)

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        differing = stale_cells(case)
        if not differing:
            return
        cells = sorted(address for address in differing if address not in case.changing)
        if not cells:
            return
        now = case.recomputed
        total = len(case.answer_formulas)
        first = cells[0]
        # If everything differs, an engine probably lacks a feature; it is less probable that the
        # whole gold is out of date. If only a few cells differ, the gold is suspect.
        few = len(cells) * 2 <= total
        # If the input shows the stored value as an example, the engines are wrong.
        shown_before = any(
            case.input.formula(address) is None
            and case.input.value(address) is not None
            and agree(case.input.value(address), case.answer.get(address))
            for address in cells
        )
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if few and not shown_before else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, "
            f"its own formula gives {shown(now[first])}{and_more(len(cells))}",
            f"{counted(len(cells), 'cell')} of {total:,} formulas in the answer; the gold was not "
            "computed again after an edit, or was edited without its formulas",
            gold_evidence(case, cells, expected=now),
        )


def stale_cells(case: CaseMaterial) -> list[CellAddress]:
    """Finds the cells of the answer whose stored value differs from the computed one."""
    if not case.recomputed:
        return []
    return [
        address
        for address, value in case.recomputed.items()
        if not alike(case.answer, address, value) and not _is_weak(value)
    ]


def alike(answer: Mapping[CellAddress, CellValue], address: CellAddress, value: CellValue) -> bool:
    """Returns whether a computed value equals the answer's; strings of spaces count as blank."""
    stored = answer.get(address)
    if isinstance(value, str) and not value.strip():
        value = None
    if isinstance(stored, str) and not stored.strip():
        stored = None
    return agree(stored, value)


def _is_weak(value: CellValue) -> bool:
    return isinstance(value, ErrorValue) and value.code in WEAK


STALE = Stale()


LATER_DAYS = (1, 40, 400)

DAY = re.compile(r"\b(?:TODAY|NOW)\(\s*\)", re.IGNORECASE)

# "earlier than the current month", "if today's date is past column B", "in the last 30 days"
_ASKS_FOR_DAY = re.compile(
    r"\b(?:today(?:'s)?|current\s+(?:date|day|week|month|year)|this\s+(?:week|month)"
    r"|(?:last|next|past)\s+\d+\s+(?:days|weeks|months)|days?\s+ago|overdue)\b",
    re.IGNORECASE,
)

# "before the date in G1": the input states the day to compare with
_STATES_THE_DAY = re.compile(
    r"\b(?:date|day) (?:in|of) (?:cell )?\$?[A-Z]{1,3}\$?[0-9]{1,7}\b", re.IGNORECASE
)


class Volatile:
    """Finds answers that depend on the day on which the gold was saved."""

    name = "day-of-saving"
    title = "the answer depends on a function that changes by itself, such as TODAY or RAND"
    about = About.GOLD
    blind_spots = (
        (
            "a gold of constants that were computed on the day of saving has no such function; it "
            "is listed only if the question names the current day and the input has dates of the "
            f"{LATER_DAYS[-1]} days after the saving"
        ),
        "a random choice that the question itself requires is listed as well",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer changes with the date."""
        instruction = material.task.instruction
        asks_for_day = _ASKS_FOR_DAY.search(instruction)
        if _STATES_THE_DAY.search(instruction):
            asks_for_day = None
        for case in material.cases:
            if case.answer_formulas or asks_for_day is None:
                yield from self._case(material, case)
            else:
                yield from self._constants(material, case, asks_for_day[0])

    def _constants(
        self, material: TaskMaterial, case: CaseMaterial, words: str
    ) -> Iterator[Suspect]:
        """Examines a gold of constants whose question names the current day."""
        passing = _dates_to_pass(case)
        if not passing:
            return
        first = passing[0]
        yield suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY,
            f"the question says '{words}', and the gold has constants of {case.gold.workbook.saved}"
            f", before the input's {address_in(case.input, first)}{and_more(len(passing))}",
            f"{counted(len(passing), 'date')} of the input lay ahead when the gold was saved and "
            "pass by; a right program then gives another answer",
            [evidence(EvidenceFile.INPUT, cell, found=case.input.value(cell)) for cell in passing],
        )

    def _case(self, material: TaskMaterial, case: CaseMaterial) -> Iterator[Suspect]:
        changing = case.changing
        if not changing:
            return
        now = case.recomputed
        moved = sorted(
            address
            for address in changing
            if address in now
            and address in case.answer
            and not agree(case.answer[address], now[address])
        )
        later = [] if moved else another_day(case)
        cells = moved or later or sorted(changing)
        first = cells[0]
        if moved:
            summary = (
                f"the gold's {address_in(case.gold, first)} is {shown(case.answer[first])}, and "
                f"{shown(now[first])} when it is computed today{and_more(len(moved))}"
            )
        else:
            summary = (
                f"the gold's {address_in(case.gold, first)} depends on "
                f"{_functions(case, first) or 'a function that changes by itself'}"
                f"{and_more(len(cells))}"
            )
        yield suspect(
            material,
            case.number,
            self,
            Certainty.SURE if moved else Certainty.LIKELY if later else Certainty.POSSIBLE,
            summary,
            f"{counted(len(cells), 'cell')} of the answer "
            + (
                "had this value on the day on which the gold was saved; a right program gives "
                "another one today"
                if moved
                else "will have another value on another day, and constants that were right are "
                "rejected then"
                if later
                else "may have another value on another day"
            ),
            gold_evidence(case, cells, expected=now),
        )


def _dates_to_pass(case: CaseMaterial) -> list[CellAddress]:
    """Finds the input's dates in the time after the gold was saved, if it states when that was."""
    saved = case.gold.workbook.saved
    if saved is None:
        return []
    last = saved + dt.timedelta(LATER_DAYS[-1])
    return [
        CellAddress(sheet, key)
        for sheet in case.input.sheet_names
        for key, value in sorted(case.input.values(sheet).items())
        if isinstance(value, dt.datetime) and saved < value.date() <= last
    ]


def _functions(case: CaseMaterial, address: CellAddress) -> str:
    formula = case.gold.formula(address)
    return ", ".join(sorted(traits(formula).volatile)) if formula else ""


def another_day(case: CaseMaterial) -> list[CellAddress]:
    """Finds cells of the answer whose value will differ tomorrow, in a few weeks or next year.

    Only the date is varied: cells that depend on chance alone are left out.
    """
    formulas = {
        CellRef(sheet, key >> COLUMN_BITS, key & COLUMN_MASK): text.removeprefix("=")
        for sheet in case.gold.sheet_names
        for key, text in case.gold.formulas(sheet).items()
        if DAY.search(text)
    }
    if not formulas or len(formulas) > MAX_REWRITTEN:
        return []
    now = case.recomputed
    for days in LATER_DAYS:
        moved = {ref: DAY.sub(rf"(\g<0>+{days})", text) for ref, text in formulas.items()}
        try:
            book = case.tools.edit(case.gold.workbook.data, {}, moved)
            then = case.tools.compute(book, case.ranges).values
        except JudgeError:
            return []
        differing = [
            address
            for address in sorted(case.changing)
            if address in now and address.ref in then and not agree(now[address], then[address.ref])
        ]
        if differing:
            return differing
    return []


VOLATILE = Volatile()


CURLY = re.compile("[\u201c\u201d\u201e\u201f]")
"""Quotation marks that are not allowed in formulas."""

_ERROR_TEXT = re.compile(r"#(?:REF!|NAME\?|NULL!|DIV/0!|VALUE!|NUM!|N/A)")
MAX_FOLLOWED = 500
"""The largest number of errors that are examined in an answer, or in a sheet."""


class ErrorValues:
    """Finds error values in a gold's answer that the input's data do not explain."""

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
    errors_by_sheet: dict[str, list[CellAddress]] = {}
    for address in itertools.islice(errors, MAX_FOLLOWED):
        formula = case.gold.formula(address)
        if formula is None:
            return False
        for reference in references(formula):
            sheet = reference.sheet or address.sheet
            if sheet not in errors_by_sheet:
                errors_by_sheet[sheet] = _errors_in(case, sheet)
            if any(
                reference.min_row <= area.row <= reference.max_row
                and reference.min_column <= area.column <= reference.max_column
                for area in errors_by_sheet[sheet]
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


ERROR_VALUES = ErrorValues()
