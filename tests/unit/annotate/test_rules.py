from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from judge.annotate.casebook import CaseData
from judge.annotate.rules import BrokenRule, check_cases
from judge.compare.cells.options import range_spec
from judge.recalc.policy import Recalculator
from tests.unit.annotate.books import table
from tests.unit.annotate.conftest import doubling_case
from tests.unit.annotate.test_gold import TASK


def case(number: int, *numbers: object) -> CaseData:
    return CaseData(number, *doubling_case(*numbers))


def broken(cases: Sequence[CaseData], records: Sequence[dict[str, object]] = ()) -> set[str]:
    return {each.rule for each in check_cases(TASK, cases, records=records, recalculator=NOTHING)}


FIRST = case(1, 1, 2, 3, 4)
NOTHING = Recalculator([], mode="never")


@pytest.mark.parametrize(
    ("cases", "rules"),
    [
        ([FIRST, case(2, 9, 2, 3, 4), case(3, 7, 8, 9, 4)], set()),
        ([FIRST], set()),
        ([FIRST, case(2, 1, 2, 3, 4)], {"first-change", "answers-differ"}),
        ([FIRST, case(2, 9, 2, 3, 4), case(3, 7, 8, 3, 4)], {"second-change"}),
        ([FIRST, case(2, 7, 8, 9, 4), case(3, 7, 8, 9, 4)], {"answers-differ"}),
        ([FIRST, case(2, 9, 2, 3, 4), case(3, 7, 8, 9, 4), case(4, 8, 2, 3, 4)], set()),
    ],
)
def test_answers_move_as_the_manual_asks(cases: list[CaseData], rules: set[str]) -> None:
    assert broken(cases) == rules


def test_the_only_cell_is_enough() -> None:
    first, second, third = (
        CaseData(number, table(("n", "d"), (number,)), table(("n", "d"), (number, 2 * number)))
        for number in (1, 2, 3)
    )
    assert broken([first, second, third]) == set()


def test_sheets_and_headings_stay() -> None:
    rows = ((5, 10), (6, 12), (7, 14))
    renamed = CaseData(
        2, table(("number", "double"), *rows, title="Other"), table(("number", "double"), *rows)
    )
    assert "sheets" in broken([FIRST, renamed])
    headed = CaseData(2, table(("figure", "double"), (9,)), table(("figure", "double"), (9, 18)))
    assert "structure" in broken([FIRST, headed])


def test_answers_that_were_left_in_the_input_are_found() -> None:
    task_rows = [(number, 2 * number) for number in range(1, 9)]
    full = table(("n", "d"), *task_rows)
    part = table(("n", "d"), *task_rows[:7], (8, None))
    few = table(("n", "d"), *task_rows[:3], *[(n, None) for n, _ in task_rows[3:]])
    task = replace(TASK, checker=range_spec("B1:B9"))
    (finding,) = check_cases(task, [CaseData(1, part, full)], recalculator=NOTHING)
    assert (finding.rule, finding.is_error) == ("leftover", False)
    assert "7 answers are in column B" in finding.message
    assert check_cases(task, [CaseData(1, few, full)], recalculator=NOTHING) == []


def test_data_far_from_the_corner_is_found() -> None:
    blank: tuple[object, ...] = (None,)
    far = table(*[blank] * 14, ("n", "d"), (1, 2))
    found = check_cases(TASK, [CaseData(1, far, far)], recalculator=NOTHING)
    assert [each.rule for each in found] == ["near-a1"]
    assert "A15" in found[0].message


def test_a_case_that_cannot_be_read_is_reported() -> None:
    found = check_cases(TASK, [FIRST, CaseData(2, b"nothing", b"nothing")], recalculator=NOTHING)
    assert [(each.case, each.rule) for each in found] == [(2, "readable")]


def test_what_was_recorded_is_what_changed() -> None:
    second = case(2, 9, 2, 3, 4)
    digests = second.revision.split("-")
    record = {
        "task": "7", "case": 2, "base": 1, "input": digests[0], "gold": digests[1],
        "changed": ["'Sheet'!A2"],
    }  # fmt: skip
    assert broken([FIRST, second], [record]) == set()
    (finding,) = check_cases(
        TASK, [FIRST, second], records=[{**record, "changed": []}], recalculator=NOTHING
    )
    assert finding == BrokenRule(
        "7",
        2,
        "recorded",
        "1 changed cells of the input are not in its record, the first is 'Sheet'!A2",
    )
    (finding,) = check_cases(
        TASK, [FIRST, second], records=[{**record, "gold": "other"}], recalculator=NOTHING
    )
    assert "not those of its last record" in finding.message
