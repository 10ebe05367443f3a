"""Checks the cases of a task against the rules of the annotation manual, also as part of an audit.

Source: SpreadsheetBench, annotation manual of test case generation and data formatting manual.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from judge.annotate.answers import GoldAnswer, answer_of, changed_cells
from judge.annotate.casebook import CaseData
from judge.annotate.edit import set_cells
from judge.annotate.edits import Formula, SetCell, address
from judge.compare.cells.answer_range import Plan, check, prepare, wanted_conditions
from judge.compare.cells.comparison import Comparison
from judge.compare.cells.options import position_of
from judge.compare.cells.sides import RangeSide, Side
from judge.compare.cells.value import comparator
from judge.compare.profiles import get_profile
from judge.core.submission import Origin
from judge.core.task import Task
from judge.errors import PositionError, WorkbookError
from judge.recalc.computing import answer_conditions
from judge.recalc.policy import Recalculator
from judge.suspects.contract import suspect
from judge.suspects.material import TaskMaterial
from judge.suspects.model import About, Certainty, Evidence, EvidenceFile, Suspect
from judge.workbook.address import (
    COLUMN_BITS,
    COLUMN_MASK,
    cell_name,
    column_letters,
)
from judge.workbook.cell import CellRange, CellRef, CellValue, ComputedValues
from judge.workbook.reader import Workbook, open_workbook

RULES: Mapping[str, str] = {
    "readable": "both workbooks can be read, and the answer position fits them",
    "first-change": "the first changed case has another answer in at least one cell",
    "second-change": "the second changed case has another answer in at least three cells, or in "
    "all if the answer has fewer",
    "answers-differ": "no two cases have the same answer",
    "sheets": "the sheets have the same names in the same order",
    "structure": "the headings are where they were",
    "recorded": "the changed cells are recorded, with their sheets",
    "leftover": "the input does not hold the answer, beyond a few examples",
    "near-a1": "the data is not far from A1",
}
"""Rule -> what it requires."""

MIN_SECOND = 3
"""How many cells of the answer the second changed case must change."""

EXAMPLES = 5
"""How many answers, as examples, a column of the input may already contain."""

FAR_ROWS = FAR_COLUMNS = 10
"""Data that begins below this row or right of this column is far from A1."""

_WARNINGS = frozenset({"structure", "leftover", "near-a1"})
_COLOURS = ("fill", "font_color")


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that a case breaks.

    Attributes:
        task_id: the task.
        case: number of the case.
        rule: which rule of :data:`RULES`.
        message: what is wrong, with the cells.
    """

    task_id: str
    case: int
    rule: str
    message: str

    @property
    def is_error(self) -> bool:
        """Whether the manual forbids the case; otherwise a person has to review it."""
        return self.rule not in _WARNINGS


@dataclass(frozen=True, slots=True)
class _OpenCase:
    number: int
    input: Workbook
    gold: Workbook
    plan: Plan


def check_cases(
    task: Task,
    cases: Sequence[CaseData],
    *,
    recalculator: Recalculator,
    records: Sequence[Mapping[str, Any]] = (),
    killing: Collection[int] = (),
) -> list[BrokenRule]:
    """Checks the cases of a task against the rules of the manual.

    A case that makes an accepted program fail is useful whatever its answer is, so the rules that
    require different answers do not apply to it.

    Args:
        task: the task.
        cases: its cases in the order of their numbers, the original first.
        recalculator: computes formulas of golds that have no value.
        records: the casebook's records of the task.
        killing: numbers of cases that make an accepted program fail, in addition to those in the
            records.

    Returns:
        The broken rules, in the order of the cases; empty if none is broken.
    """
    broken: list[BrokenRule] = []
    opened: list[_OpenCase] = []
    for case in cases:
        try:
            opened.append(_open(task, case))
        except (WorkbookError, PositionError) as error:
            broken.append(BrokenRule(task.id, case.number, "readable", error.message))
    kills = {record["case"] for record in records if record.get("kills")} | set(killing)
    for index, case_opened in enumerate(opened):
        try:
            if index:
                if case_opened.number not in kills:
                    broken += _against_others(task, opened, index, recalculator)
                broken += _structure(task, opened[0], case_opened)
            broken += _formatting(task, case_opened, recalculator)
        except (WorkbookError, PositionError) as error:
            broken.append(BrokenRule(task.id, case_opened.number, "readable", error.message))
    broken += _recorded(task, cases, records)
    return sorted(broken, key=lambda rule: rule.case)


