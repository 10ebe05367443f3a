"""Finds values of an answer in rows that are otherwise blank.

A gold that fills a column next to a table has one value for each row of the table. A value in an
otherwise blank row, in or below the table, belongs to data that do not exist.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from judge.suspects.books import CellAddress, agree
from judge.suspects.contract import address_in, and_more, gold_evidence, shown, suspect
from judge.suspects.material import CaseMaterial, TaskMaterial
from judge.suspects.model import About, Certainty, Suspect
from judge.suspects.signs.odd_formula import rule_of_column
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK

MIN_ROWS = 5
"""How many rows a gold must fill for them to count as a table."""

SHARE = 0.75
"""Share of these rows in which a column must be filled to belong to the table."""

FEW = 0.1
"""If a larger share of the rows is affected, it looks like a rule and not like a slip."""


class LoneValue:
    """See :mod:`judge.suspects.signs.lone_value`."""

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
        few = len({(cell.sheet, cell.row) for cell in lone}) <= max(1, FEW * len(rows))
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
    """Finds the lone values among those that the gold wrote in one column."""
    if len(written) < MIN_ROWS:
        return
    held = Counter(other for address in written for other in rows[address.row] - {column})
    table = {other for other, count in held.items() if count >= SHARE * len(written)}
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


SIGN = LoneValue()
