"""Which workbooks of a task's folder are the input and the gold of which case. Pure.

Published suites do not always keep their own naming: an input called
``2_591-29_input .xlsx``, a golden that carries another task's id, a pair called
``initial.xlsx`` and ``golden.xlsx``. Each such reading is recorded as a note.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_WORKBOOK = re.compile(r"\.xls[xm]$", re.IGNORECASE)
_NUMBERED = re.compile(
    r"^(?P<number>\d+)_(?P<id>.*)_(?P<role>input|initial|init|answer|golden|gold)\.xls[xm]$",
    re.IGNORECASE,
)
_BARE = re.compile(r"^(?P<role>input|initial|init|answer|golden|gold)\.xls[xm]$", re.IGNORECASE)
_NUMBER = re.compile(r"^(?P<number>\d+)_")
_NOT_A_SUITE_FILE = (".", "~$")


class Role(enum.Enum):
    """What a workbook is to its case."""

    INPUT = "input"
    GOLD = "gold"


_ROLES = {
    "input": Role.INPUT,
    "init": Role.INPUT,
    "initial": Role.INPUT,
    "answer": Role.GOLD,
    "golden": Role.GOLD,
    "gold": Role.GOLD,
}
_VERIFIED_WORDS = frozenset({"init", "initial", "golden", "gold"})


@dataclass(frozen=True, slots=True)
class CaseFiles:
    """The two workbooks of a case, by file name.

    Attributes:
        number: the case's number as its file names have it.
        input_name: file name of the input.
        gold_name: file name of the gold.
    """

    number: int
    input_name: str
    gold_name: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """How a folder's file names were read.

    Attributes:
        cases: the cases in the order of their numbers.
        faults: why there is no case where there should be one, without the folder.
        notes: irregular names that were understood, without the folder.
        verified_names: whether the files are named as in SpreadsheetBench Verified.
    """

    cases: tuple[CaseFiles, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    verified_names: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    name: str
    number: int
    task_id: str | None
    role: Role
    word: str


def pair_workbooks(names: Iterable[str], task_id: str) -> Pairing:
    """Pairs the workbooks of one task's folder.

    Args:
        names: file names in the folder; what is not a workbook (``prompt.txt``) is ignored.
        task_id: the task's id as text.
    """
    workbooks = sorted(
        name for name in names if _WORKBOOK.search(name) and not name.startswith(_NOT_A_SUITE_FILE)
    )
    candidates, strangers = _read_names(workbooks)
    verified = any(candidate.word in _VERIFIED_WORDS for candidate in candidates)
    by_place: dict[tuple[int, Role], list[_Candidate]] = {}
    for candidate in candidates:
        by_place.setdefault((candidate.number, candidate.role), []).append(candidate)
    numbers = sorted({number for number, _ in by_place} | set(strangers))
    faults: list[str] = []
    notes: list[str] = []
    cases: list[CaseFiles] = []
    for number in numbers:
        chosen: dict[Role, str] = {}
        for role in Role:
            name = _choose(by_place.get((number, role), []), number, task_id, faults, notes)
            if name is not None:
                chosen[role] = name
        case = _complete(number, chosen, strangers.get(number, []), notes)
        if case is None:
            faults.extend(_missing(number, task_id, chosen, by_place, verified=verified))
        else:
            cases.append(case)
    if not workbooks:
        faults.append("no test case: the folder holds no workbook")
    elif not cases and not faults:
        faults.append(f"no test case: no name fits {{n}}_{task_id}_input.xlsx")
    return Pairing(tuple(cases), tuple(faults), tuple(notes), verified)


def _read_names(workbooks: Iterable[str]) -> tuple[list[_Candidate], dict[int, list[str]]]:
    """Names that say their case and role, and those that say only their case."""
    candidates: list[_Candidate] = []
    strangers: dict[int, list[str]] = {}
    for name in workbooks:
        squeezed = re.sub(r"\s+", "", name)
        if match := _NUMBERED.match(squeezed):
            word = match["role"].lower()
            number = int(match["number"])
            candidates.append(_Candidate(name, number, match["id"], _ROLES[word], word))
        elif match := _BARE.match(squeezed):
            word = match["role"].lower()
            candidates.append(_Candidate(name, 1, None, _ROLES[word], word))
        elif match := _NUMBER.match(squeezed):
            strangers.setdefault(int(match["number"]), []).append(name)
    return candidates, strangers


def _choose(
    candidates: list[_Candidate], number: int, task_id: str, faults: list[str], notes: list[str]
) -> str | None:
    """The one candidate for a place; the task's own id takes precedence over a foreign one."""
    own = [found for found in candidates if found.task_id == task_id] or candidates
    if len(own) > 1:
        names = ", ".join(found.name for found in own)
        faults.append(f"case {number} has more than one {own[0].role.value}: {names}")
    if not own:
        return None
    chosen = own[0]
    if re.search(r"\s", chosen.name) and chosen.task_id == task_id:
        notes.append(f"{chosen.name}: there is a blank in the name")
    if chosen.task_id is not None and chosen.task_id != task_id:
        notes.append(f"{chosen.name}: taken as the {chosen.role.value}, though named for another")
    return chosen.name


def _complete(
    number: int, chosen: Mapping[Role, str], strangers: list[str], notes: list[str]
) -> CaseFiles | None:
    """Fills a single gap with the only other workbook of that number."""
    found = dict(chosen)
    if len(found) == 1 and len(strangers) == 1:
        (gap,) = (role for role in Role if role not in found)
        found[gap] = strangers[0]
        notes.append(f"{strangers[0]}: taken as the {gap.value} of case {number}, oddly named")
    if len(found) < len(Role):
        return None
    return CaseFiles(number, found[Role.INPUT], found[Role.GOLD])


def _missing(
    number: int,
    task_id: str,
    chosen: Mapping[Role, str],
    by_place: Mapping[tuple[int, Role], list[_Candidate]],
    *,
    verified: bool,
) -> Iterable[str]:
    words = {Role.INPUT: "init", Role.GOLD: "golden"}
    if not verified:
        words = {Role.INPUT: "input", Role.GOLD: "answer"}
    for role in Role:
        if role not in chosen and not by_place.get((number, role)):
            yield f"case {number} has no {role.value} ({number}_{task_id}_{words[role]}.xlsx)"
