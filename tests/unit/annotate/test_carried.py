from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import pytest

from judge.annotate.carried import RELATIONS, carried_ideas
from judge.annotate.carried_keys import Material
from judge.annotate.casebook import CaseData
from judge.annotate.edit import apply_edits
from judge.annotate.edits import MergeCells, SetCell
from judge.annotate.gold import CARRIED, FORMULAS, GoldMaker, GoldSource, Proposal, with_answer
from judge.annotate.gold_sources import Side
from judge.annotate.idea import REPEATS_KEYS, Idea, Values
from judge.annotate.mutants import NAMES
from judge.annotate.strength import Trial
from judge.annotate.suggest import Progress, Suggestion, suggest
from judge.annotate.worth import (
    CONTRADICTS,
    DOUBTFUL,
    SAME_EFFECT,
    by_likelihood,
    doubt_of,
    doubt_of_formulas,
    likelihood,
    ranked,
    worth,
)
from judge.core.records.cases import DifferenceRecord
from judge.core.task import CheckerSpec
from judge.core.verdict import Verdict
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import RunRequest, RunResult
from judge.sandbox.scripted import ScriptedSandbox
from judge.workbook.address import Window
from judge.workbook.cell import CellRange, CellRef, CellValue
from judge.workbook.reader import open_workbook
from tests.unit.annotate.books import table, values
from tests.unit.annotate.test_gold import TASK, program, wrote
from tests.unit.annotate.test_relations import subject
from tests.unit.suspects.small import TODAY, SmallEngine

ROWS = (
    ("who", "count", "amount"),
    ("Anna", None, 10),
    ("Bob", None, 20),
    ("Anna", None, 30),
    ("Carl", None, 5),
    ("Bob", None, 7),
    ("Dora", None, 8),
)
ANSWER = CellRange("Sheet", 2, 2, 7, 2)


def material(
    rows: tuple[tuple[object, ...], ...] = ROWS,
    answer: CellRange = ANSWER,
    held: Values | None = None,
    question: str = "",
) -> Material:
    book = open_workbook(table(*rows))
    return Material(subject(table(*rows), answer), book, book, question, held or {})


def ideas(name: str, of: Material) -> list[Idea]:
    return list(RELATIONS[name](of, random.Random("7")))


def contents(idea: Idea) -> dict[tuple[int, int], object]:
    return {
        (edit.ref.row, edit.ref.column): edit.content
        for edit in idea.edits
        if isinstance(edit, SetCell)
    }


def ref(row: int, column: int = 2) -> CellRef:
    return CellRef("Sheet", row, column)


def carry(idea: Idea, answer: dict[CellRef, CellValue]) -> Values:
    assert idea.carried is not None
    return idea.carried.answer(answer)


def test_a_key_is_renamed_in_the_input_and_in_the_answer() -> None:
    first, *_ = ideas("renamed-key", material())
    assert contents(first) == {(2, 1): "Annan", (4, 1): "Annan"}
    assert carry(first, {ref(2): "Anna: 2", ref(3): "Annabel", ref(4): 3}) == {
        ref(2): "Annan: 2",
        ref(3): "Annabel",
        ref(4): 3,
    }


@pytest.mark.parametrize("question", ["count 'Anna' and bob", "Anna, Bob"])
def test_a_key_that_the_question_names_keeps_its_name(question: str) -> None:
    assert ideas("renamed-key", material(question=question)) == []


def test_a_key_of_which_the_answer_holds_a_piece_keeps_its_name() -> None:
    held = {ref(2): "Ann", ref(3): "Bo b"}
    renamed = {
        next(iter(contents(idea).values())) for idea in ideas("renamed-key", material(held=held))
    }
    assert renamed == {"Bobn"}


def test_a_key_that_is_put_together_from_others_keeps_its_name() -> None:
    rows = (("k", "n"), ("Mon - Ann", 1), ("Mon - Ann", 2), ("Ann", 3), ("Bo", 4), ("Bo", 5))
    titles = [idea.title for idea in ideas("renamed-key", material(rows))]
    assert len(titles) == 2
    assert all(title.startswith(("'Ann' is called", "'Bo' is called")) for title in titles)


def test_another_key_begins_and_ends_with_a_key() -> None:
    titles = [idea.title for idea in ideas("key-within-key", material())]
    assert any("'Annan' everywhere, which begins with 'Anna'" in title for title in titles)
    assert any("'Joanna' everywhere, which ends with 'Anna'" in title for title in titles)


def test_sorted_keys_are_not_renamed_out_of_their_order() -> None:
    held = {ref(2): "Anna", ref(3): "Bob", ref(4): "Carl"}
    assert ideas("key-within-key", material(held=held)) == []


