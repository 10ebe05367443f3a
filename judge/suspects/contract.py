"""The contract of a sign, the registry of all signs, and what signs share when they report."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from judge.compare.cells.render import value_to_json
from judge.errors import UsageError
from judge.suspects.books import Book, CellAddress
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.cell import CellValue


class Sign(Protocol):
    """Something about the files of a task that makes a gold suspect.

    A sign is one module with one object, and one line in :mod:`judge.suspects.contract`.
    """

    @property
    def name(self) -> str:
        """The name by which suspects refer to it."""
        ...

    @property
    def title(self) -> str:
        """The sign in one line."""
        ...

    @property
    def about(self) -> About:
        """Which list its suspects are on."""
        ...

    @property
    def blind_spots(self) -> tuple[str, ...]:
        """Things that it cannot see, and that mislead it, one line each."""
        ...

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """The suspects among the golds of a task; at most one for each case, and one for the task.

        Raises:
            JudgeError: a workbook cannot be read, or a value cannot be computed; the other signs
                are searched all the same.
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
    """Evidence in one cell."""
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
) -> list[Evidence]:
    """Evidence in cells of the gold's answer: the value, and the formula if there is one.

    Args:
        case: the case.
        cells: the cells.
        expected: what some of them should hold.
    """
    return [
        evidence(
            EvidenceFile.GOLD,
            address,
            expected=expected.get(address),
            found=case.answer.get(address),
            note=case.gold.formula(address) or "",
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
    """A suspect of a sign."""
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


MAX_SHOWN_LENGTH = 40


def shown(value: CellValue) -> str:
    """A value in one line of a message: strings in quotes, a blank cell as ``blank``."""
    if value is None:
        return "blank"
    as_json = value_to_json(value)
    if isinstance(as_json, dict):
        return str(as_json.get("error", as_json))
    text = str(as_json)
    cut = text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}…"
    return f"'{cut}'" if isinstance(value, str) else cut


def address_in(book: Book, address: CellAddress) -> str:
    """The address of a cell for a message, with its sheet if the workbook has several."""
    return address.name if len(book.sheet_names) == 1 else f"'{address.sheet}'!{address.name}"


def counted(number: int, noun: str) -> str:
    """``1 cell``, ``3 cells``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def and_more(number: int) -> str:
    """How many others there are than the one that was named; empty if none."""
    return f" (and {number - 1:,} more)" if number > 1 else ""


_HOMES = (
    "judge.suspects.signs.contradicted_input",
    "judge.suspects.signs.blank_constant",
    "judge.suspects.signs.frozen_input",
    "judge.suspects.signs.broken_column",
    "judge.suspects.signs.error_values",
    "judge.suspects.signs.stale",
    "judge.suspects.signs.volatile",
    "judge.suspects.signs.changed_rule",
    "judge.suspects.signs.says_nothing",
    "judge.suspects.signs.odd_formula",
    "judge.suspects.signs.odd_total",
    "judge.suspects.signs.lone_value",
    "judge.suspects.signs.ranges",
    "judge.suspects.signs.contradicted_example",
    "judge.suspects.signs.wording",
    "judge.suspects.signs.unnamed_label",
    "judge.suspects.signs.blank_as_zero",
    "judge.suspects.signs.leftover",
    "judge.suspects.signs.outvoted",
    "judge.suspects.signs.items",
    "judge.suspects.signs.gold_refused",
    "judge.suspects.signs.same_question",
    "judge.suspects.signs.mixed_verdicts",
    "judge.suspects.signs.failed_task",
    "judge.suspects.signs.beyond_position",
)
"""The modules whose ``SIGN`` each sign of this package is."""

_REGISTERED: dict[str, Sign] = {}


def register(sign: Sign) -> None:
    """Adds a sign that lives elsewhere; once is enough.

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
    """Every sign."""
    return (*_own(), *_REGISTERED.values())


@functools.cache
def _own() -> tuple[Sign, ...]:
    return tuple(importlib.import_module(home).SIGN for home in _HOMES)