def _open(task: Task, case: CaseData) -> _OpenCase:
    gold, before = open_workbook(case.gold), open_workbook(case.input)
    plan = prepare(
        task.checker,
        gold=gold,
        output=before,
    )
    return _OpenCase(case.number, before, gold, plan)


# -- answers --------------------------------------------------------------------------------------


def _against_others(
    task: Task, opened: Sequence[_OpenCase], index: int, recalculator: Recalculator
) -> Iterator[BrokenRule]:
    this = opened[index]
    first = answers_apart(task, opened[0].gold, this.gold, recalculator)
    changed = first.differing_cells
    if changed == 0:
        rule = "second-change" if index == 2 else "first-change"
        yield BrokenRule(
            task.id,
            this.number,
            rule,
            f"no cell of the answer {position_of(task.checker)[0]} differs from case "
            f"{opened[0].number}",
        )
    elif index == 2 and changed < min(MIN_SECOND, _answers(opened[0], this)):
        yield BrokenRule(
            task.id,
            this.number,
            "second-change",
            f"only {changed} cells of the answer differ from case {opened[0].number}; "
            f"{MIN_SECOND} are required",
        )
    for other in opened[:index]:
        if other is opened[0]:
            same = not changed
        else:
            same = answers_apart(task, other.gold, this.gold, recalculator).equal
        if same:
            yield BrokenRule(
                task.id, this.number, "answers-differ", f"the answer is that of case {other.number}"
            )


def answers_apart(
    task: Task, first: Workbook, second: Workbook, recalculator: Recalculator
) -> Comparison:
    """Compares the answers of two golds by value and, if all values are equal, by colour.

    Formulas without a value are computed first. A cell that cannot be computed does not count as a
    difference.

    Raises:
        WorkbookError, PositionError: the answer of one cannot be read.
        EngineUnavailableError: an engine cannot be started.
    """
    plan = prepare(
        task.checker,
        gold=first,
        output=second,
    )
    ranges = [output_range for output_range in plan.output_ranges if output_range is not None]
    first_computed = recalculator.fill(first, plan.gold_ranges, origin=Origin.GOLD)
    second_computed = recalculator.fill(second, ranges, origin=Origin.GOLD)
    first_known, second_known = _alike_where_unknown(
        plan, (first, first_computed), (second, second_computed)
    )
    sides = Side(first, first_known), Side(second, second_known)
    rules: dict[str, Any] = {"profile": get_profile("standard")}
    compared = check(plan, *sides, ask_official=False, **rules)
    if not compared.equal:
        return compared
    rules["style"] = _COLOURS
    questions = wanted_conditions(plan, *sides, **rules)
    if not questions.is_empty:
        rules["conditions"] = answer_conditions(
            recalculator, questions, first, second, origin=Origin.GOLD
        )
    return check(plan, *sides, ask_official=False, **rules)


