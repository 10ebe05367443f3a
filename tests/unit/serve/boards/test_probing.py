"""What a report on probing lists, and what it does not list."""

from __future__ import annotations

import pytest

from judge.serve.boards.feedback import ACCEPTED, answer_of
from judge.serve.boards.probing import Agreement, Variants, agreements, skeleton, variants

PROGRAM = "def solve():\n    # {comment}\n    return {value}\n"


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (PROGRAM.format(comment="a", value=1), PROGRAM.format(comment="b", value=22), True),
        (PROGRAM.format(comment="a", value="'x'"), PROGRAM.format(comment="a", value=7), True),
        (PROGRAM.format(comment="a", value="x"), PROGRAM.format(comment="a", value="y"), False),
        ("17", "18", True),
        ("17 'unclosed", "18 'unclosed", True),
        ("total: 17", "sum: 17", False),
    ],
)
def test_programs_are_compared_without_literals_and_comments(
    one: str, two: str, same: bool
) -> None:
    assert (skeleton(one) == skeleton(two)) is same


def test_three_answers_that_differ_in_literals_alone_are_listed() -> None:
    answers = [("ann", "7", f"sub{n}", f"print({n})") for n in range(3)]
    answers += [("bob", "7", f"sub{n}", f"print({n})") for n in range(2)]
    answers += [("cyd", "7", f"sub{n}", "print(1)") for n in range(9)]
    assert variants(answers) == [Variants("ann", "7", 3, 3)]


def test_accounts_that_share_wrong_answers_are_listed() -> None:
    shared = {(str(task), 1): frozenset({"a", str(task)}) for task in range(4)}
    other = {case: frozenset({"other"}) for case in shared}
    wrong = {"ann": shared, "bob": {**shared, ("9", 1): frozenset({"x"})}, "cyd": other}
    assert agreements(wrong) == [Agreement(("ann", "bob"), 4, 4)]


def test_an_accepted_answer_is_not_a_wrong_one() -> None:
    assert answer_of({"verdict": "AC"}) == ACCEPTED  # type: ignore[typeddict-item]
