"""Sources that repeat each other count as one derivation, and the vote is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judge.annotate.annotator import Annotator, with_unique_names
from judge.annotate.casebook import CaseData
from judge.annotate.edits import Formula, InsertRows
from judge.annotate.gold import FORMULAS, SAME_VALUES, GoldMaker
from judge.annotate.gold_sources import (
    FORMULA_DERIVATION,
    derivation_of_formulas,
    derivation_of_program,
    skeleton,
)
from judge.errors import UsageError
from judge.recalc.policy import Recalculator
from judge.recalc.rewrite import with_values
from judge.sandbox.scripted import ScriptedSandbox, Step
from judge.workbook.cell import CellRef
from tests.unit.annotate.books import formulas, table, values
from tests.unit.annotate.conftest import doubling_case
from tests.unit.annotate.test_answers import computed, engines, formula_case
from tests.unit.annotate.test_gold import BASE, TASK, program, put, wrote


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("=VLOOKUP(A2,Data!$A$1:$B$6,2,FALSE)", "=vlookup($A2, Data!A:B, 2, 0)", True),
        ("=_xlfn.XLOOKUP(A2,B:B,C:C)", "=XLOOKUP(A9,B1:B9,C1:C9)", True),
        ('=IF(A2="a b",1,2)', '=IF(B7="a b",1,2)', True),
        ('=IF(A2="a b",1,2)', '=IF(A2="ab",1,2)', False),
        ("=SUM(A1:A9)", "=AVERAGE(A1:A9)", False),
        ("=A1<5", "=A1<=5", False),
        ("='Sheet 1'!A1*2", "=B4*2", True),
    ],
)
def test_what_a_formula_does(first: str, second: str, same: bool) -> None:
    assert (skeleton(first) == skeleton(second)) is same


def test_who_has_which_voice() -> None:
    gold = frozenset({skeleton("=A2*2")})
    assert derivation_of_formulas(frozenset(), gold) == ""
    assert derivation_of_formulas(gold, gold) == FORMULA_DERIVATION
    assert derivation_of_formulas(frozenset({"#+#"}), gold) not in {"", FORMULA_DERIVATION}
    first, second = program("a"), program("b")
    assert derivation_of_program(first) != derivation_of_program(second)
    commented = replace(first, code=f"# a comment\n{first.code}  # another\n")
    assert derivation_of_program(first) == derivation_of_program(commented)
    assert derivation_of_program(replace(first, code="no python")) == "program no python"


def propose(*steps: Step, names: str = "ab", **options: object) -> object:
    maker = GoldMaker(engines(), ScriptedSandbox(list(steps)))
    references = [program(name) for name in names]
    base = formula_case(1, 1, 2, 3, 4)
    return maker.propose(TASK, base, [put(3, 1, 9)], references=references, **options)  # type: ignore[arg-type]


def test_a_reference_that_writes_the_gold_s_formula_is_not_a_second_source() -> None:
    repeats = wrote(formula_case(1, 1, 9, 3, 4).gold)
    found = propose(repeats, names="a")
    assert found.agreeing == (FORMULAS, "a")  # type: ignore[attr-defined]
    assert found.independent == 1  # type: ignore[attr-defined]
    found = propose(wrote(computed(1, 9, 3, 4)), names="a")
    assert found.independent == 2  # type: ignore[attr-defined]


def test_two_references_outvote_the_gold_s_formulas() -> None:
    other = table(("number", "double"), (1, 2), (9, 99), (3, 6), (4, 8))
    found = propose(wrote(other), wrote(other))
    assert found.vote == f"2 (a, b) against 1 ({FORMULAS})"  # type: ignore[attr-defined]
    assert found.is_open  # type: ignore[attr-defined]
    assert values(found.gold)[3, 2] == 99  # type: ignore[attr-defined]
    decided = propose(wrote(other), wrote(other), decide=FORMULAS)
    assert not decided.is_open  # type: ignore[attr-defined]
    assert values(decided.gold)[3, 2] == 18  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="no source 'c' gives an answer"):
        propose(wrote(other), wrote(other), decide="c")


def test_the_outvoted_side_is_never_saved_by_force(suite: Path) -> None:
    right, other = doubling_case(1, 50, 3, 4)[1], table(("n", "d"), (1, 2), (50, 99), (3, 6))
    sandbox = ScriptedSandbox([wrote(other), wrote(right)] * 3)
    with Annotator(suite, sandbox=sandbox, recalculator=Recalculator([], mode="never")) as desk:
        draft = desk.book.extend(desk.book.begin("7", "ann"), [put(3, 1, 50)])
        references = [program("a"), program("b")]
        preview = desk.preview(draft, references)
        assert "1 (a) against 1 (b)" in preview.problem
        assert "--decide" in preview.problem
        with pytest.raises(UsageError, match="the sources disagree"):
            desk.save(draft, preview)
        decided = desk.preview(draft, references, decide="b")
        assert (decided.problem, decided.doubts) == ("", ())
        saved = desk.save(draft, decided)
    assert saved.record["decided"] == "b"
    assert values(saved.gold_path.read_bytes())[3, 2] == 100


def test_the_case_s_own_gold_is_a_source_where_no_value_changes() -> None:
    maker = GoldMaker(Recalculator([], mode="never"), None)
    found = maker.propose(TASK, BASE, [put(3, 1, Formula("1+1"))], same_values=True)
    assert found.agreeing == (SAME_VALUES,)
    assert found.gold is not None
    assert values(found.gold)[3, 2] == 4


def test_an_inserted_row_gets_the_formula_of_its_neighbours() -> None:
    base = formula_case(1, 1, 2, 3, 4)
    maker = GoldMaker(engines(), None)
    found = maker.propose(TASK, base, [InsertRows("Sheet", 5), put(5, 1, 7)])
    assert found.gold is not None
    assert formulas(found.gold) == {(row, 2): f"=A{row}*2" for row in range(2, 7)}


def test_references_with_the_same_name_are_distinguished_by_path() -> None:
    names = ["x/one/right.py", "x/two/right.py", "y/other.py"]
    found = [program(Path(each).name) for each in names]
    renamed = with_unique_names(found, [Path(each) for each in names])
    assert [each.label for each in renamed] == ["one/right.py", "two/right.py", "other.py"]


def test_formulas_that_do_not_give_the_gold_s_own_values_are_not_trusted() -> None:
    base = formula_case(1, 1, 2, 3, 4)
    maker = GoldMaker(engines(), None)
    kept = CellRef("Sheet", 2, 2)
    untrue = CaseData(1, base.input, with_values(base.gold, {kept: 7}, date_1904=False))
    found = maker.propose(TASK, untrue, [put(3, 1, 9)])
    assert found.gold is None
    assert found.sources[0].problem == (
        "the engines do not compute the gold's own value of 'Sheet'!B2"
    )
    same = CaseData(1, base.input, with_values(base.gold, {kept: 2}, date_1904=False))
    assert maker.propose(TASK, same, [put(3, 1, 9)]).agreeing == (FORMULAS,)
