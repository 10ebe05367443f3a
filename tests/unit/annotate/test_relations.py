from __future__ import annotations

from judge.annotate.casebook import CaseData
from judge.annotate.edits import SetCell
from judge.annotate.gold import GoldMaker
from judge.annotate.idea import Idea, Subject, Values
from judge.annotate.relations import DistinctColumn, distinct_column, relation_ideas
from judge.annotate.suggest import Suggestion, suggest
from judge.annotate.support import Support, find_groups
from judge.annotate.tables import find_tables
from judge.core.submission import Submission
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import RunRequest, RunResult
from judge.sandbox.scripted import ScriptedSandbox
from judge.workbook.cell import CellRange, CellRef
from judge.workbook.reader import open_workbook
from tests.unit.annotate.books import table, values
from tests.unit.annotate.test_gold import TASK, program, wrote

WORDS = ("Anna", "Bob", "Anna", "Anna")
LIST = CellRange("Sheet", 2, 1, 5, 2)


def subject(book: bytes, answer: CellRange) -> Subject:
    workbook = open_workbook(book)
    tables = find_tables(workbook, [answer])
    return Subject(
        tables=tuple(tables),
        sheets=workbook.sheet_names,
        date_1904=False,
        has_dates=False,
        answer=(answer,),
        named=frozenset(),
        groups=tuple(find_groups(workbook, [answer], Support(), tables)),
    )


def column(*held: object, number: int = 1) -> Values:
    return {CellRef("Sheet", row, number): each for row, each in enumerate(held, 2)}  # type: ignore[misc]


def found(
    rows: tuple[tuple[object, ...], ...], gold: Values, question: str = "", name: str = ""
) -> list[Idea]:
    ideas = relation_ideas(subject(table(*rows), LIST), question, [gold], "7")
    return [each for each in ideas if not name or each.mutator == name]


def test_rows_are_put_into_another_order_where_the_gold_is_sorted() -> None:
    rows = (("n", "t"), (3, "c"), (1, "a"), (2, "b"), (2, "d"))
    (idea,) = found(rows, column(1, 2, 2, 3))
    after = {
        (each.ref.row, each.ref.column): each.content
        for each in idea.edits
        if isinstance(each, SetCell)
    }
    before = {(row, place): rows[row - 1][place - 1] for row in range(2, 6) for place in (1, 2)}
    assert [(before | after)[row, 1] for row in range(2, 6)] == [3, 2, 2, 1]
    assert [(before | after)[row, 2] for row in range(2, 6)] == ["c", "b", "d", "a"]


def test_an_order_that_nobody_asked_for_says_nothing() -> None:
    rows = (("n", "t"), (1, "c"), (2, "a"), (3, "b"), (4, "d"))
    assert found(rows, column(1, 2, 3, 4)) == []  # it was sorted before
    assert found(rows, column(1, 3, 2, 4)) == []
    assert found(rows, column(1, 2, 9)) == []


def test_a_word_of_a_macro_is_another_word_in_the_other_case() -> None:
    rows = (("who", "n"), ("STATIONERY", 1), ("FOOD", 2), ("TOYS", 3), ("FOOD", 4))
    macro = 'Sub x() If Cells(i, "A").Value = "STATIONERY" Then End Sub'
    (idea,) = found(rows, column(), macro, "word-of-the-macro")
    assert (idea.word, idea.plain) == ("Stationery", "STATIONERY")
    folding = macro.replace("Sub x()", "Option Compare Text Sub x()")
    assert found(rows, column(), folding, "word-of-the-macro") == []
    assert found(rows, column(), "delete 'STATIONERY'", "word-of-the-macro") == []


def test_what_golds_hold_once_may_not_be_repeated() -> None:
    golds = [{**column("camera", "film"), **column("x", "y", number=2)}]
    inputs = [[("camera", "film", "camera"), ("x", "y", "y")]]
    headings = {("Sheet", 1): "brand", ("Sheet", 2): "batch"}
    once = distinct_column(golds, inputs, headings, "a single entry for each brand")
    assert once == DistinctColumn("Sheet", 1)
    assert once.broken_by(column("camera", "Camera", "film")) == "camera"
    assert once.broken_by(column("camera", "film", "lens")) == ""
    assert distinct_column(golds, inputs, headings, "one for each brand and batch") is None
    assert distinct_column(golds, inputs, headings, "one for each") is None
    assert (
        distinct_column(golds, [[("camera", "film"), ("x", "y")]], headings, "each brand") is None
    )
    twice = [column("camera", "camera")]
    assert distinct_column(twice, [[("camera", "camera")]], headings, "each brand") is None


# -- programs compared with themselves ------------------------------------------------------------


def counting(key: object) -> object:
    """A program that writes next to each word how often the workbook contains it."""

    def step(request: RunRequest) -> RunResult:
        (data,) = request.files.values()
        words = [values(data).get((row, 1)) for row in range(2, 6)]
        return wrote(answered([str(each) for each in words], key))

    return step


def answered(words: list[str], key: object) -> bytes:
    counts = [sum(key(each) == key(word) for each in words) for word in words]  # type: ignore[operator]
    return table(("who", "count"), *zip(words, counts, strict=True))


def lost(word: str) -> str:
    """Words in lower case are not names, nor are words that look like them."""
    return word if word.istitle() else ""


def judged(key: object) -> list[Suggestion]:
    base = CaseData(
        1,
        table(("who", "count"), *((each, None) for each in WORDS)),
        answered(list(WORDS), str),
    )
    maker = GoldMaker(
        Recalculator([], mode="never"),
        ScriptedSandbox([counting(key)] * 40),  # type: ignore[list-item]
    )
    victims: dict[str, Submission] = {"mine": program("a")}
    return list(suggest(TASK, base, maker, only=["same-word-or-another"], victims=victims))


def test_the_same_word_or_another_are_both_fine() -> None:
    for key in (str, str.casefold):
        assert [each.state for each in judged(key)] == ["rejected"]


def test_a_program_that_takes_a_word_for_neither_is_shown() -> None:
    (each,) = judged(lambda word: "Anna" if word != "anna" else "Bob")
    assert each.state == "contested"
    assert "neither as 'Anna' nor as another word" in each.contested
    assert [trial.name for trial in each.kills] == ["mine"]