def test_codes_get_another_prefix() -> None:
    rows = (("code", "n"), ("ca-1004", 1), ("ca-1005", 2), ("ca-1006", 3))
    (idea,) = ideas("other-prefix", material(rows))
    assert contents(idea)[2, 1] == "db-1004"
    assert carry(idea, {ref(2): "ca-1006!"}) == {ref(2): "db-1006!"}
    assert ideas("other-prefix", material(rows, question="codes such as ca-1")) == []


def test_keys_become_text_on_both_sides() -> None:
    rows = (("id", "n", None, "id"), (101, 1, None, 103), (102, 2, None, 101), (103, 3, None, 101))
    of = material(rows, CellRange("Sheet", 2, 5, 4, 5))
    (idea,) = ideas("keys-as-text", of)
    assert contents(idea) == {
        **{(row, 1): str(99 + row) for row in range(2, 5)},
        (2, 4): "103",
        (3, 4): "101",
        (4, 4): "101",
    }
    holding = material(rows, CellRange("Sheet", 2, 5, 4, 5), {ref(2, 5): 101})
    assert ideas("keys-as-text", holding) == []


def test_a_remark_is_next_to_the_table() -> None:
    (idea,) = ideas("remark-column", material())
    assert contents(idea)[1, 4] == "Remarks"
    assert set(contents(idea).values()) == {"Remarks", "checked"}
    assert not ideas("remark-column", material(answer=CellRange("Sheet", 2, 4, 7, 4)))


def test_swapped_records_keep_their_answers() -> None:
    (idea,) = ideas("swapped-records", material())
    assert contents(idea)[2, 1] == "Dora"
    assert contents(idea)[7, 3] == 10
    assert carry(idea, {ref(2): 1, ref(3): 2, ref(7): 9}) == {ref(7): 1, ref(3): 2, ref(2): 9}
    (elsewhere,) = ideas("swapped-records", material(answer=CellRange("Sheet", 2, 6, 2, 6)))
    assert carry(elsewhere, {ref(2, 6): 1}) == {ref(2, 6): 1}


def test_a_record_is_repeated_where_the_answer_has_room() -> None:
    assert ideas("repeated-record", material()) == []
    (idea,) = ideas("repeated-record", material(answer=CellRange("Sheet", 2, 2, 9, 2)))
    assert contents(idea) == {(8, 1): "Dora", (8, 3): 8}
    assert carry(idea, {ref(7): 4, ref(6): 2}) == {ref(7): 4, ref(6): 2, ref(8): 4}


def test_amounts_are_split_and_add_up() -> None:
    (idea,) = ideas("split-record", material(answer=CellRange("Sheet", 2, 6, 2, 6)))
    after = values(apply_edits(table(*ROWS), idea.edits).data)
    assert sum(after[row, 3] for row in range(2, 9)) == 80  # type: ignore[misc]
    assert sorted(str(after[row, 1]) for row in range(2, 9)) != sorted(
        str(row[0]) for row in ROWS[1:]
    )
    assert ideas("split-record", material()) == []  # the answer runs along the rows


def test_amounts_in_another_unit_are_for_questions_without_limits() -> None:
    same, scaled = ideas("other-unit", material())
    assert contents(same)[2, 3] == 12.5
    assert carry(same, {ref(2): 8}) == {ref(2): 8}
    assert carry(scaled, {ref(2): 8, ref(3): "x"}) == {ref(2): 10, ref(3): "x"}
    assert ideas("other-unit", material(question="round to two places")) == []


def test_all_relations_are_reproducible_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = list(carried_ideas(material(), "7"))
    again = list(carried_ideas(material(), "7"))
    assert [idea.title for idea in everything] == [idea.title for idea in again]
    assert {idea.mutator for idea in everything} <= RELATIONS.keys()
    monkeypatch.setattr("judge.annotate.carried.MAX_CHANGED", 1)
    assert all(len(idea.edits) <= 1 for idea in carried_ideas(material(), "7"))


def test_a_gold_gets_other_values_in_its_answer_alone() -> None:
    gold = table(("a", "b", "c"), (1, "=A2", 3), (4, 5, 6))
    data = with_answer(TASK, gold, {ref(2): 9})
    after = values(data)
    assert (after[2, 2], after.get((3, 2)), after[2, 3], after[3, 1]) == (9, None, 3, 4)


# -- programs that contradict themselves ----------------------------------------------------------

INPUT = table(("who", "count"), *((name, None) for name in ("Anna", "Bob", "Anna", "Carl")))


def counting(key: Callable[[str, str], bool]) -> Callable[[RunRequest], RunResult]:
    """A program that writes next to each name how often the workbook contains it."""

    def step(request: RunRequest) -> RunResult:
        (data,) = request.files.values()
        return wrote(answered([str(values(data).get((row, 1))) for row in range(2, 6)], key))

    return step


