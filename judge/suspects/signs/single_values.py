"""Signs about single values: among totals, and in rows that are otherwise blank."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeGuard

from judge.console import counted
from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, evidence, gold_evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, EvidenceFile, Suspect
from judge.suspects.signs.formulas import rule_of_column
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, cell_key
from judge.workbook.cell import CellValue

MIN_ADDED = 3
"""A total is the sum of at least this many numbers above it, or to its left."""

SHARE = 0.75
"""Share of the numbers in a row or column that must be totals."""

MIN_TOTALS = 3
MAX_CELLS = 20_000
ROUNDING_ERROR = 1e-6  # relative, or absolute below 1


class OddTotal:
    """Finds cells among totals that are not totals.

    In a row of totals, each cell is the sum of the numbers above it; in a column of totals, of
    those to its left. A cell among them with another value was typed, or has a different formula.
    """

    name = "odd-total"
    title = "a cell of the answer is among totals, but is not a total"
    about = About.GOLD
    blind_spots = (
        "only sums of three or more numbers directly above, or to the left, are seen",
        "a price or a share among sums may be an average on purpose; it is only possible",
        "sums over other sheets, or with criteria, are not recognized as totals",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case in which a cell among totals is not a total."""
        for case in material.cases:
            odd = list(_odd(case))
            if odd:
                yield self._suspect(material, case, odd)

    def _suspect(self, material: TaskMaterial, case: CaseMaterial, odd: Sequence[_Odd]) -> Suspect:
        first = odd[0]
        certain = any(cell.line == "column" and cell.kind is None for cell in odd)
        return suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if certain else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, first.address)} is "
            f"{shown(case.answer.get(first.address))}"
            f"{f', the {first.kind} of its numbers' if first.kind else ''}; their sum is "
            f"{shown(first.total)}{and_more(len(odd))}",
            f"{counted(first.totals, 'other cell')} of the {first.line} hold such a sum",
            [
                evidence(
                    EvidenceFile.GOLD,
                    cell.address,
                    expected=cell.total,
                    found=case.answer.get(cell.address),
                    note=f"a total like the others of the {cell.line}",
                )
                for cell in odd
            ],
        )


class _Odd(NamedTuple):
    """A cell that is not a total.

    Attributes:
        address: the cell.
        total: the value that a total would have.
        kind: another statistic of the numbers that the cell equals, such as their average; None if
            it equals none.
        line: ``row`` or ``column``: the direction in which the other numbers are totals.
        totals: how many totals the line has.
    """

    address: CellAddress
    total: float
    kind: str | None
    line: str
    totals: int


def _odd(case: CaseMaterial) -> Iterator[_Odd]:
    """Finds numbers of the answer that are not sums, in rows and columns of sums."""
    if len(case.answer) > MAX_CELLS:
        return
    numbers: dict[str, dict[int, float]] = {
        sheet: {key: value for key, value in _values(case, sheet) if _is_number(value)}
        for sheet in {area.sheet for area in case.ranges}
    }
    for line in ("row", "column"):
        lines: dict[tuple[str, int], list[CellAddress]] = defaultdict(list)
        for address, value in case.answer.items():
            if _is_number(value):
                number = address.row if line == "row" else address.column
                lines[address.sheet, number].append(address)
        for (sheet, _), addresses in lines.items():
            yield from _odd_of(numbers[sheet], sorted(addresses), line)


def _values(case: CaseMaterial, sheet: str) -> Iterator[tuple[int, CellValue]]:
    """Returns the values of a sheet of the gold; in the answer, the values as they are compared."""
    yield from case.gold.values(sheet).items()
    for address, value in case.answer.items():
        if address.sheet == sheet:
            yield address.key, value


def _odd_of(
    numbers: Mapping[int, float], addresses: Sequence[CellAddress], line: str
) -> Iterator[_Odd]:
    """Finds numbers that are not sums, although most others in the row or column are."""
    added = {address: _before(numbers, address, line) for address in addresses}
    added = {address: run for address, run in added.items() if len(run) >= MIN_ADDED}
    # In a row of totals, all columns have the same number of numbers.
    length = max(map(len, added.values()), default=0)
    added = {address: run for address, run in added.items() if len(run) == length}
    totals = {
        address: numbers[address.key]
        for address, run in added.items()
        if _is_sum(numbers[address.key], run)
    }
    if len(set(totals.values())) < MIN_TOTALS or len(totals) < SHARE * len(added):
        return
    for address, run in added.items():
        if address not in totals and not _same(numbers[address.key], _sum(run)):
            kind = _kind(numbers[address.key], run)
            yield _Odd(address, _sum(run), kind, line, len(totals))


def _before(numbers: Mapping[int, float], address: CellAddress, line: str) -> list[float]:
    """Returns the unbroken run of numbers above a cell, or to its left."""
    run: list[float] = []
    row, column = address.row, address.column
    while True:
        row, column = (row - 1, column) if line == "row" else (row, column - 1)
        value = numbers.get(cell_key(row, column)) if row and column else None
        if value is None:
            return run
        run.append(value)


