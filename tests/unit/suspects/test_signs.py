"""Each sign: a clean task, and a suspicious one."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest
from openpyxl.styles import Font

from judge.annotate.rules import SIGN as MANUAL
from judge.suspects.contract import Sign
from judge.suspects.model import Certainty
from judge.suspects.signs.beyond_position import BEYOND_POSITION
from judge.suspects.signs.blanks import BLANK_AS_ZERO, FILLED_BLANK
from judge.suspects.signs.cases import CHANGED_RULE, UNINFORMATIVE_CASE
from judge.suspects.signs.contradicted_example import CONTRADICTED_EXAMPLE
from judge.suspects.signs.contradicted_input import BLANK_CONSTANT, CONTRADICTED_INPUT, FROZEN_INPUT
from judge.suspects.signs.copied_rows import COPIED_ROWS
from judge.suspects.signs.formulas import BROKEN_COLUMN, ODD_FORMULA, RANGES
from judge.suspects.signs.leftover import LEFTOVER
from judge.suspects.signs.questions import OMITTED_ROW, STATED_RESULT, UNNAMED_LABEL, WORDING
from judge.suspects.signs.single_values import LONE_VALUE, ODD_TOTAL
from judge.suspects.signs.stored_values import ERROR_VALUES, STALE, VOLATILE
from judge.suspects.signs.swapped_gold import SWAPPED_GOLD
from judge.suspects.signs.verdicts import FAILED_TASK, MIXED_VERDICTS, OUTVOTED
from judge.workbook.cell import CellValue, ErrorValue
from tests.unit.annotate.books import make_book, with_part
from tests.unit.suspects.small import TODAY, book, examined, excel_book, findings_of, task_of

HEAD = ("number", "double")


def doubling(*numbers: int) -> tuple[bytes, bytes]:
    """A case whose gold doubles column A by formulas."""
    return (
        book(HEAD, *((each,) for each in numbers)),
        book(HEAD, *((each, f"=A{row}*2") for row, each in enumerate(numbers, start=2))),
    )


def names(*people: str) -> tuple[bytes, bytes]:
    """A case whose gold copies column A into column C."""
    return (
        book(("name", None, "copy"), *((each,) for each in people)),
        book(("name", None, "copy"), *((each, None, each) for each in people)),
    )


NUMBERS = ((1, 2, 3, 4), (5, 2, 3, 4), (7, 8, 9, 10))
CLEAN = tuple(doubling(*numbers) for numbers in NUMBERS)
OTHERS = ("Cleo", "Dora", "Emil", "Fay")
PEOPLE = (names("Ada", "Bob", *OTHERS), names("Ada", "Bobby", *OTHERS))
SAVED = dt.datetime(2020, 1, 2)  # noqa: DTZ001 - cells have no time zone


@pytest.mark.parametrize(
    "sign",
    [
        *(CONTRADICTED_INPUT, ERROR_VALUES, STALE, VOLATILE, CHANGED_RULE, UNINFORMATIVE_CASE),
        *(
            ODD_FORMULA,
            RANGES,
            CONTRADICTED_EXAMPLE,
            WORDING,
            LEFTOVER,
            BEYOND_POSITION,
            FROZEN_INPUT,
            MIXED_VERDICTS,
        ),
        *(
            BLANK_CONSTANT,
            BROKEN_COLUMN,
            LONE_VALUE,
            ODD_TOTAL,
            UNNAMED_LABEL,
            BLANK_AS_ZERO,
            FAILED_TASK,
            STATED_RESULT,
            FILLED_BLANK,
            COPIED_ROWS,
        ),
    ],
    ids=lambda sign: sign.name,
)
def test_clean_tasks_are_not_suspected(sign: Sign, tmp_path: Path) -> None:
    assert examined(sign, task_of(tmp_path, "B2:B5", *CLEAN)) == []
    assert examined(sign, task_of(tmp_path, "C2:C7", *PEOPLE)) == []


# -- contradicted input ---------------------------------------------------------------------------


def test_an_input_constant_that_the_gold_has_otherwise_is_sure_if_the_answer_follows(
    tmp_path: Path,
) -> None:
    given, _ = doubling(5, 2, 3, 4)
    _, gold = doubling(6, 2, 3, 4)
    task = task_of(tmp_path, "B2:B5", doubling(1, 2, 3, 4), (given, gold))
    (found,) = examined(CONTRADICTED_INPUT, task)
    assert (found.case, found.certainty) == (2, Certainty.SURE)
    assert found.summary == "the gold's A2 is 6, the input's is 5"
    assert "give 10 in B2, not 12" in found.why
    assert [(each.cell, each.expected, each.found) for each in found.evidence] == [
        ("A2", 5, 6),
        ("B2", 10, 12),
    ]


def test_a_constant_that_no_formula_reads_does_not_count(tmp_path: Path) -> None:
    given = book(("number", "double", "note"), (1, None, "x"), (2,))
    gold = book(("number", "double", "note"), (1, "=A2*2", "y"), (2, "=A3*2"))
    assert examined(CONTRADICTED_INPUT, task_of(tmp_path, "B2:B3", (given, gold))) == []


def test_a_constant_that_is_traced_into_an_answer_of_constants_is_sure(tmp_path: Path) -> None:
    given = book(("name", None, "copy"), ("Ada",), ("Todd",), *((each,) for each in OTHERS))
    _, gold = names("Ada", "Thomas", *OTHERS)
    (found,) = examined(CONTRADICTED_INPUT, task_of(tmp_path, "C2:C7", PEOPLE[0], (given, gold)))
    assert (found.case, found.certainty) == (2, Certainty.SURE)
    assert found.summary == "the gold's A3 is 'Thomas', the input's is 'Todd'"


def test_a_column_that_the_gold_of_the_only_case_rewrites_is_its_work(tmp_path: Path) -> None:
    names_before = ("Carl", "Anna", "Fred", "Dirk", "Bert", "Emma")
    given = book(("name", None, "first"), *((name,) for name in names_before))
    gold = book(("name", None, "first"), *((name, None, name) for name in sorted(names_before)))
    task = task_of(tmp_path, "C2:C7", (given, gold))
    assert examined(CONTRADICTED_INPUT, task) == []
    slip = book(
        ("name", None, "first"),
        *((name, None, name) for name in (names_before[0], "Kurt", *names_before[2:])),
    )
    (found,) = examined(CONTRADICTED_INPUT, task_of(tmp_path, "C2:C7", (given, slip)))
    assert (found.certainty, found.evidence[0].cell) == (Certainty.SURE, "A3")


def test_what_every_case_changes_in_a_column_is_the_question_s_own_change(tmp_path: Path) -> None:
    cases = [
        (book(("a", "b"), (text,), ("other",)), book(("a", "b"), (text[:5], 3), ("other", 4)))
        for text in ("Check 17", "Check 18")
    ]
    assert examined(CONTRADICTED_INPUT, task_of(tmp_path, "B2:B3", *cases)) == []


# -- errors ---------------------------------------------------------------------------------------


def test_a_broken_formula_is_sure(tmp_path: Path) -> None:
    given, _ = doubling(1, 2)
    gold = book(HEAD, (1, "=A2*2"), (2, "=#REF!*2"))
    (found,) = examined(ERROR_VALUES, task_of(tmp_path, "B2:B3", (given, gold)))
    assert found.certainty is Certainty.SURE
    assert found.summary == "the gold's B3 is #REF!"


def test_an_error_that_the_question_names_is_only_possible(tmp_path: Path) -> None:
    given = book(("key", "value", "wanted"), ("a", 1, "b"))
    gold = book(("key", "value", "wanted"), ("a", 1, "b", "=VLOOKUP(C2,$A$2:$B$2,2,0)"))
    for said, certainty in (
        ("Look it up.", Certainty.LIKELY),
        ("Show #N/A if it is missing.", Certainty.POSSIBLE),
    ):
        task = task_of(tmp_path, "D2", (given, gold), instruction=said)
        assert [each.certainty for each in examined(ERROR_VALUES, task)] == [certainty]


def test_an_error_that_the_input_shows_there_already_is_not_the_gold_s(tmp_path: Path) -> None:
    rows = (HEAD, (1, "#N/A"), (2, "#N/A"))
    assert examined(ERROR_VALUES, task_of(tmp_path, "B2:B3", (book(*rows), book(*rows)))) == []


def test_an_error_that_the_input_s_formulas_show_in_the_column_is_only_possible(
    tmp_path: Path,
) -> None:
    values: dict[str, CellValue] = {"B2": ErrorValue("#N/A"), "B3": 4}
    given = excel_book(HEAD, (1, "=A2*2"), (2, "=A3*2"), values=values)
    gold = excel_book(HEAD, (1, "=A2*2"), (2, "=A3*2"), values={"B2": 2, "B3": ErrorValue("#N/A")})
    (found,) = examined(ERROR_VALUES, task_of(tmp_path, "B2:B3", (given, gold)))
    assert found.certainty is Certainty.POSSIBLE


# -- stale, volatile ------------------------------------------------------------------------------


def test_a_stored_value_that_the_formula_does_not_give_is_stale(tmp_path: Path) -> None:
    given, _ = doubling(1, 2, 3)
    rows = (HEAD, (1, "=A2*2"), (2, "=A3*2"), (3, "=A4*2"))
    right = {"B2": 2, "B3": 4, "B4": 6}
    for values, stale in ((right, []), (right | {"B3": 5}, ["B3"])):
        gold = excel_book(*rows, values=values)
        found = examined(STALE, task_of(tmp_path, "B2:B4", (given, gold)))
        assert [each.cell for one in found for each in one.evidence] == stale
        assert all(each.certainty is Certainty.LIKELY for each in found)


def test_a_value_of_the_day_of_saving_is_sure(tmp_path: Path) -> None:
    given = book(("today",), (None,))
    gold = excel_book(("today",), ("=TODAY()",), values={"A2": SAVED})
    task = task_of(tmp_path, "A2", (given, gold))
    (found,) = examined(VOLATILE, task)
    assert found.certainty is Certainty.SURE
    assert examined(STALE, task) == []


def test_a_value_that_moves_with_the_day_is_likely(tmp_path: Path) -> None:
    given = book(("today",), (None,))
    gold = excel_book(("today",), ("=TODAY()",), values={"A2": TODAY})
    (found,) = examined(VOLATILE, task_of(tmp_path, "A2", (given, gold)))
    assert found.certainty is Certainty.LIKELY


@pytest.mark.parametrize(
    ("instruction", "month", "is_suspected"),
    [
        ("Delete what is earlier than the current month.", (2024, 9), True),
        ("Delete what is earlier than the current month.", (2024, 5), False),
        ("Delete what is earlier than the current month.", (2035, 9), False),
        ("Delete what is earlier than A1.", (2024, 9), False),
        ("Delete what is overdue on the date in G1.", (2024, 9), False),
    ],
)
def test_constants_of_the_day_of_saving(
    tmp_path: Path, instruction: str, month: tuple[int, int], is_suspected: bool
) -> None:
    day = dt.datetime(*month, 1)  # noqa: DTZ001 - cells have no time zone
    given = gold = book(("day", day))
    saved = with_part(
        gold,
        "docProps/core.xml",
        lambda xml: re.sub(rb"(<dcterms:modified[^>]*>)[^<]*", rb"\g<1>2024-06-02T16:42:59Z", xml),
    )
    found = examined(VOLATILE, task_of(tmp_path, "A1:B1", (given, saved), instruction=instruction))
    assert [(one.certainty, one.evidence[0].cell) for one in found] == (
        [(Certainty.LIKELY, "B1")] if is_suspected else []
    )


def test_a_stored_value_that_the_input_shows_as_an_example_is_only_possible(tmp_path: Path) -> None:
    given = book(HEAD, (1,), (2, 5), (3,))
    gold = excel_book(
        *(HEAD, (1, "=A2*2"), (2, "=A3*2"), (3, "=A4*2")), values={"B2": 2, "B3": 5, "B4": 6}
    )
    (found,) = examined(STALE, task_of(tmp_path, "B2:B4", (given, gold)))
    assert found.certainty is Certainty.POSSIBLE


# -- rules ----------------------------------------------------------------------------------------


def test_one_input_with_two_answers_is_sure(tmp_path: Path) -> None:
    given = book(HEAD, (1,), (2,))
    cases = [(given, book(HEAD, (1, 2), (2, second))) for second in (4, 5)]
    (found,) = examined(CHANGED_RULE, task_of(tmp_path, "B2:B3", *cases))
    assert (found.case, found.certainty) == (2, Certainty.SURE)
    assert found.summary == "the input is that of case 1, but B3 of the answer is 5, not 4"


def test_inputs_that_only_look_different_are_not_the_same(tmp_path: Path) -> None:
    def bold(book: Any) -> None:
        book.active.append(("name", "bold names"))
        book.active.append(("Ada",))
        book.active["A2"].font = Font(bold=True)

    gold = book(("name", "bold names"), ("Ada", 0))
    other = book(("name", "bold names"), ("Ada", 1))
    plain = book(("name", "bold names"), ("Ada",))
    task = task_of(tmp_path, "B2", (plain, gold), (make_book(bold), other))
    assert examined(CHANGED_RULE, task) == []


def test_the_formula_of_case_1_is_computed_in_the_others(tmp_path: Path) -> None:
    given, _ = doubling(5, 6)
    gold = book(HEAD, (5, 10), (6, 13))
    (found,) = examined(CHANGED_RULE, task_of(tmp_path, "B2:B3", doubling(1, 2), (given, gold)))
    assert (found.case, found.certainty) == (2, Certainty.LIKELY)
    assert [(each.cell, each.expected, each.found) for each in found.evidence] == [("B3", 12, 13)]


def test_a_constant_among_formulas_is_odd_if_it_has_another_value(tmp_path: Path) -> None:
    given, _ = doubling(1, 2, 3, 4, 5, 6)
    for third, odd in ((6, []), (7, ["B4"])):
        rows = [(each, f"=A{each + 1}*2" if each != 3 else third) for each in range(1, 7)]
        gold = book(HEAD, *rows)
        found = examined(ODD_FORMULA, task_of(tmp_path, "B2:B7", (given, gold)))
        assert [each.cell for one in found for each in one.evidence] == odd


def test_a_table_that_moves_with_the_row_is_found(tmp_path: Path) -> None:
    people = [("a", 1), ("b", 2), ("c", 3), ("a", 9), ("b", 9)]
    given = book(("key", "value", "wanted"), *((*each, "a") for each in people))
    for dollar, found in (("$", []), ("", [Certainty.LIKELY])):
        rows = [
            (*each, "a", f"=VLOOKUP(C{row},A{dollar}{start}:B{dollar}{start + 3},2,0)")
            for row, each in enumerate(people[:3], start=2)
            for start in [2 if dollar else row]
        ]
        gold = book(("key", "value", "wanted"), *rows, *people[3:])
        suspects = examined(RANGES, task_of(tmp_path, "D2:D4", (given, gold)))
        assert [each.certainty for each in suspects] == found


def test_a_range_that_ends_before_the_data_is_found(tmp_path: Path) -> None:
    numbers = [(each,) for each in (1, 2, 3, 4, 5)]
    for last, found in ((6, 0), (5, 1)):
        gold = book(("number", "sum"), (1, f"=SUM($A$2:$A${last})"), *numbers[1:])
        task = task_of(tmp_path, "B2", (book(("number", "sum"), *numbers), gold))
        suspects = examined(RANGES, task)
        assert [each.certainty for each in suspects] == [Certainty.POSSIBLE] * found


def test_the_range_of_an_array_formula_is_left_alone(tmp_path: Path) -> None:
    numbers = [(each,) for each in (1, 2, 3, 4, 5)]
    gold = book(("number", "sum"), (1, "=SUM($A$2:$A$5)"), *numbers[1:])

    def as_array(sheet: bytes) -> bytes:
        assert sheet.count(b"<f>SUM") == 1
        return sheet.replace(b"<f>SUM", b'<f t="array" ref="B2">SUM')

    for data, found in (
        (gold, 1),
        (with_part(gold, "xl/worksheets/sheet1.xml", as_array), 0),
    ):
        task = task_of(tmp_path, "B2", (book(("number", "sum"), *numbers), data))
        assert len(examined(RANGES, task)) == found


def test_an_example_that_the_gold_contradicts(tmp_path: Path) -> None:
    given = book(HEAD, (1, 2), (2, 4), (3, 6), (4, 9), (5,))
    _, gold = doubling(1, 2, 3, 4, 5)
    (found,) = examined(CONTRADICTED_EXAMPLE, task_of(tmp_path, "B2:B6", (given, gold)))
    assert found.summary == "the gold's B5 is 8, the input shows 9 there"


@pytest.mark.parametrize(
    ("example", "gold"),
    [("Yes", "YES"), (0.99, "99%"), ("02/01/2020", dt.datetime(2020, 2, 1))],  # noqa: DTZ001,
    ids=["other letters", "a share as text", "a date"],
)
def test_an_example_that_the_gold_has_in_another_form(
    tmp_path: Path, example: object, gold: object
) -> None:
    def cells(*filled: object) -> bytes:
        return book(("key", "result"), *zip((1, 2), filled, strict=True))

    case = (cells(example, None), cells(gold, "other"))
    (found,) = examined(CONTRADICTED_EXAMPLE, task_of(tmp_path, "B2:B3", case))
    assert (found.certainty, found.evidence[0].cell) == (Certainty.LIKELY, "B2")
    # Where nothing is left to fill in, the task is to change the form.
    case = (cells(example, example), cells(gold, gold))
    assert examined(CONTRADICTED_EXAMPLE, task_of(tmp_path, "B2:B3", case)) == []


def test_rows_that_move_are_no_other_form(tmp_path: Path) -> None:
    given = book(("key", "dept"), (1, "Sales"), (2, "sales"), (3, None), (4, "Audit"))
    gold = book(("key", "dept"), (4, "Audit"), (1, "Sales"), (2, "sales"), (3, None))
    moved = book(("key", "dept"), (2, "sales"), (1, "Sales"), (4, "Audit"), (3, None))
    assert (
        examined(CONTRADICTED_EXAMPLE, task_of(tmp_path, "A2:B5", (given, gold), (given, moved)))
        == []
    )


# -- what a program cannot know -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instruction", "labels"),
    [
        ("Mark what is settled.", ["Prepaid"]),
        ("Mark what has been prepared.", ["Prepaid"]),
        ("Mark it as prepaid.", []),
        ("Say whether it is prepayable.", []),
    ],
)
def test_a_word_that_nothing_given_contains(
    instruction: str, labels: list[str], tmp_path: Path
) -> None:
    given = book(("order", "state"), (1, None), (2, None))
    gold = book(("order", "state"), (1, "Prepaid"), (2, "Yes"))
    task = task_of(tmp_path, "B2:B3", (given, gold), instruction=instruction)
    found = [one.found for suspect in examined(UNNAMED_LABEL, task) for one in suspect.evidence]
    assert found == ([] if "prep" in instruction else labels)


def test_codes_are_put_together_by_programs(tmp_path: Path) -> None:
    given = book(("depot", "item", "key"), ("muc", 76067, None), ("ber", 417, None))
    gold = book(("depot", "item", "key"), ("muc", 76067, "MUC-76067"), ("ber", 417, "BER-00417"))
    assert examined(UNNAMED_LABEL, task_of(tmp_path, "C2:C3", (given, gold))) == []


def test_a_zero_that_stands_for_a_blank_cell(tmp_path: Path) -> None:
    given = book(HEAD, (1,), (None,), (0,))
    gold = excel_book(
        *(HEAD, (1, "=A2"), (None, "=A3"), (0, "=A4")), values={"B2": 1, "B3": 0, "B4": 0}
    )
    (suspect,) = examined(BLANK_AS_ZERO, task_of(tmp_path, "B2:B4", (given, gold)))
    assert [one.cell for one in suspect.evidence] == ["B3"]
    asked = task_of(tmp_path, "B2:B4", (given, gold), instruction="Show 0 where there is nothing.")
    assert examined(BLANK_AS_ZERO, asked) == []


# -- leftovers ------------------------------------------------------------------------------------


def test_a_name_that_only_another_case_s_input_has_is_sure(tmp_path: Path) -> None:
    given, _ = names("Ada", "Bobby", *OTHERS)
    _, gold = PEOPLE[0]
    (found,) = examined(LEFTOVER, task_of(tmp_path, "C2:C7", PEOPLE[0], (given, gold)))
    assert (found.case, found.certainty) == (2, Certainty.SURE)
    assert found.summary == "the gold's C3 is 'Bob', which the input does not have"
    assert "where the input of this case has 'Bobby'" in found.why


def test_a_cell_that_keeps_what_another_case_has_is_sure(tmp_path: Path) -> None:
    def case(second: int, kept: int) -> tuple[bytes, bytes]:
        rows = [(each, None) for each in range(11, 18)]
        golds = [(each, 1) for each in range(11, 18)]
        return (
            book(*rows[:1], (second, None), *rows[2:]),
            book(*golds[:1], (kept, 1), *golds[2:]),
        )

    (found,) = examined(LEFTOVER, task_of(tmp_path, "A1:B7", case(12, 12), case(99, 12)))
    assert (found.case, found.certainty) == (2, Certainty.SURE)
    assert found.summary == "the gold's A2 is 12 as in case 1, the input's is 99"


# -- says nothing ---------------------------------------------------------------------------------


def test_cases_that_say_nothing(tmp_path: Path) -> None:
    whole = doubling(1, 2)[1]
    blank = book(HEAD, (1,), (2,))
    elsewhere = book((*HEAD, "answer"), (1, None, 2), (2, None, 4))
    task = task_of(tmp_path, "B2:B3", (whole, whole), (blank, elsewhere), doubling(1, 3))
    untouched, empty = examined(UNINFORMATIVE_CASE, task)
    assert "the input already holds the whole answer (2 cells" in untouched.summary
    assert empty.summary == "the answer range is blank in the gold"
    assert "the gold differs from the input elsewhere" in empty.why
    assert {untouched.certainty, empty.certainty} == {Certainty.SURE}


def test_a_repeated_answer_is_sure_only_with_a_repeated_input(tmp_path: Path) -> None:
    other = book((*HEAD, "note"), (1, None, "x"), (2,))
    gold = book((*HEAD, "note"), (1, "=A2*2", "x"), (2, "=A3*2"))
    task = task_of(tmp_path, "B2:B3", doubling(1, 2), doubling(1, 2), (other, gold))
    assert [(each.case, each.certainty) for each in examined(UNINFORMATIVE_CASE, task)] == [
        (2, Certainty.SURE),
        (3, Certainty.POSSIBLE),
    ]


def test_inputs_that_differ_within_the_answer_range_test_different_things(tmp_path: Path) -> None:
    gold = book(HEAD, (1, 2), (2, 4))
    inputs = [book(HEAD, (1, text), (2, None)) for text in ("~2", "#2")]
    task = task_of(tmp_path, "B2:B3", *((given, gold) for given in inputs))
    (found,) = examined(UNINFORMATIVE_CASE, task)
    assert (found.case, found.certainty) == (2, Certainty.POSSIBLE)
    assert found.why == (
        "the inputs differ in 1 cell of the answer range (B2 is '#2', not '~2'), "
        "but the answer is the same"
    )


# -- others ---------------------------------------------------------------------------------------


def test_submissions_that_agree_outvote_the_gold(tmp_path: Path) -> None:
    task = task_of(tmp_path, "B2:B3", doubling(1, 2))
    paths = []
    for run, second in (("a", 5), ("b", 5), ("c", 5)):
        folder = tmp_path / run
        folder.mkdir()
        paths.append(folder / "1_7_output.xlsx")
        paths[-1].write_bytes(book(HEAD, (1, 2), (2, second)))
    (found,) = examined(OUTVOTED, task, outputs={1: paths})
    assert found.certainty is Certainty.SURE
    assert found.summary == "the gold's B3 is 4, 3 of 3 submissions have 5"
    (found,) = examined(OUTVOTED, task, outputs={1: paths[:2]})
    assert found.certainty is Certainty.LIKELY
    assert examined(OUTVOTED, task, outputs={1: paths[:1]}) == []
    paths[0].write_bytes(doubling(1, 2)[1])
    (found,) = examined(OUTVOTED, task, outputs={1: paths})
    assert found.certainty is Certainty.POSSIBLE
    paths[1].write_bytes(b"not a workbook")
    assert examined(OUTVOTED, task, outputs={1: paths}) == []


# -- a run that passes other cases ----------------------------------------------------------------


def outputs_of(folder: Path, run: str, *data: bytes) -> dict[int, list[Path]]:
    """The outputs of a run, by case."""
    paths = {}
    for number, content in enumerate(data, start=1):
        path = folder / run / f"{number}_7_output.xlsx"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        paths[number] = [path]
    return paths


def with_wrong_third_gold() -> tuple[tuple[bytes, bytes], ...]:
    given, _ = doubling(7, 8, 9, 10)
    gold = book(HEAD, (7, 14), (8, 16), (9, 27), (10, 20))
    return (*CLEAN[:2], (given, gold))


def test_a_case_that_a_run_fails_beside_cases_that_it_passes(tmp_path: Path) -> None:
    task = task_of(tmp_path, "B2:B5", *with_wrong_third_gold())
    right = [gold for _, gold in CLEAN]
    outputs = outputs_of(tmp_path, "one", *right)
    (suspect,) = examined(MIXED_VERDICTS, task, outputs=outputs, strength=0.5)
    assert (suspect.case, suspect.certainty) == (3, Certainty.LIKELY)
    assert suspect.summary == "the gold's B4 is 27, one has 18"
    assert suspect.why == "the run passes 2 other cases of the task, and 50% of its cases"
    for weak in (0.4, None):
        (suspect,) = examined(MIXED_VERDICTS, task, outputs=outputs, strength=weak)
        assert suspect.certainty is Certainty.POSSIBLE


def test_a_case_that_another_run_passes_can_be_reached(tmp_path: Path) -> None:
    cases = with_wrong_third_gold()
    task = task_of(tmp_path, "B2:B5", *cases)
    outputs = outputs_of(tmp_path, "one", *(gold for _, gold in CLEAN))
    outputs[3] += outputs_of(tmp_path, "two", *(gold for _, gold in cases))[3]
    (suspect,) = examined(MIXED_VERDICTS, task, outputs=outputs, strength=0.9)
    assert suspect.certainty is Certainty.POSSIBLE


@pytest.mark.parametrize(
    ("strength", "cases", "certainty"),
    [(0.6, 2, Certainty.POSSIBLE), (0.7, 2, Certainty.LIKELY), (0.7, 3, Certainty.POSSIBLE)],
)
def test_a_run_that_passes_one_case_has_to_be_strong_and_to_fail_no_more(
    tmp_path: Path, strength: float, cases: int, certainty: Certainty
) -> None:
    typed = [
        (given, book(HEAD, *((each, 2 * each) for each in numbers)))
        for (given, _), numbers in zip(CLEAN, NUMBERS, strict=True)
    ]
    task = task_of(tmp_path, "B2:B5", *typed[:cases])
    answers = [CLEAN[0][1], *(book(HEAD, (5, 11)) for _ in CLEAN[1:])]
    outputs = outputs_of(tmp_path, "one", *answers[:cases])
    suspects = examined(MIXED_VERDICTS, task, outputs=outputs, strength=strength)
    assert [(suspect.case, suspect.certainty) for suspect in suspects] == [
        (number, certainty) for number in range(2, cases + 1)
    ]


RIGHT_BELOW = (((2, 4), (3, 6), (4, 8)),) * 2 + (((8, 16), (9, 18), (10, 20)),)


@pytest.mark.parametrize(
    ("strength", "certainty"), [(0.6, Certainty.POSSIBLE), (0.7, Certainty.LIKELY)]
)
def test_a_task_that_a_run_fails_throughout(
    tmp_path: Path, strength: float, certainty: Certainty
) -> None:
    task = task_of(tmp_path, "B2:B5", *CLEAN)
    failed = [book(HEAD, (0, 11), *rows) for rows in RIGHT_BELOW]
    suspects = examined(
        FAILED_TASK, task, outputs=outputs_of(tmp_path, "one", *failed), strength=strength
    )
    assert [(found.case, found.certainty) for found in suspects] == [
        (number, certainty) for number in (1, 2, 3)
    ]
    # One case that it passes, or that another run passes, shows that the golds can be reached.
    for others in ([CLEAN[0][1], *failed[1:]], [gold for _, gold in CLEAN]):
        outputs = outputs_of(tmp_path, "one", *failed)
        for number, paths in outputs_of(tmp_path, "two", *others).items():
            outputs[number] += paths
        assert examined(FAILED_TASK, task, outputs=outputs, strength=strength) == []


@pytest.mark.parametrize(
    ("instruction", "certainty"),
    [
        ("Write Sup for the position.", Certainty.LIKELY),
        ("Write SUP for the position.", Certainty.POSSIBLE),
        ("Write sup for the position.", Certainty.POSSIBLE),
        ("Write the position.", Certainty.POSSIBLE),
    ],
)
def test_the_words_of_the_question_decide_about_a_task_that_a_run_fails(
    tmp_path: Path, instruction: str, certainty: Certainty
) -> None:
    cases = [(book(("name", None), (name,)), book(("name", None), (name, "SUP"))) for name in "ab"]
    task = task_of(tmp_path, "B2", *cases, instruction=instruction)
    outputs = outputs_of(tmp_path, "one", *(book((), (None, "Sup")) for _ in cases))
    suspects = examined(FAILED_TASK, task, outputs=outputs, strength=0.9)
    assert [suspect.certainty for suspect in suspects] == [certainty, certainty]


@pytest.mark.parametrize(
    ("gold", "own", "certainty"),
    [
        (0, None, Certainty.POSSIBLE),
        (None, "n/a", Certainty.POSSIBLE),
        (7.333, 7.35, Certainty.POSSIBLE),
        (7.333, 7.2, Certainty.LIKELY),
        (733, 732, Certainty.LIKELY),
        (None, 7, Certainty.LIKELY),
    ],
)
def test_how_a_gold_rounds_or_says_nothing_is_left_open(
    tmp_path: Path, gold: object, own: object, certainty: Certainty
) -> None:
    rest = [(number, 2 * number) for number in range(1, 5)]
    cases = [(book(HEAD, (9, 1)), book(HEAD, (number, gold), *rest)) for number in (8, 9)]
    outputs = outputs_of(tmp_path, "one", *(book(HEAD, (0, own), *rest) for _ in cases))
    suspects = examined(
        FAILED_TASK, task_of(tmp_path, "B2:B6", *cases), outputs=outputs, strength=0.9
    )
    assert {suspect.certainty for suspect in suspects} == {certainty}


def test_false_is_an_answer(tmp_path: Path) -> None:
    rest = [(number, 2 * number) for number in range(1, 5)]
    cases = [(book(HEAD, (9, 1)), book(HEAD, (number, False), *rest)) for number in (18, 19)]
    outputs = outputs_of(tmp_path, "one", *(book(HEAD, (0, "n/a"), *rest) for _ in cases))
    suspects = examined(
        FAILED_TASK, task_of(tmp_path, "B2:B6", *cases), outputs=outputs, strength=0.9
    )
    assert {suspect.certainty for suspect in suspects} == {Certainty.LIKELY}


def test_another_sign_supports_a_task_that_a_run_fails(tmp_path: Path) -> None:
    given, _ = doubling(5, 2, 3, 4)
    _, gold = doubling(6, 2, 3, 4)
    task = task_of(tmp_path, "B2:B5", doubling(1, 2, 3, 4), (given, gold))
    outputs = outputs_of(tmp_path, "one", *(book(HEAD, (0, 11)) for _ in task.cases))
    others: tuple[Sign, ...]
    for others, certainty in (((), Certainty.POSSIBLE), ((CONTRADICTED_INPUT,), Certainty.LIKELY)):
        suspects = findings_of([FAILED_TASK, *others], task, outputs=outputs, strength=0.9).suspects
        failed = [suspect for suspect in suspects if suspect.sign == FAILED_TASK.name]
        assert [suspect.certainty for suspect in failed] == [certainty, certainty]
    assert failed[0].why.endswith("another sign of the task is contradicted-input")


def test_a_run_whose_output_holds_errors_says_nothing_of_the_gold(tmp_path: Path) -> None:
    task = task_of(tmp_path, "B2:B5", *with_wrong_third_gold())
    broken = book(HEAD, (7, 14), (8, 16), (9, "#N/A"), (10, 20))
    outputs = outputs_of(tmp_path, "one", CLEAN[0][1], CLEAN[1][1], broken)
    assert examined(MIXED_VERDICTS, task, outputs=outputs) == []


def test_formulas_of_the_gold_count_less_than_a_run_in_changed_cases(tmp_path: Path) -> None:
    task = task_of(tmp_path, "B2:B5", *CLEAN)
    wrong = [book(HEAD, (0, 11), *rows) for rows in RIGHT_BELOW[1:]]
    outputs = outputs_of(tmp_path, "one", CLEAN[0][1], *wrong)
    for strength, certainty in ((0.6, Certainty.POSSIBLE), (0.7, Certainty.LIKELY)):
        suspects = examined(MIXED_VERDICTS, task, outputs=outputs, strength=strength)
        assert [(found.case, found.certainty) for found in suspects] == [
            (2, certainty),
            (3, certainty),
        ]


# -- rows that the answer copies ------------------------------------------------------------------

LEDGER = (("ref", "code", "sum"), ("A-1001", 1, 70), ("A-1002", 2, 80), ("A-1003", 3, 90))


def test_rows_that_the_gold_repeats_below_the_input_s(tmp_path: Path) -> None:
    (found,) = examined(
        COPIED_ROWS, task_of(tmp_path, "A2:C9", (book(*LEDGER), book(*LEDGER, *LEDGER[1:])))
    )
    assert (found.certainty, found.evidence[0].cell) == (Certainty.LIKELY, "A5")
    other = [(ref, code, total + 1) for ref, code, total in LEDGER[1:]]
    task = task_of(tmp_path, "A2:C9", (book(*LEDGER), book(*LEDGER, *other)))
    assert examined(COPIED_ROWS, task) == []


def test_numbers_that_were_text_in_the_input_are_not_altered(tmp_path: Path) -> None:
    rows = [(f"A-{number}", number * 7, number * 1000.5) for number in range(1001, 1006)]
    given = book(("ref", "code", "sum"), *((ref, str(code), total) for ref, code, total in rows))
    gold = book(("ref", "code", "sum"), *rows[1:])
    task = task_of(tmp_path, "A2:C6", (given, gold), instruction="Delete the first row.")
    assert examined(COPIED_ROWS, task) == []


@pytest.mark.parametrize(
    ("instruction", "code", "cells"),
    [
        ("Delete the rows with a code of 2.", "x", ["B2", "B3", "B4"]),
        ("Delete the rows with a code of 2.", 3, []),
        ("Write x for every code.", "x", []),
    ],
)
def test_cells_that_change_although_rows_are_only_deleted(
    tmp_path: Path, instruction: str, code: object, cells: list[str]
) -> None:
    rows = [(f"A-{number}", number % 3 + 2, number * 1000.5) for number in range(1001, 1005)]
    left = [(ref, code, total) for ref, own, total in rows if own != 2]
    given = book(("ref", "code", "sum"), *rows, ("A-2000", 2, 123.5))
    gold = book(("ref", "code", "sum"), *left)
    found = examined(
        COPIED_ROWS, task_of(tmp_path, "A2:C6", (given, gold), instruction=instruction)
    )
    assert [item.cell for one in found for item in one.evidence] == cells


# -- work outside of the answer position ----------------------------------------------------------


@pytest.mark.parametrize(
    ("position", "cell"), [("B3:B5", "B2"), ("B2:B4", "B5")], ids=["first row", "last row"]
)
def test_a_row_of_the_gold_s_work_that_the_position_leaves_out(
    tmp_path: Path, position: str, cell: str
) -> None:
    given, _ = doubling(1, 2, 3, 4)
    gold = book(HEAD, (1, 2), (2, 4), (3, 6), (4, 8))
    (suspect,) = examined(BEYOND_POSITION, task_of(tmp_path, position, (given, gold)))
    assert suspect.certainty is Certainty.LIKELY
    assert suspect.evidence[0].cell == cell


def test_a_value_of_the_input_that_the_gold_replaces_above_the_answer(tmp_path: Path) -> None:
    given = book(("old",), ("b",))
    gold = book(("new",), ("c",))
    (suspect,) = examined(BEYOND_POSITION, task_of(tmp_path, "A2:A3", (given, gold)))
    assert suspect.certainty is Certainty.LIKELY
    assert suspect.summary == "the gold writes 'new' in A1, outside the answer position"


def test_a_heading_or_a_helper_column_is_only_possible(tmp_path: Path) -> None:
    given = book((None, None), (1,), (2,))
    gold = excel_book(
        ("number", "double", "more"),
        (1, "=A2*2", "=A2*3"),
        (2, "=A3*2", "=A3*3"),
        values={"B2": 2, "C2": 3, "B3": 4, "C3": 6},
    )
    (suspect,) = examined(BEYOND_POSITION, task_of(tmp_path, "B2:B3", (given, gold)))
    assert suspect.certainty is Certainty.POSSIBLE


def test_a_row_that_the_gold_empties_below_the_answer(tmp_path: Path) -> None:
    given = book(("a",), ("b",), ("c",), ("d",))
    gold = book(("a",), ("d",))
    (suspect,) = examined(BEYOND_POSITION, task_of(tmp_path, "A1:A3", (given, gold)))
    assert suspect.certainty is Certainty.LIKELY
    assert suspect.summary == "the gold empties A4, outside the answer position"
    assert examined(BEYOND_POSITION, task_of(tmp_path, "A1:A4", (given, gold))) == []


def test_a_formula_that_is_filled_on_to_the_side(tmp_path: Path) -> None:
    given = book((None, None, None), (1, 5, None))
    gold = excel_book(
        (None, None, None, None),
        (1, 5, "=A2*2", "=B2*2"),
        values={"C2": 2, "D2": 10},
    )
    (suspect,) = examined(BEYOND_POSITION, task_of(tmp_path, "C2", (given, gold)))
    assert suspect.certainty is Certainty.LIKELY
    assert suspect.evidence[0].cell == "D2"


# -- formulas that became constants ---------------------------------------------------------------


def frozen(constant: int) -> tuple[bytes, bytes]:
    """A case whose input sums A2:A3 in A4, and whose gold has a constant there."""
    given = excel_book(("number", "double"), (1,), (2,), ("=SUM(A2:A3)",), values={"A4": 3})
    gold = excel_book(
        ("number", "double"), (1,), (2,), (constant, "=A4*2"), values={"B4": constant * 2}
    )
    return given, gold


def test_a_formula_of_the_input_that_became_a_constant(tmp_path: Path) -> None:
    (suspect,) = examined(FROZEN_INPUT, task_of(tmp_path, "B4", frozen(9)))
    assert suspect.certainty is Certainty.LIKELY
    assert suspect.summary == "the gold's A4 is the constant 9, the input's is =SUM(A2:A3)"
    assert "give 6 in B4, not 18" in suspect.why
    suspects = examined(FROZEN_INPUT, task_of(tmp_path, "B4", frozen(3), frozen(9)))
    assert [(each.case, each.certainty) for each in suspects] == [(2, Certainty.POSSIBLE)]


def test_a_constant_with_the_formula_s_value_changes_nothing(tmp_path: Path) -> None:
    assert examined(FROZEN_INPUT, task_of(tmp_path, "B4", frozen(3))) == []


def test_broken_rules_of_the_manual_are_possible(tmp_path: Path) -> None:
    other = (
        book(("amount", "twice"), (5,), (6,)),
        book(("amount", "twice"), (5, "=A2*2"), (6, "=A3*2")),
    )
    (found,) = examined(MANUAL, task_of(tmp_path, "B2:B3", doubling(1, 2), other))
    assert (found.case, found.certainty) == (2, Certainty.POSSIBLE)
    assert "headings" in found.summary


@pytest.mark.parametrize(
    ("question", "input_text", "found"),
    [
        ("Write 'late' where B is more than A.", "", 1),
        ("Write 'late' where B is more than A. LATE ones are paid at once.", "", 0),
        ("Write 'late' or 'Late' where B is more than A.", "", 0),
        ("Write late where B is more than A.", "", 0),
        ("Write 'late' where B is more than A.", "LATE", 0),
    ],
)
def test_a_word_that_the_question_writes_in_other_letters(
    question: str, input_text: str, found: int, tmp_path: Path
) -> None:
    given = book(("a", "b", "state"), (1, 2, None), (3, 1, None), (input_text,))
    gold = book(("a", "b", "state"), (1, 2, "LATE"), (3, 1, None), (input_text,))
    task = task_of(tmp_path, "C2:C3", (given, gold), instruction=question)
    suspects = examined(WORDING, task)
    assert [each.certainty for each in suspects] == [Certainty.LIKELY] * found
    assert [each.cell for one in suspects for each in one.evidence] == ["C2"] * found


# -- a blank cell in one file, a constant in the other --------------------------------------------


def test_a_cell_that_the_gold_empties_and_the_answer_follows(tmp_path: Path) -> None:
    given, _ = doubling(5, 2, 3, 4)
    gold = book(HEAD, (5, "=A2*2"), (None, "=SUM(A3:A3)"), (3, "=A4*2"), (4, "=A5*2"))
    (suspect,) = examined(BLANK_CONSTANT, task_of(tmp_path, "B2:B5", CLEAN[0], (given, gold)))
    assert (suspect.case, suspect.certainty) == (2, Certainty.LIKELY)
    assert suspect.summary == "the gold's A3 is blank, the input's is 2"
    (alone,) = examined(BLANK_CONSTANT, task_of(tmp_path, "B2:B5", (given, gold)))
    assert alone.certainty is Certainty.LIKELY


def test_a_name_that_the_gold_fills_in_and_the_answer_holds(tmp_path: Path) -> None:
    given, _ = names(*OTHERS)
    rows = [(each, None, each) for each in OTHERS]
    gold = book(("name", None, "copy"), *rows, (None, None, "Gustav"), (None, "Gustav"))
    (suspect,) = examined(BLANK_CONSTANT, task_of(tmp_path, "C2:C7", PEOPLE[0], (given, gold)))
    assert (suspect.case, suspect.certainty) == (2, Certainty.LIKELY)
    assert suspect.evidence[0].cell == "B7"


# -- formulas of the input that the gold breaks ---------------------------------------------------


def with_formulas(*cells: object) -> bytes:
    numbers = range(1, len(cells) + 1)
    return book(HEAD, *((each, cell) for each, cell in zip(numbers, cells, strict=True)))


def test_a_column_formula_of_the_input_that_the_gold_types_over(tmp_path: Path) -> None:
    formulas = [f"=A{row}*2" for row in range(2, 7)]
    given, gold = with_formulas(*formulas), with_formulas(*formulas[:2], 100, *formulas[3:])
    kept = with_formulas(*formulas)
    (suspect,) = examined(BROKEN_COLUMN, task_of(tmp_path, "B2:B6", (given, kept), (given, gold)))
    assert (suspect.case, suspect.certainty) == (2, Certainty.LIKELY)
    assert suspect.summary == "the gold's B4 is 100, the input has the column's formula =A4*2 there"
    (task,) = examined(BROKEN_COLUMN, task_of(tmp_path, "B2:B6", (given, gold), (given, gold)))[:1]
    assert task.certainty is Certainty.POSSIBLE


def test_a_column_that_the_gold_replaces_is_the_task(tmp_path: Path) -> None:
    formulas = [f"=A{row}*2" for row in range(2, 7)]
    gold = with_formulas(*(f"=A{row}*3" for row in range(2, 7)))
    task = task_of(tmp_path, "B2:B6", (with_formulas(*formulas), gold))
    assert examined(BROKEN_COLUMN, task) == []


# -- totals and lone values -----------------------------------------------------------------------


def test_a_number_among_totals_that_is_not_one(tmp_path: Path) -> None:
    rows = [(number, number * 2, number * 5) for number in (1, 2, 3, 7)]
    given = book(("a", "b", "c", "all"), *rows)
    totals = [8, 16, 99, 56]
    gold = book(
        ("a", "b", "c", "all"), *((*row, total) for row, total in zip(rows, totals, strict=True))
    )
    (suspect,) = examined(ODD_TOTAL, task_of(tmp_path, "D2:D5", (given, gold)))
    assert suspect.certainty is Certainty.LIKELY
    assert suspect.summary == "the gold's D4 is 99; their sum is 24"


def test_an_average_in_a_row_of_totals_is_only_possible(tmp_path: Path) -> None:
    rows = [(number, number * 2, number * 5, number + 1) for number in (1, 2, 3)]
    gold = book(("a", "b", "c", "d"), *rows, (6, 12, 30, 3))
    (suspect,) = examined(ODD_TOTAL, task_of(tmp_path, "A5:D5", (book(*rows), gold)))
    assert suspect.certainty is Certainty.POSSIBLE
    assert suspect.summary == "the gold's D5 is 3, the average of its numbers; their sum is 9"


def test_a_value_beside_a_table_in_a_row_that_is_blank(tmp_path: Path) -> None:
    rows = [(f"name {number}", number) for number in range(6)]
    given = book(("name", "number", "kind"), *rows)
    kinds = [(*row, "low") for row in rows]
    gold = book(("name", "number", "kind"), *kinds, (None, None, None), (None, None, "low"))
    (suspect,) = examined(LONE_VALUE, task_of(tmp_path, "C2:C9", (given, gold)))
    assert suspect.certainty is Certainty.LIKELY
    assert suspect.summary == "the gold's C9 is 'low', and the rest of row 9 is blank"
    heading = book(("name", "number", "kind"), *kinds, (None, None, "a new part"))
    assert examined(LONE_VALUE, task_of(tmp_path, "C2:C9", (given, heading))) == []


# -- mends ----------------------------------------------------------------------------------------


def test_strings_that_every_gold_stores_as_numbers_are_layout(tmp_path: Path) -> None:
    def case(first: int) -> tuple[bytes, bytes]:
        given = book(HEAD, (str(first),), ("2",))
        return given, book(HEAD, (first, "=A2*2"), (2, "=A3*2"))

    assert examined(CONTRADICTED_INPUT, task_of(tmp_path, "B2:B3", case(1), case(5))) == []


def test_a_string_in_row_1_that_the_cases_vary_is_not_a_heading(tmp_path: Path) -> None:
    def case(given: str, gold: str) -> tuple[bytes, bytes]:
        return book((given,), ("x",)), book((gold,), ("x", None, gold))

    wrong = case("Clara", "Carla")
    task = task_of(tmp_path, "C2", case("Ada", "Ada"), wrong)
    (suspect,) = examined(CONTRADICTED_INPUT, task)
    assert (suspect.case, suspect.certainty) == (2, Certainty.SURE)
    same = task_of(tmp_path, "C2", wrong, wrong)
    assert examined(CONTRADICTED_INPUT, same) == []


def test_a_table_that_grew_is_not_a_changed_rule(tmp_path: Path) -> None:
    def case(*numbers: int, total: object) -> tuple[bytes, bytes]:
        rows = [(number,) for number in numbers]
        return book(HEAD[:1], *rows), book(HEAD[:1], *rows, (total,))

    short, longer = case(1, 2, 3, total="=SUM(A2:A4)"), case(1, 2, 3, 4, 5, total=15)
    assert examined(CHANGED_RULE, task_of(tmp_path, "A5:A7", short, longer)) == []


def test_a_value_that_this_input_holds_elsewhere_is_not_a_leftover(tmp_path: Path) -> None:
    people = ["Ada", "Bob", *OTHERS]

    def case(first: str, gold: str, *more: str) -> tuple[bytes, bytes]:
        rows = [(each,) for each in people[1:]]
        extra = [(None, each) for each in more]
        return (
            book(("name",), (first,), *rows, *extra),
            book(("name",), (gold,), *rows, *extra),
        )

    kept = task_of(tmp_path, "A2:A7", case("Ada", "Ada"), case("Zoe", "Ada"))
    (suspect,) = examined(LEFTOVER, kept)
    assert suspect.certainty is Certainty.SURE
    moved = task_of(tmp_path, "A2:A7", case("Ada", "Ada"), case("Zoe", "Ada", "Ada"))
    assert examined(LEFTOVER, moved) == []


# -- what runs make of a suspect ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "certainty"), [(10, Certainty.SURE), (12, Certainty.LIKELY), (7, Certainty.SURE)]
)
def test_a_run_bears_a_suspect_out_or_has_the_gold_s_value(
    tmp_path: Path, answer: int, certainty: Certainty
) -> None:
    given, _ = doubling(5, 2, 3, 4)
    _, gold = doubling(6, 2, 3, 4)
    task = task_of(tmp_path, "B2:B5", CLEAN[0], (given, gold))
    output = book(HEAD, (5, answer), (2, 4), (3, 6), (4, 8))
    outputs = {2: outputs_of(tmp_path, "one", CLEAN[0][1], output)[2]}
    (suspect,) = examined(CONTRADICTED_INPUT, task, outputs=outputs)
    assert suspect.certainty is certainty
    (seen,) = [cell for cell in suspect.seen if cell.in_answer]
    assert (seen.gold.formula, seen.gold.value) == ("=A2*2", 12)
    assert seen.outputs["one"].value == answer


# -- golds of other cases, rows that are left out, examples in whole rows --------------------------


def kept(*rows: tuple[str, int], without: str) -> tuple[bytes, bytes]:
    """A case whose gold holds the rows of its input without those of one group."""
    return book(*rows), book(*(row for row in rows if row[0] != without))


GROUPS = tuple((group, number) for number, group in enumerate("ABACADABACADAB", start=1))
MOVED = tuple((group if number != 2 else "A", number) for group, number in GROUPS)


def test_a_gold_with_rows_of_another_input_is_likely(tmp_path: Path) -> None:
    first, second = kept(*GROUPS, without="A"), kept(*MOVED, without="A")
    task = task_of(tmp_path, "A1:B14", (first[0], second[1]), (second[0], first[1]))
    (found,) = examined(SWAPPED_GOLD, task)
    assert (found.case, found.certainty) == (2, Certainty.LIKELY)
    assert found.summary == "not in this input: 1 row of the gold; all 7 are in the input of case 1"
    assert [(each.cell, each.found) for each in found.evidence] == [("A1", "B"), ("B1", 2)]


def test_golds_of_their_own_inputs_and_computed_rows_are_no_suspects(tmp_path: Path) -> None:
    first, second = kept(*GROUPS, without="A"), kept(*MOVED, without="A")
    assert examined(SWAPPED_GOLD, task_of(tmp_path, "A1:B14", first, second)) == []
    joined = book(*((f"{group}{number}", number) for group, number in GROUPS))
    task = task_of(tmp_path, "A1:B14", (first[0], joined), (joined, joined))
    assert examined(SWAPPED_GOLD, task) == []


def checks(*texts: str, omitted: int | None = None) -> tuple[bytes, bytes]:
    """A case whose gold writes the length of each text with "check" into column B."""
    filled = [
        (text, len(text) if "check" in text.casefold() and row != omitted else None)
        for row, text in enumerate(texts, start=1)
    ]
    return book(*((text, None) for text in texts)), book(*filled)


TEXTS = ("Check 1", "cash", "Check 22", "my check 3", "card", "Check 4", "Check5 paid")


@pytest.mark.parametrize(
    ("question", "omitted", "cases"),
    [
        ("Find the cells with 'Check' in column A.", 7, [2]),
        ("Find the cells with 'Check' in column A.", None, []),
        ("Find the cells with a check in column A.", 7, []),
    ],
)
def test_a_row_with_the_quoted_word_that_one_gold_leaves_out_is_likely(
    tmp_path: Path, question: str, omitted: int | None, cases: list[int]
) -> None:
    task = task_of(
        tmp_path, "B1:B7", checks(*TEXTS), checks(*TEXTS, omitted=omitted), instruction=question
    )
    found = examined(OMITTED_ROW, task)
    assert [each.case for each in found] == cases
    for each in found:
        assert each.certainty is Certainty.LIKELY
        assert each.summary == "the gold does not change B7, next to 'Check5 paid'"


def test_rows_that_no_gold_fills_in_as_the_word_says_are_left_alone(tmp_path: Path) -> None:
    cases = checks(*TEXTS, omitted=7), checks(*TEXTS, omitted=6)
    task = task_of(tmp_path, "B1:B7", *cases, instruction="Find 'Check' in column A.")
    assert examined(OMITTED_ROW, task) == []


def people(word: str, *, filled: int, moved: bool = False) -> bytes:
    """A table of ids, names, kinds and years, of which so many rows are filled in."""
    rows = [(number, f"name {number}", word, 2000 + number) for number in range(1, 9)]
    held = [*rows[1:filled], rows[0]] if moved else rows[:filled]
    return book(("id", "name", "kind", "year"), *held, *((None,) for _ in range(8 - filled)))


@pytest.mark.parametrize(
    ("gold", "is_suspect"),
    [
        (people("kind", filled=8), True),
        (people("AMSTER", filled=8), False),
        (people("kind", filled=4), False),  # nothing is filled in below: not examples
        (people("AMSTER", filled=8, moved=True), False),
    ],
)
def test_rows_of_examples_with_another_word_in_the_gold_are_likely(
    tmp_path: Path, gold: bytes, *, is_suspect: bool
) -> None:
    task = task_of(tmp_path, "A2:D9", (people("AMSTER", filled=4), gold))
    found = examined(CONTRADICTED_EXAMPLE, task)
    assert bool(found) is is_suspect
    for each in found:
        assert each.certainty is Certainty.LIKELY
        assert each.summary == (
            "the gold's C2 is 'kind', the input shows 'AMSTER' there (and 3 more)"
        )


@pytest.mark.parametrize(("odd", "is_suspect"), [(70, True), (40, False)])
def test_an_example_that_the_input_computes_and_the_gold_contradicts_is_likely(
    tmp_path: Path, odd: int, *, is_suspect: bool
) -> None:
    examples = {"B2": 10, "B3": 20, "B4": 30, "B5": odd}
    given = excel_book(
        HEAD,
        *((10 * row, f"=A{row + 1}") for row in (1, 2, 3)),
        (40, "=A5+30" if is_suspect else "=A5"),
        *((10 * row, None) for row in range(5, 11)),
        values=examples,
    )
    gold = excel_book(
        HEAD,
        *((10 * row, f"=A{row + 1}*1") for row in range(1, 11)),
        values={f"B{row + 1}": 10 * row for row in range(1, 11)},
    )
    found = examined(CONTRADICTED_EXAMPLE, task_of(tmp_path, "B2:B11", (given, gold)))
    assert bool(found) is is_suspect
    for each in found:
        assert (each.certainty, each.summary) == (
            Certainty.LIKELY,
            "the gold's B5 is 40, the input shows 70 there",
        )


# -- examples with fewer spaces --------------------------------------------------------------------


def joined(separator: str) -> tuple[bytes, bytes]:
    """A case that joins two parts; the input shows the result, joined by one space, in column D."""
    parts = [("nut  ", "M8"), ("bolt ", "M6"), ("ring ", "M4")]
    shown = [" ".join(f"{first} {second}".split()) for first, second in parts]
    given = [(*part, None, text) for part, text in zip(parts, shown, strict=True)]
    answers = [
        separator.join(part) if separator else text for part, text in zip(parts, shown, strict=True)
    ]
    return book(*given), book(
        *((*row[:2], answer, row[3]) for row, answer in zip(given, answers, strict=True))
    )


@pytest.mark.parametrize(("separator", "is_listed"), [(" ", True), ("", False)])
def test_a_gold_with_more_spaces_than_the_shown_result_is_likely(
    tmp_path: Path, separator: str, is_listed: bool
) -> None:
    found = examined(CONTRADICTED_EXAMPLE, task_of(tmp_path, "C1:C3", joined(separator)))
    assert [each.certainty for each in found] == [Certainty.LIKELY] * is_listed
    for each in found:
        assert "the input shows 'nut M8' in D1" in each.summary


def test_a_trimmed_column_is_not_a_contradicted_example(tmp_path: Path) -> None:
    untidy = ("nut   M8", "bolt   M6", "ring   M4")
    given = book(*((text,) for text in untidy))
    gold = book(*((text, " ".join(text.split())) for text in untidy))
    assert examined(CONTRADICTED_EXAMPLE, task_of(tmp_path, "B1:B3", (given, gold))) == []


# -- stated results, rows that should stay blank ---------------------------------------------------


@pytest.mark.parametrize(
    ("question", "gold", "cells"),
    [
        ("The second should give me a result of 60.", 73, ["B2"]),
        ("Subtract, resulting in 60.", 73, ["B2"]),
        ("I get 60 and do not know why.", 73, []),
        ("It should be 60, or 73: it should be 73.", 73, []),
        ("The second should give me 60.", 60, []),
        ("It should show 60% there.", 73, []),
    ],
)
def test_a_stated_result_that_the_gold_changes_is_likely(
    tmp_path: Path, question: str, gold: int, cells: list[str]
) -> None:
    given, changed = book((1, 25), (2, 60)), book((1, 25), (2, gold))
    task = task_of(tmp_path, "B1:B2", (given, changed), instruction=question)
    found = examined(STATED_RESULT, task)
    assert [each.evidence[0].cell for each in found] == cells
    assert all(each.certainty is Certainty.LIKELY for each in found)


BLANK_RULE = "If column A (Sales) is blank, the formula should return blank, otherwise add 1."


@pytest.mark.parametrize(
    ("question", "filled", "cells"),
    [
        (BLANK_RULE, 7, ["B2"]),
        (BLANK_RULE, None, []),
        ("If columns A and C are blank, then column B should be blank.", 7, []),
        ("If column A is blank, use 6 instead.", 7, []),
    ],
)
def test_a_row_that_should_stay_blank_is_likely(
    tmp_path: Path, question: str, filled: int | None, cells: list[str]
) -> None:
    given = book((1,), (None, None, "x"), (3,), (4,))
    gold = book((1, 2), (None, filled, "x"), (3, 4), (4, 5))
    found = examined(FILLED_BLANK, task_of(tmp_path, "B1:B4", (given, gold), instruction=question))
    assert [each.cell for suspect in found for each in suspect.evidence] == cells
    assert all(each.summary.endswith("though A2 is blank") for each in found)
