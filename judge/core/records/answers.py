"""What a worker of a cluster answers, as types: the head of an answer, and the check of a case."""
# Without `from __future__ import annotations`: see judge.files.forms.

from typing import TypedDict

from judge.files.forms import Amount, Count


class ReplyHead(TypedDict):
    """The head of an answer, before its records and outputs.

    ``judged`` lists for each case the position of the work and of the case in it, and the lengths
    of its record and of its output; ``checks`` for each check the position of the work and the
    length. A length of -1 says that there is no output.
    """

    seconds: Amount
    judged: list[list[int]]
    checks: list[list[int]]
    gone: str
    error: str


class CheckRecord(TypedDict):
    """A test case checked against itself: see :class:`judge.grading.verify.CaseCheck`."""

    task_id: str
    case: Count
    cells: Count
    gold_accepted: bool
    gold_problem: str
    untouched_accepted: bool | None
    input_problem: str
    uncached_formulas: Count
    not_calculated: Count
    notes: list[str]
    gold_forms: dict[str, bool]
    doubts: list[str]