def _alike_where_unknown(
    plan: Plan,
    first: tuple[Workbook, ComputedValues],
    second: tuple[Workbook, ComputedValues],
) -> tuple[ComputedValues, ComputedValues]:
    """Computed values; a cell that is unknown on one side gets the value of the other side."""
    values = [dict(computed.values) for _, computed in (first, second)]
    for areas in zip(plan.gold_ranges, plan.output_ranges, strict=True):
        if areas[1] is None:
            continue
        sides = [
            RangeSide(workbook, area, computed)
            for (workbook, computed), area in zip((first, second), areas, strict=True)
            if area is not None
        ]
        stored = [side.values() for side in sides]
        unknown = [side.uncomputed().keys() for side in sides]
        for key in unknown[0] | unknown[1]:
            value = None if key in unknown[0] & unknown[1] else stored[key in unknown[0]].get(key)
            for index, side in enumerate(sides):
                ref = CellRef(side.cell_range.sheet, key >> COLUMN_BITS, key & COLUMN_MASK)
                values[index][ref] = value
    return (
        replace(first[1], values=values[0], not_calculated={}),
        replace(second[1], values=values[1], not_calculated={}),
    )


def _answers(*cases: _OpenCase) -> int:
    """The largest number of filled answer cells in any of the cases."""
    return max(
        sum(
            1
            for area in case.plan.gold_ranges
            for cell in case.gold.cells(area).values()
            if cell.value not in {None, ""} or cell.formula is not None
        )
        for case in cases
    )


# -- structure ------------------------------------------------------------------------------------


def _structure(task: Task, first: _OpenCase, this: _OpenCase) -> Iterator[BrokenRule]:
    for role, before, after in (
        ("input", first.input, this.input),
        ("gold", first.gold, this.gold),
    ):
        if before.sheet_names != after.sheet_names:
            yield BrokenRule(
                task.id,
                this.number,
                "sheets",
                f"the {role} has the sheets {', '.join(after.sheet_names)}, case {first.number} "
                f"has {', '.join(before.sheet_names)}",
            )
    for sheet in first.input.sheet_names:
        if sheet not in this.input.sheet_names:
            continue
        used = first.input.used_range(sheet)
        if used is None:
            continue
        head = CellRange(sheet, used.min_row, 1, used.min_row, used.max_column)
        old, new = first.input.cells(head), this.input.cells(head)
        texts = [
            position
            for position, cell in old.items()
            if isinstance(cell.value, str) and cell.formula is None
        ]
        changed = [
            position
            for position in texts
            if position not in new or new[position].value != old[position].value
        ]
        # A single string may be data; several strings next to each other are headings.
        if len(texts) > 1 and changed:
            where = ", ".join(address(CellRef(sheet, *position)) for position in changed[:3])
            yield BrokenRule(
                task.id, this.number, "structure", f"headings of the first case changed: {where}"
            )


# -- data formatting ------------------------------------------------------------------------------


def _formatting(task: Task, case: _OpenCase, recalculator: Recalculator) -> Iterator[BrokenRule]:
    for sheet in case.input.sheet_names:
        used = case.input.used_range(sheet)
        if used and (used.min_row > FAR_ROWS or used.min_column > FAR_COLUMNS):
            where = cell_name(used.min_row, used.min_column)
            yield BrokenRule(
                task.id, case.number, "near-a1", f"the data of {sheet!r} begins at {where}"
            )
    answer = answer_of(task, case.gold, recalculator)
    for gold_range, input_range in zip(case.plan.gold_ranges, case.plan.output_ranges, strict=True):
        if input_range is not None:
            yield from _leftovers(task, case, gold_range, input_range, answer)


def _leftovers(
    task: Task,
    case: _OpenCase,
    gold_range: CellRange,
    input_range: CellRange,
    answer: GoldAnswer,
) -> Iterator[BrokenRule]:
    """Yields columns that the task fills, but that the input already fills in many rows.

    If the gold fills no blank cell of a column, the column is edited in place, and its values are
    not leftovers.
    """
    agree = comparator(get_profile("standard"))
    gold, before = case.gold.cells(gold_range), case.input.cells(input_range)
    columns: dict[int, tuple[list[int], int]] = {}
    for row, column in gold:
        expected = answer.values.get(CellRef(gold_range.sheet, row, column))
        if expected in {None, ""}:
            continue
        stored = before.get((row, column))
        value: CellValue = stored.value if stored is not None else None
        same, blank = columns.get(column, ([], 0))
        if value in {None, ""} and (stored is None or stored.formula is None):
            blank += 1
        elif agree(expected, value) and row > gold_range.min_row:
            same = [*same, row]
        columns[column] = (same, blank)
    for column, (rows, blank) in columns.items():
        if blank and len(rows) > EXAMPLES:
            yield BrokenRule(
                task.id,
                case.number,
                "leftover",
                f"{len(rows)} answers are in column {column_letters(column)} of the input "
                f"{gold_range.sheet!r} (rows {rows[0]} to {rows[-1]}), {blank} are left to fill in",
            )


