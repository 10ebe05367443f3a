from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from judge.annotate.annotator import Annotator
from judge.annotate.casebook import CaseData
from judge.annotate.edits import Formula, InsertRows, SetCell
from judge.annotate.gold import FORMULAS, GoldMaker
from judge.compare.cells.options import range_spec
from judge.core.submission import Submission
from judge.core.task import Task, TestCase
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import OutputStatus, RunResult, RunStatus
from judge.sandbox.scripted import ScriptedSandbox
from judge.suites.spreadsheetbench import InstructionType
from judge.workbook.cell import CellRef, CellValue
from tests.unit.annotate.books import formulas, table, values
from tests.unit.annotate.conftest import doubling_case

TASK = Task(
    id="7",
    instruction="Put twice the number of column A into column B.",
    kind=InstructionType.CELL_LEVEL.value,
    checker=range_spec("B2:B5"),
    cases=(TestCase.of_workbooks(1, Path("1_7_input.xlsx"), Path("1_7_answer.xlsx")),),
)
BASE = CaseData(1, *doubling_case(1, 2, 3, 4))


def put(row: int, column: int, value: CellValue | Formula) -> SetCell:
    return SetCell(CellRef("Sheet", row, column), value)


def program(name: str) -> Submission:
    return Submission("7", f"name = {name!r}", "/in.xlsx", "/out.xlsx", label=name)


def wrote(data: bytes) -> RunResult:
    return RunResult(RunStatus.OK, OutputStatus.COLLECTED, exit_code=0, output=data)


CRASHED = RunResult(
    RunStatus.EXITED, OutputStatus.MISSING, exit_code=1, stderr=b"Traceback (most recent call "
    b"last)\nKeyError: 'x'\n"
)  # fmt: skip


def maker(results: Sequence[RunResult] = ()) -> GoldMaker:
    return GoldMaker(Recalculator([], mode="never"), ScriptedSandbox(list(results)))


def test_two_references_that_agree_make_the_gold() -> None:
    right = doubling_case(1, 50, 3, 4)[1]
    proposal = maker([wrote(right), wrote(right)]).propose(
        TASK, BASE, [put(3, 1, 50)], references=[program("a"), program("b")]
    )
    assert proposal.gold is not None
    assert values(proposal.input) == {**values(BASE.input), (3, 1): 50}
    assert values(proposal.gold) == {**values(BASE.gold), (3, 1): 50, (3, 2): 100}
    assert proposal.agreeing == ("a", "b")
    assert [(each.ref.row, each.before, each.after) for each in proposal.moved] == [(3, 4, 100)]


def test_a_disagreement_is_reported_cell_by_cell() -> None:
    wrong = doubling_case(1, 50, 3, 4)[1]
    other = table(("number", "double"), (1, 2), (50, 99), (3, 6), (4, 8))
    proposal = maker([wrote(wrong), wrote(other)]).propose(
        TASK, BASE, [put(3, 1, 50)], references=[program("a"), program("b")]
    )
    (dissenter,) = proposal.disagreeing
    assert dissenter.name == "b"
    differences = dissenter.comparison["differences"]
    assert isinstance(differences, list)
    (difference,) = differences
    assert (difference["cell"], difference["expected"], difference["actual"]) == ("B3", 100, 99)


def test_if_a_reference_fails_the_next_one_gives_the_answer() -> None:
    right = doubling_case(1, 50, 3, 4)[1]
    proposal = maker([CRASHED, wrote(right)]).propose(
        TASK, BASE, [put(3, 1, 50)], references=[program("a"), program("b")]
    )
    assert proposal.agreeing == ("b",)
    assert "KeyError" in next(each for each in proposal.sources if each.name == "a").problem


def test_without_a_source_there_is_no_gold_but_by_hand() -> None:
    proposal = maker().propose(TASK, BASE, [put(3, 1, 50)])
    assert proposal.gold is None
    assert "answer without a formula" in proposal.sources[0].problem
    proposal = maker().propose(TASK, BASE, [put(3, 1, 50)], answers=[put(3, 2, 100)])
    assert proposal.gold is not None
    assert values(proposal.gold)[3, 2] == 100


