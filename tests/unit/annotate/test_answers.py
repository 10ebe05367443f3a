"""Golds whose formulas have no values are computed before anyone sees their answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pytest

from judge.annotate.answers import answer_of, moved_cells
from judge.annotate.casebook import CaseData
from judge.annotate.edit import Edited
from judge.annotate.gold import GoldMaker
from judge.annotate.hack import edits_between
from judge.annotate.rules import answers_apart, check_cases
from judge.annotate.validator import problem_of
from judge.recalc.contract import PLAIN, Dialect, EngineResult
from judge.recalc.policy import Recalculator
from judge.sandbox.scripted import ScriptedSandbox
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue
from judge.workbook.reader import Workbook, open_workbook
from tests.unit.annotate.books import table
from tests.unit.annotate.conftest import doubling_case
from tests.unit.annotate.test_gold import TASK, program, put, wrote


class DoublingEngine:
    """Computes ``=A2*2``, and nothing else."""

    name = "libreoffice"
    version = "1"

    def compute(
        self,
        workbook: bytes,
        ranges: Sequence[CellRange],
        *,
        timeout_s: float,
        dialect: Dialect = PLAIN,
    ) -> EngineResult:
        book = open_workbook(workbook)
        values: dict[CellRef, CellValue] = {}
        failed: dict[CellRef, str] = {}
        for area in ranges:
            for cell in book.formula_cells(area):
                ref = CellRef(area.sheet, cell.row, cell.column)
                match = re.fullmatch(r"=A(\d+)\*2", cell.formula or "")
                if match is None:
                    failed[ref] = "too hard"
                    continue
                row = int(match[1])
                held = book.cells(CellRange(area.sheet, row, 1, row, 1))[row, 1].value
                assert isinstance(held, int)
                values[ref] = 2 * held
        return EngineResult(values, failed, 0.0)

    def close(self) -> None:
        pass


def engines() -> Recalculator:
    return Recalculator([DoublingEngine()])


def uncomputed(*numbers: int) -> bytes:
    """Makes a gold as openpyxl writes it, with formulas but no values."""
    rows = [(each, f"=A{row}*2") for row, each in enumerate(numbers, start=2)]
    return table(("number", "double"), *rows)


def computed(*numbers: int) -> bytes:
    return doubling_case(*numbers)[1]


def formula_case(number: int, *numbers: int) -> CaseData:
    return CaseData(number, doubling_case(*numbers)[0], uncomputed(*numbers))


def test_formulas_without_values_are_no_blanks() -> None:
    answer = answer_of(TASK, open_workbook(uncomputed(1, 2, 3, 4)), engines())
    assert [answer.values[CellRef("Sheet", row, 2)] for row in range(2, 6)] == [2, 4, 6, 8]
    assert not answer.unknown


def test_what_moved_is_seen_in_formulas_without_values() -> None:
    recalculator = engines()
    for first in (uncomputed, computed):
        for second in (uncomputed, computed):
            assert moved_cells(TASK, first(1, 2, 3, 4), second(1, 2, 3, 4), recalculator) == ()
            (moved,) = moved_cells(TASK, first(1, 2, 3, 4), second(1, 9, 3, 4), recalculator)
            assert (moved.ref.row, moved.before, moved.after) == (3, 4, 18)


def test_an_answer_that_repeats_is_seen_in_formulas_without_values() -> None:
    recalculator = engines()
    for first in (uncomputed, computed):
        for second in (uncomputed, computed):
            old, same, new = (
                open_workbook(each)
                for each in (first(1, 2, 3, 4), second(1, 2, 3, 4), second(1, 9, 3, 4))
            )
            assert answers_apart(TASK, old, same, recalculator).equal
            assert answers_apart(TASK, old, new, recalculator).differing_cells == 1


def test_the_rules_see_an_answer_that_repeats() -> None:
    cases = [formula_case(1, 1, 2, 3, 4), formula_case(2, 1, 2, 3, 4)]
    cases.append(CaseData(3, cases[0].input, computed(1, 2, 3, 4)))
    found = check_cases(TASK, cases, recalculator=engines())
    assert [(each.case, each.rule) for each in found if each.rule == "answers-differ"] == [
        (2, "answers-differ"),
        (3, "answers-differ"),
        (3, "answers-differ"),
    ]
    moved = [formula_case(1, 1, 2, 3, 4), formula_case(2, 9, 2, 3, 4)]
    assert check_cases(TASK, moved, recalculator=engines()) == []


def test_what_nothing_can_compute_is_not_known_to_be_another_answer() -> None:
    hard = table(("number", "double"), (1, "=HARD(A2)"), (2, 4), (3, 6), (4, 8))
    assert moved_cells(TASK, hard, computed(1, 2, 3, 4), engines()) == ()
    first, second = open_workbook(hard), open_workbook(computed(1, 2, 3, 4))
    assert answers_apart(TASK, first, second, engines()).equal


def test_a_suggestion_that_repeats_a_case_is_refused() -> None:
    base, other = formula_case(1, 1, 2, 3, 4), formula_case(2, 1, 9, 3, 4)
    maker = GoldMaker(engines(), ScriptedSandbox([wrote(computed(1, 9, 3, 4))] * 2))
    proposal = maker.propose(TASK, base, [put(3, 1, 9)], references=[program("a"), program("b")])
    assert [each.ref.row for each in proposal.moved] == [3]
    problem = problem_of(TASK, base, proposal, [base, other], recalculator=engines())
    assert problem == "the answer is that of case 2"
    alone = problem_of(TASK, base, proposal, [base], recalculator=engines())
    assert alone == ""


def test_a_suggestion_whose_answer_stays_is_refused() -> None:
    base = formula_case(1, 1, 2, 3, 4)
    maker = GoldMaker(engines(), ScriptedSandbox([wrote(computed(1, 2, 3, 4))] * 2))
    proposal = maker.propose(TASK, base, [put(2, 3, "x")], references=[program("a"), program("b")])
    problem = problem_of(TASK, base, proposal, [base], recalculator=engines())
    assert problem == "no cell of the answer moves"


def test_each_sheet_is_read_once_however_many_cells_a_hack_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads: list[CellRange] = []
    read = Workbook.cells

    def counted(self: Workbook, area: CellRange) -> Mapping[tuple[int, int], Cell]:
        reads.append(area)
        return read(self, area)

    monkeypatch.setattr(Workbook, "cells", counted)
    base = CaseData(1, *doubling_case(1, 2, 3, 4))
    edits = edits_between(base.input, table(("number", "double"), *((n, n) for n in range(600))))
    assert len(edits) == 1200
    maker = GoldMaker(Recalculator([], mode="never"), None)
    maker.propose(TASK, base, edits, edited=Edited(base.input, ()))
    assert len(reads) < 20