# -- records --------------------------------------------------------------------------------------


def _recorded(
    task: Task, cases: Sequence[CaseData], records: Sequence[Mapping[str, Any]]
) -> Iterator[BrokenRule]:
    """Checks that the record of a saved case names all cells that differ from the base case."""
    by_number = {case.number: case for case in cases}
    last = {record["case"]: record for record in records if record.get("task") == task.id}
    for number, record in last.items():
        case, base = by_number.get(number), by_number.get(int(record.get("base", 0)))
        if case is None:
            continue
        digests = case.revision.split("-")
        if digests != [record["input"], record["gold"]]:
            yield BrokenRule(
                task.id, number, "recorded", "the workbooks are not those of its last record"
            )
        if base is None or base is case or record.get("structural"):
            continue
        named = set(record.get("changed", ()))
        unnamed = sorted(set(map(address, changed_cells(base.input, case.input))) - named)
        if unnamed and not record.get("replaces"):
            yield BrokenRule(
                task.id,
                number,
                "recorded",
                f"{len(unnamed)} changed cells of the input are not in its record, the first is "
                f"{unnamed[0]}",
            )


RULES_OF_OTHER_SIGNS = frozenset(
    {"readable", "first-change", "answers-differ", "near-a1", "recorded"}
)
"""Rules that another sign covers, or that are not about golds."""


def edited(
    data: bytes, constants: Mapping[CellRef, CellValue], formulas: Mapping[CellRef, str]
) -> bytes:
    """A copy of a workbook with new constants and formulas in some cells.

    See :class:`judge.suspects.material.EditCells`.

    Raises:
        WorkbookError: a cell cannot be set.
    """
    return set_cells(
        data,
        [
            *(SetCell(ref, value) for ref, value in constants.items()),
            *(SetCell(ref, Formula(text)) for ref, text in formulas.items()),
        ],
    )


class ManualRules:
    """Suspects from the rules of the manual (:mod:`judge.annotate.rules`)."""

    name = "manual-rule"
    title = "the case breaks a rule of the annotation manual"
    about = About.CASE
    blind_spots = (
        (
            "the rules are about how cases are made; a case that keeps to them all can have a "
            "wrong gold, and most that break one do not"
        ),
    )

    def examine(self, material: TaskMaterial) -> Iterable[Suspect]:
        """Yields a suspect for each case that breaks rules which no other sign covers."""
        violations = check_cases(
            material.task,
            [
                CaseData(case.number, case.input.workbook.data, case.gold.workbook.data)
                for case in material.cases
            ],
            recalculator=material.tools.recalculator,
        )
        by_case: dict[int, list[BrokenRule]] = {}
        for rule in violations:
            covered = rule.rule in RULES_OF_OTHER_SIGNS or (
                rule.rule == "second-change" and rule.message.startswith("no cell")
            )
            if not covered:
                by_case.setdefault(rule.case, []).append(rule)
        for case, broken in by_case.items():
            first = broken[0]
            yield suspect(
                material,
                case,
                self,
                Certainty.POSSIBLE,
                first.message,
                f"the manual requires that {RULES[first.rule]}",
                [
                    Evidence(EvidenceFile.GOLD, note=f"{rule.rule}: {rule.message}")
                    for rule in broken
                ],
            )


SIGN = ManualRules()
