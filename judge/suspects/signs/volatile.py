"""Finds answers that depend on the day on which the gold was saved."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator

from judge.console import counted
from judge.errors import JudgeError
from judge.formulas.traits import traits
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import (
    address_in,
    and_more,
    evidence,
    gold_evidence,
    shown,
    suspect,
)
from judge.suspects.material import MAX_REWRITTEN, CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK
from judge.workbook.cell import CellRef

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
    """See :mod:`judge.suspects.signs.volatile`."""

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


SIGN = Volatile()