def test_formulas_say_nothing_of_rows_that_they_do_not_reach() -> None:
    rows = [(1, "=A2*2"), (2, "=A3*2")]
    base = CaseData(1, table(("n", "d"), (1,), (2,)), table(("n", "d"), *rows))
    source = maker().propose(TASK, base, [put(9, 1, 50)]).sources[0]
    assert source.name == FORMULAS
    assert "reaches 'Sheet'!A9" in source.problem


def test_cells_of_the_answer_that_the_gold_has_otherwise_are_left() -> None:
    proposal = maker([wrote(doubling_case(1, 2, 3, 4)[1])]).propose(
        TASK, BASE, [put(2, 2, "old answer")], references=[program("a")]
    )
    assert proposal.gold is not None
    assert values(proposal.input)[2, 2] == "old answer"
    assert values(proposal.gold)[2, 2] == 2
    assert "differ in the gold" in proposal.notes[0]


def test_a_look_is_taken_over_with_the_whole_output() -> None:
    task = replace(TASK, checker=TASK.checker.with_options({"style": ["fill"]}))
    output = doubling_case(1, 50, 3, 4)[1]
    proposal = maker([wrote(output)]).propose(
        task, BASE, [put(3, 1, 50)], references=[program("a")]
    )
    assert proposal.gold == output


def test_rows_and_formulas_reach_the_gold_as_well() -> None:
    proposal = maker([wrote(doubling_case(1, 2, 3, 4)[1])]).propose(
        TASK, BASE, [InsertRows("Sheet", 9), put(12, 1, Formula("A2"))], references=[program("a")]
    )
    assert proposal.gold is not None
    assert formulas(proposal.gold) == formulas(proposal.input) == {(12, 1): "=A2"}


def test_a_preview_is_saved_as_it_was_seen(suite: Path) -> None:
    right = doubling_case(1, 50, 3, 4)[1]
    sandbox = ScriptedSandbox([wrote(right), wrote(right)])
    with Annotator(suite, sandbox=sandbox, recalculator=Recalculator([], mode="never")) as desk:
        draft = desk.book.extend(desk.book.begin("7", "ann"), [put(3, 1, 50)])
        preview = desk.preview(draft, [program("a"), program("b")])
        assert (preview.problem, preview.doubts, preview.findings) == ("", (), ())
        saved = desk.save(draft, preview)
        assert saved.record["changed"] == ["'Sheet'!A3"]
        assert saved.record["moved"] == [{"cell": "'Sheet'!B3", "before": 4, "after": 100}]
        assert saved.record["gold_by"] == ["a", "b"]
        assert desk.check("7") == []


def test_one_source_alone_is_doubted(suite: Path) -> None:
    sandbox = ScriptedSandbox([wrote(doubling_case(1, 50, 3, 4)[1]), CRASHED])
    with Annotator(suite, sandbox=sandbox, recalculator=Recalculator([], mode="never")) as desk:
        draft = desk.book.extend(desk.book.begin("7", "ann"), [put(3, 1, 50)])
        doubts = desk.preview(draft, [program("a"), program("b")]).doubts
    assert "only 1 independent source" in doubts[0]
    assert "KeyError" in doubts[1]


@pytest.mark.bubblewrap
@pytest.mark.slow
def test_formulas_of_the_gold_follow_the_input() -> None:
    rows = [(1, "=A2*2"), (2, "=A3*2"), (3, "=B3+1"), (4, "=SUM(B2:B4)")]
    base = CaseData(1, table(("n", "d"), (1,), (2,), (3,), (4,)), table(("n", "d"), *rows))
    with Annotator.engines("bubblewrap") as (sandbox, recalculator):
        proposal = GoldMaker(recalculator, sandbox).propose(TASK, base, [put(3, 1, 50)])
    assert proposal.gold is not None
    found = values(proposal.gold)
    assert [found[row, 2] for row in (2, 3, 4, 5)] == [2, 100, 101, 203]
    assert formulas(proposal.gold) == formulas(base.gold)
    assert proposal.agreeing == (FORMULAS,)