def _sum(run: Sequence[float]) -> float:
    total = math.fsum(run)
    return int(total) if total.is_integer() else total


def _is_sum(value: float, run: Sequence[float]) -> bool:
    """Returns whether a number is a sum, and not by chance: neither zero nor one of the terms."""
    return sum(map(bool, run)) > 1 and value != 0 and _same(value, _sum(run))


def _kind(value: float, run: Sequence[float]) -> str | None:
    """Returns which statistic of the numbers, other than their sum, a number equals; or None."""
    kinds = {
        "average": math.fsum(run) / len(run),
        "largest": max(run),
        "smallest": min(run),
        "count": len(run),
    }
    return next((kind for kind, given in kinds.items() if _same(value, given)), None)


def _is_number(value: CellValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _same(first: float, second: float) -> bool:
    return abs(first - second) <= ROUNDING_ERROR * max(1.0, abs(first), abs(second))


ODD_TOTAL = OddTotal()


MIN_ROWS = 5
"""How many rows a gold must fill for them to count as a table."""

SHARE_OF_ROWS = 0.75
"""Share of these rows in which a column must be filled to belong to the table."""

MAX_MISTAKEN_SHARE = 0.1
"""If a larger share of the rows is affected, this looks like a rule and not like a mistake."""


class LoneValue:
    """Finds values of an answer in rows that are otherwise blank.

    A gold that fills a column next to a table has one value for each row of the table. A value in
    an otherwise blank row, in or below the table, belongs to data that do not exist.
    """

    name = "lone-value"
    title = "the answer has a value in a row whose other cells are blank"
    about = About.GOLD
    blind_spots = (
        "the columns that most of the filled rows share are taken to be the table",
        "a string that no other row has is taken for a heading, and a sum for a total",
        "if every case has such values in the same rows, they may be part of the task",
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields one suspect for each case whose answer has values in otherwise blank rows."""
        lone_by_case = {case.number: list(_lone(case)) for case in material.cases}
        for case in material.cases:
            lone = lone_by_case[case.number]
            if not lone:
                continue
            others = [set(cells) for number, cells in lone_by_case.items() if number != case.number]
            everywhere = set.intersection(*others) if others else set()
            own = [cell for cell in lone if cell not in everywhere]
            yield self._suspect(material, case, own or lone, is_own=bool(own))

    def _suspect(
        self,
        material: TaskMaterial,
        case: CaseMaterial,
        lone: Sequence[CellAddress],
        *,
        is_own: bool,
    ) -> Suspect:
        first = lone[0]
        rows = {(address.sheet, address.row) for address in case.answer}
        few = len({(cell.sheet, cell.row) for cell in lone}) <= max(
            1, MAX_MISTAKEN_SHARE * len(rows)
        )
        return suspect(
            material,
            case.number,
            self,
            Certainty.LIKELY if is_own and few else Certainty.POSSIBLE,
            f"the gold's {address_in(case.gold, first)} is {shown(case.answer.get(first))}, and "
            f"the rest of row {first.row} is blank{and_more(len(lone))}",
            f"the answer's other {len(rows) - len(lone):,} rows are next to rows of a table",
            gold_evidence(case, lone, note="the rest of the row is blank"),
        )


def _lone(case: CaseMaterial) -> Iterator[CellAddress]:
    """Finds values of the answer in rows in which the table's other columns are blank."""
    for sheet in dict.fromkeys(area.sheet for area in case.ranges):
        rows: dict[int, set[int]] = defaultdict(set)
        for key in case.gold.values(sheet):
            rows[key >> COLUMN_BITS].add(key & COLUMN_MASK)
        columns: dict[int, list[CellAddress]] = defaultdict(list)
        for address in sorted(case.answer):
            if address.sheet == sheet and _is_written(case, address):
                columns[address.column].append(address)
        for column, written in columns.items():
            yield from _lone_of(case, column, written, rows)


def _lone_of(
    case: CaseMaterial,
    column: int,
    written: Sequence[CellAddress],
    rows: Mapping[int, set[int]],
) -> Iterator[CellAddress]:
    """Finds values, among those that the gold wrote in one column, in otherwise blank rows."""
    if len(written) < MIN_ROWS:
        return
    counts = Counter(other for address in written for other in rows[address.row] - {column})
    table = {other for other, count in counts.items() if count >= SHARE_OF_ROWS * len(written)}
    if not table:
        return
    lone = [address for address in written if not rows[address.row] & table]
    usual = [address for address in written if rows[address.row] & table]
    formulas = {
        address: text for address in written if (text := case.gold.formula(address)) is not None
    }
    rule = rule_of_column(formulas)
    for address in lone:
        if address in formulas:
            if rule is not None and address in rule.cells:
                yield address
        elif any(agree(case.answer[address], case.answer[other]) for other in usual):
            yield address


def _is_written(case: CaseMaterial, address: CellAddress) -> bool:
    """Returns whether the gold changed a cell of the answer."""
    return not (
        agree(case.answer[address], case.input.value(address))
        and case.gold.formula(address) == case.input.formula(address)
    )


LONE_VALUE = LoneValue()
