"""The contract of a sign, the registry of all signs, and helpers for what signs report."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Protocol

from judge.compare.cells.render import value_to_json
from judge.errors import UsageError
from judge.suspects.books import Book, CellAddress
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.cell import CellValue


class Sign(Protocol):
    """A property of a task's files that makes a gold or a case suspect.

    A sign is one object, in a module of ``judge/suspects/signs/``, and one row of :data:`SIGNS`.
    """

    @property
    def name(self) -> str:
        """The name by which suspects refer to the sign."""
        ...

    @property
    def title(self) -> str:
        """A description of the sign in one line."""
        ...

    @property
    def about(self) -> About:
        """The list to which its suspects belong."""
        ...

    @property
    def blind_spots(self) -> tuple[str, ...]:
        """Faults that the sign cannot see, and cases that mislead it, one line each."""
        ...

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields the suspects of a task: at most one for each case, and one for the whole task.

        Raises:
            JudgeError: a workbook cannot be read, or a value cannot be computed; this does not
                affect the other signs.
        """
        ...


def evidence(
    file: EvidenceFile,
    address: CellAddress,
    *,
    expected: CellValue = None,
    found: CellValue = None,
    note: str = "",
    case: int | None = None,
) -> Evidence:
    """Makes the evidence about one cell."""
    return Evidence(
        file=file,
        sheet=address.sheet,
        cell=address.name,
        expected=value_to_json(expected),
        found=value_to_json(found),
        note=note,
        case=case,
    )


def gold_evidence(
    case: CaseMaterial,
    cells: Iterable[CellAddress],
    *,
    expected: Mapping[CellAddress, CellValue] = MappingProxyType({}),
    note: str = "",
) -> list[Evidence]:
    """Makes the evidence about cells of the gold's answer: their values, and any formulas.

    Args:
        case: the case.
        cells: the cells.
        expected: the values that some of them should have.
        note: a note on every cell, in place of its formula.
    """
    return [
        evidence(
            EvidenceFile.GOLD,
            address,
            expected=expected.get(address),
            found=case.answer.get(address),
            note=note or case.gold.formula(address) or "",
        )
        for address in cells
    ]


def suspect(
    material: TaskMaterial,
    case: int | None,
    sign: Sign,
    certainty: Certainty,
    summary: str,
    why: str,
    evidence_items: Sequence[Evidence],
) -> Suspect:
    """Makes a suspect of a sign."""
    return Suspect(
        task=material.task.id,
        case=case,
        sign=sign.name,
        certainty=certainty,
        summary=summary,
        why=why,
        evidence=tuple(evidence_items),
        evidence_count=len(evidence_items),
        about=sign.about,
    )


MAX_SHOWN_CHARS = 40


def shown(value: CellValue) -> str:
    """Formats a value for a one-line message: strings in quotes, a blank cell as ``blank``."""
    if value is None:
        return "blank"
    as_json = value_to_json(value)
    if isinstance(as_json, dict):
        return str(as_json.get("error", as_json))
    text = str(as_json)
    cut = text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"
    return f"'{cut}'" if isinstance(value, str) else cut


def address_in(book: Book, address: CellAddress) -> str:
    """Formats the address of a cell for a message, with its sheet if the workbook has several."""
    return address.name if len(book.sheet_names) == 1 else f"'{address.sheet}'!{address.name}"


def and_more(number: int) -> str:
    """Writes how many others there are besides the named one; empty if there are none."""
    return f" (and {number - 1:,} more)" if number > 1 else ""


SIGNS = (
    "judge.suspects.signs.contradicted_input:CONTRADICTED_INPUT",
    "judge.suspects.signs.contradicted_input:BLANK_CONSTANT",
    "judge.suspects.signs.contradicted_input:FROZEN_INPUT",
    "judge.suspects.signs.formulas:BROKEN_COLUMN",
    "judge.suspects.signs.stored_values:ERROR_VALUES",
    "judge.suspects.signs.stored_values:STALE",
    "judge.suspects.signs.stored_values:VOLATILE",
    "judge.suspects.signs.cases:CHANGED_RULE",
    "judge.suspects.signs.cases:UNINFORMATIVE_CASE",
    "judge.suspects.signs.formulas:ODD_FORMULA",
    "judge.suspects.signs.single_values:ODD_TOTAL",
    "judge.suspects.signs.single_values:LONE_VALUE",
    "judge.suspects.signs.formulas:RANGES",
    "judge.suspects.signs.contradicted_example:CONTRADICTED_EXAMPLE",
    "judge.suspects.signs.questions:STATED_RESULT",
    "judge.suspects.signs.questions:WORDING",
    "judge.suspects.signs.questions:UNNAMED_LABEL",
    "judge.suspects.signs.blanks:BLANK_AS_ZERO",
    "judge.suspects.signs.blanks:FILLED_BLANK",
    "judge.suspects.signs.leftover:LEFTOVER",
    "judge.suspects.signs.swapped_gold:SWAPPED_GOLD",
    "judge.suspects.signs.questions:OMITTED_ROW",
    "judge.suspects.signs.copied_rows:COPIED_ROWS",
    "judge.suspects.signs.verdicts:OUTVOTED",
    "judge.suspects.signs.refusals:ITEMS",
    "judge.suspects.signs.refusals:GOLD_REFUSED",
    "judge.suspects.signs.refusals:SAME_QUESTION",
    "judge.suspects.signs.verdicts:MIXED_VERDICTS",
    "judge.suspects.signs.verdicts:FAILED_TASK",
    "judge.suspects.signs.beyond_position:BEYOND_POSITION",
)
"""The locations of the signs of this package: ``module:object``."""

_REGISTERED: dict[str, Sign] = {}


def register(sign: Sign) -> None:
    """Registers a sign that is defined elsewhere; registering it twice is harmless.

    Raises:
        UsageError: another sign has that name.
    """
    by_name = {all_sign.name: all_sign for all_sign in all_signs()}
    if by_name.get(sign.name, sign) is not sign:
        raise UsageError(f"a sign {sign.name!r} already exists")
    if sign.name not in by_name:
        _REGISTERED[sign.name] = sign


def unregister(name: str) -> None:
    """Removes a sign that was registered."""
    _REGISTERED.pop(name, None)


def all_signs() -> tuple[Sign, ...]:
    """Returns every registered sign."""
    return (*_own(), *_REGISTERED.values())


@functools.cache
def _own() -> tuple[Sign, ...]:
    return tuple(resolve_name(sign) for sign in SIGNS)