def answered(names: list[str], key: Callable[[str, str], bool]) -> bytes:
    counts = [sum(key(name, other) for other in names) for name in names]
    return table(("who", "count"), *zip(names, counts, strict=True))


def equal(name: str, other: str) -> bool:
    return name == other


def within(name: str, other: str) -> bool:
    return name in other


def judged(key: Callable[[str, str], bool], **options: object) -> list[Suggestion]:
    base = CaseData(1, INPUT, answered(["Anna", "Bob", "Anna", "Carl"], equal))
    maker = GoldMaker(Recalculator([], mode="never"), ScriptedSandbox([counting(key)] * 200))
    return list(
        suggest(TASK, base, maker, victims={"mine": program("a")}, **options)  # type: ignore[arg-type]
    )


def test_a_program_that_contradicts_itself_is_shown_with_both_answers() -> None:
    shown = [each for each in judged(within, only=["key-within-key"]) if each.number]
    assert shown
    for each in shown:
        assert each.state == "contested"
        assert "does not make it 'Anna'" in each.contested
        assert each.proposal is not None
        assert each.proposal.agreeing == (CARRIED,)
        differences = each.kills[0].comparison["differences"]
        assert [(d["expected"], d["actual"]) for d in differences] == [(2, 3), (2, 3)]


def test_a_program_that_keeps_all_relations_is_not_shown() -> None:
    assert [each for each in judged(equal, only=list(RELATIONS)) if each.number] == []


def test_what_holds_nowhere_for_a_program_says_nothing_about_it() -> None:
    def above(name: str, other: str) -> bool:
        """A program that counts by a rule that depends on the position of every row."""
        return name < other

    assert [each for each in judged(above, only=["swapped-records"]) if each.number] == []


LEDGER = (("Anna", 1), ("Bob", 2), ("Carl", 3), ("Dora", 4), ("Bob", 5), ("Anna", 9))


def ledger(answer: object) -> bytes:
    """Amounts by name, and next to them a name with its amount."""
    head, (first, *others) = ("who", "amount", None, "whose", "answer"), LEDGER
    return table(head, (*first, None, "Anna", answer), *others)


def smallest(request: RunRequest) -> RunResult:
    """A program that takes the smallest amount of the name, wherever its rows are."""
    (data,) = request.files.values()
    cells = values(data)
    amounts = [
        amount
        for row in range(2, 8)
        if cells.get((row, 1)) == cells.get((2, 4)) and isinstance(amount := cells[row, 2], int)
    ]
    return wrote(with_answer(AMOUNT, data, {ref(2, 5): min(amounts, default=None)}))


AMOUNT = dataclasses.replace(TASK, checker=CheckerSpec(options={"answer_position": "E2"}))


def test_formulas_that_alone_depend_on_the_order_are_doubtful() -> None:
    base = CaseData(1, ledger(None), ledger("=VLOOKUP(D2,A2:B7,2,0)"))
    maker = GoldMaker(Recalculator([SmallEngine(TODAY)]), ScriptedSandbox([smallest] * 200))
    heard: list[Progress] = []
    shown = [
        found
        for found in suggest(
            AMOUNT,
            base,
            maker,
            victims={"mine": program("a")},
            only=["swapped-records"],
            on_progress=heard.append,
        )
        if found.number
    ]
    contradictions = heard[-1].contradictions
    assert [found.idea.mutator for found in shown] == ["swapped-records"]
    assert contradictions == (shown[0].idea.title,)
    assert doubt_of(shown[0], contradictions)


def test_formulas_that_take_one_of_several_rows_with_a_key_are_doubtful() -> None:
    proposal = Proposal(b"", b"", (GoldSource(FORMULAS, data=b"", agrees=True),))
    for disputed, is_doubtful in ((REPEATS_KEYS, True), ("right solutions may differ", False)):
        idea = Idea("duplicate-keys", "a key twice", (), disputed=disputed)
        assert bool(doubt_of(Suggestion(1, idea, proposal, ""))) is is_doubtful


def test_after_the_time_limit_the_others_are_left_out_under_the_same_numbers() -> None:
    everything = judged(within)
    shown = {each.number: each.idea.title for each in everything if each.number}
    heard: list[Progress] = []
    cut = judged(within, is_over=lambda: len(heard) > 3, on_progress=heard.append)
    assert len(cut) == len(everything)
    assert {each.state for each in cut[-3:]} == {"left out"}
    for each in cut:
        assert not each.number or shown[each.number] == each.idea.title
    assert heard[-1].ideas == len(everything)
    assert heard[-1].examined < len(everything)


# -- what is worth a look -------------------------------------------------------------------------


def suggestion(mutator: str, number: int, **more: object) -> Suggestion:
    return Suggestion(number, Idea(mutator, mutator, ()), None, "", **more)  # type: ignore[arg-type]


def test_likely_inputs_come_first_and_groups_share_their_reason() -> None:
    rare, likely = suggestion("merged-cells", 1), suggestion("renamed-key", 2, contested="x")
    other = suggestion("key-within-key", 3, contested="x")
    groups = ranked([rare, other, likely])
    reason, first = groups[0]
    assert (reason, [each.number for each in first]) == (CONTRADICTS, [2, 3])
    assert [idea.mutator for idea in by_likelihood([rare.idea, likely.idea])] == [
        "renamed-key",
        "merged-cells",
    ]


def test_a_doubtful_formula_puts_a_suggestion_back_and_says_why() -> None:
    plain = suggestion("blank-read", 1, contested="x")
    doubtful = suggestion("blank-read", 2, contested="x", doubtful="zero")
    assert worth(doubtful) < worth(plain)
    assert doubt_of(doubtful) == "zero"
    assert doubt_of(plain, ["renamed"]) == ""  # its answer does not follow from a formula alone


def test_doubtful_suggestions_come_last_whatever_they_change() -> None:
    doubtful = suggestion("renamed-key", 1, contested="x", doubtful="zero")
    rare = suggestion("merged-cells", 2, contested="x")
    likely = suggestion("renamed-key", 3, contested="x")
    groups = [
        (name, [each.number for each in members])
        for name, members in ranked([doubtful, rare, likely])
    ]
    assert groups[0] == (CONTRADICTS, [3])
    assert groups[-1] == (DOUBTFUL, [1])


def test_another_input_with_the_same_effect_comes_after_all_that_are_sound() -> None:
    proposal = Proposal(b"", b"", (GoldSource(FORMULAS, data=b"", agrees=True),))

    def failing(number: int, mutator: str, row: int, actual: object) -> Suggestion:
        difference: DifferenceRecord = {
            "kind": "value",
            "sheet": "Sheet",
            "cell": f"B{row}",
            "expected": 4,
            "actual": actual,
            "expected_formula": f"=IF(A{row}>1,4,0)",
        }
        trial = Trial("mine", Verdict.WA, "", {"differences": [difference]})
        idea = Idea(mutator, mutator, ())
        return Suggestion(number, idea, proposal, "", "one source", (), (trial,))

    groups = ranked(
        [
            failing(1, "merged-cells", 3, 5),
            failing(2, "renamed-key", 4, 6),
            failing(3, "merged-cells", 5, "text"),
        ]
    )
    assert [(name, [each.number for each in members]) for name, members in groups] == [
        (CONTRADICTS, [2]),
        (groups[1][0], [3]),
        (SAME_EFFECT, [1]),
    ]


@pytest.mark.parametrize(
    ("cell", "actual", "is_doubtful"),
    [
        ("B3", None, True),
        ("B3", "", True),
        ("B3", 0, False),
        ("B3", {"error": "#N/A"}, False),
        ("B4", None, False),
    ],
)
def test_a_row_that_the_program_leaves_blank_because_its_key_is_blank(
    cell: str, actual: object, is_doubtful: bool
) -> None:
    emptied = Idea("blank-columns", "a blank", (SetCell(CellRef("Sheet", 3, 1), None),))
    merged = Idea("merged-cells", "one cell", (MergeCells("Sheet", Window(2, 1, 3, 1)),))
    difference: DifferenceRecord = {
        "kind": "missing",
        "sheet": "Sheet",
        "cell": cell,
        "expected": 4,
        "actual": actual,
    }
    trial = Trial("mine", Verdict.WA, "", {"differences": [difference]})
    proposal = Proposal(
        b"", b"", (GoldSource(FORMULAS, data=b"", agrees=True),), sides=(Side((FORMULAS,), 1),)
    )
    for idea in (emptied, merged):
        assert bool(doubt_of_formulas(idea, proposal, [trial])) is is_doubtful


def test_every_mutator_has_a_likelihood() -> None:
    assert {name for name in NAMES if likelihood(name) == 1.0} <= {
        *("constant-to-formula", "key-as-text", "numbers-as-text", "text-as-numbers"),
        *("spaces", "nbsp", "case", "unicode", "key-with-blank"),
    }


def test_a_key_that_the_question_names_is_still_not_a_longer_one() -> None:
    named = material(question="how many rows has Anna?")
    assert any("ends with 'Anna'" in idea.title for idea in ideas("key-within-key", named))
    containing = material(question="how many rows contain Anna?")
    assert not any("'Anna'" in idea.relation for idea in ideas("key-within-key", containing))
