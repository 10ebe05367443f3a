"""Corner cases with their golds, and a validator that rejects those that break the question."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from judge.annotate.answers import StoredCells, answer_of, formulas_problem
from judge.annotate.casebook import CaseData
from judge.annotate.edits import RenameSheet, SetCell
from judge.annotate.gold import LEAST_AGREEING, GoldMaker, Proposal
from judge.annotate.idea import Idea, Subject
from judge.annotate.mutants import CONTESTED, ideas
from judge.annotate.rules import answers_apart
from judge.annotate.tables import Kind, find_tables
from judge.comparison.answer_range import prepare
from judge.comparison.options import position_of
from judge.core.submission import Submission
from judge.core.task import Task
from judge.errors import PositionError, UsageError, WorkbookError
from judge.recalc.policy import Recalculator
from judge.workbook.cell import CellRange, ErrorValue
from judge.workbook.reader import Workbook, open_workbook


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A corner case to approve.

    Attributes:
        number: its number among the suggestions of the same task and seed.
        idea: what is changed.
        proposal: input and gold; None where the edits did not even fit the workbook.
        rejected: why it is not a case for this question, or empty.
        doubts: what to look at before it is accepted.
    """

    number: int
    idea: Idea
    proposal: Proposal | None
    rejected: str
    doubts: tuple[str, ...] = ()


def suggest(
    task: Task,
    base: CaseData,
    maker: GoldMaker,
    *,
    references: Sequence[Submission] = (),
    others: Sequence[CaseData] = (),
    seed: int = 0,
    only: Sequence[str] = (),
    numbers: Sequence[int] = (),
) -> Iterator[Suggestion]:
    """Corner cases of a task; each is computed when it is needed.

    Args:
        task: the task.
        base: the case to change.
        maker: makes the golds.
        references: solutions that are known to be right.
        others: cases whose answers a new one must not repeat.
        seed: the same seed gives the same suggestions.
        only: mutators to ask; all where none is named.
        numbers: which suggestions are wanted; all where none is named.

    Raises:
        WorkbookError, PositionError: the base case cannot be read.
        SandboxError: the sandbox failed.
    """
    subject = subject_of(task, base)
    sources = len(references) + (not formulas_problem(task, base, ()))
    for number, idea in enumerate(ideas(subject, f"{task.id}/{seed}"), start=1):
        if (numbers and number not in numbers) or (only and idea.mutator not in only):
            continue
        named = _named_values(task, base, idea)
        if named:
            yield Suggestion(number, idea, None, f"the question names {named!r}, which it changes")
            continue
        if idea.mutator in CONTESTED and sources < LEAST_AGREEING:
            yield Suggestion(number, idea, None, _ONE_SOURCE)
            continue
        try:
            proposal = maker.propose(task, base, idea.edits, references=references)
        except (WorkbookError, PositionError, UsageError) as error:
            yield Suggestion(number, idea, None, error.message)
            continue
        rejected = problem_of(
            task, base, proposal, idea, [base, *others], recalculator=maker.recalculator
        )
        yield Suggestion(number, idea, proposal, rejected, _doubts(proposal))


_ONE_SOURCE = "right solutions may differ here, and only one source says what is right"


def subject_of(task: Task, base: CaseData) -> Subject:
    """What the mutators have to work on.

    Raises:
        WorkbookError, PositionError: the base case cannot be read.
    """
    before, gold = open_workbook(base.input), open_workbook(base.gold)
    answer = prepare(
        task.checker,
        gold=gold,
        output=None,
    ).gold_ranges
    tables = find_tables(before, answer)
    position, sheet = position_of(task.checker)
    said = f"{task.instruction}\n{position}\n{sheet or ''}".casefold()
    named = {name.casefold() for name in before.sheet_names if name.casefold() in said}
    named |= {each.sheet.casefold() for each in answer}
    return Subject(
        tables=tuple(each for each in tables if _is_data(each.sheet, before)),
        sheets=before.sheet_names,
        date_1904=before.facts.date_1904,
        has_dates=any(column.kind is Kind.DATE for table in tables for column in table.columns),
        answer=answer,
        named=frozenset(named),
        limits=_limits(task, gold, answer),
    )


_NUMBER = re.compile(r"(?<![\w.$])\d+(?:\.\d+)?(?![\w.:])")


def _limits(task: Task, gold: Workbook, answer: Sequence[CellRange]) -> tuple[float, ...]:
    """Numbers that the question and the formulas of the answer name, the largest first."""
    formulas = {
        cell.formula for area in answer for cell in gold.formula_cells(area) if cell.formula
    }
    said = [task.instruction, *sorted(formulas)[:MOST_FORMULAS]]
    found = {float(each) for text in said for each in _NUMBER.findall(text)}
    plain = {int(each) if each.is_integer() else each for each in found if 1 < each < 10**9}
    return tuple(sorted(plain, reverse=True))


MOST_FORMULAS = 20


def _is_data(sheet: str, workbook: Workbook) -> bool:
    return any(tab.name == sheet and tab.state == "visible" for tab in workbook.tabs)


# -- the validator --------------------------------------------------------------------------------


def _named_values(task: Task, base: CaseData, idea: Idea) -> str | None:
    """Text that the question names and the idea removes, or None."""
    said = task.instruction.casefold()
    if idea.mutator not in _REPLACING:
        return None
    cells = StoredCells(open_workbook(base.input))
    for edit in idea.edits:
        if isinstance(edit, RenameSheet) and edit.sheet.casefold() in said:
            return edit.sheet
        if not isinstance(edit, SetCell):
            continue
        cell = cells.get(edit.ref)
        text = cell.value if cell is not None else None
        if isinstance(text, str) and len(text.strip()) > 2 and _is_word(text.strip(), said):
            return text
    return None


_REPLACING = frozenset({"unicode", "case", "spaces", "nbsp", "renamed-sheet", "text-as-numbers"})
"""Mutators that write text differently; if the question names the text, that breaks it."""


def _is_word(text: str, said: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text.casefold())}(?!\w)", said) is not None


def problem_of(
    task: Task,
    base: CaseData,
    proposal: Proposal,
    idea: Idea,
    others: Sequence[CaseData],
    *,
    recalculator: Recalculator,
) -> str:
    """Why a proposal is not a case for its question; empty if it is one.

    Args:
        task: the task.
        base: the case that it was made from.
        proposal: input and gold.
        idea: what was changed.
        others: cases whose answers it must not repeat, the base among them.
        recalculator: computes formulas of golds that have no value.
    """
    if proposal.gold is None:
        told = [f"{each.name}: {each.problem}" for each in proposal.sources if each.problem]
        return f"nothing says what the answer is ({'; '.join(told)})"
    if proposal.disagreeing:
        return "the sources disagree: " + "; ".join(
            f"{each.name}: {each.problem}" for each in proposal.disagreeing
        )
    if idea.mutator in CONTESTED and len(proposal.agreeing) < LEAST_AGREEING:
        return _ONE_SOURCE
    return _problem_of_answer(task, base, proposal, others, recalculator)


def _problem_of_answer(
    task: Task,
    base: CaseData,
    proposal: Proposal,
    others: Sequence[CaseData],
    recalculator: Recalculator,
) -> str:
    assert proposal.gold is not None
    gold = open_workbook(proposal.gold)
    if not proposal.moved:
        return "no cell of the answer moves"
    errors = {each.ref for each in proposal.moved if isinstance(each.after, ErrorValue)}
    if errors and not _has_errors(task, open_workbook(base.gold), recalculator):
        return f"the answer becomes an error in {len(errors)} cells"
    if all(each.after in {None, ""} for each in proposal.moved) and not _is_filled(
        task, gold, recalculator
    ):
        return "the answer becomes blank"
    for other in others:
        if answers_apart(task, open_workbook(other.gold), gold, recalculator).equal:
            return f"the answer is that of case {other.number}"
    if answers_apart(task, gold, open_workbook(proposal.input), recalculator).equal:
        return "the untouched input is its own answer"
    return ""


def _has_errors(task: Task, gold: Workbook, recalculator: Recalculator) -> bool:
    values = answer_of(task, gold, recalculator).values.values()
    return any(isinstance(value, ErrorValue) for value in values)


def _is_filled(task: Task, gold: Workbook, recalculator: Recalculator) -> bool:
    answer = answer_of(task, gold, recalculator)
    return bool(answer.unknown) or any(each not in {None, ""} for each in answer.values.values())


def _doubts(proposal: Proposal) -> tuple[str, ...]:
    doubts = [
        f"{each.name} says nothing: {each.problem}"
        for each in proposal.sources
        if each.agrees is None and each.problem
    ]
    if len(proposal.agreeing) < LEAST_AGREEING:
        doubts.insert(0, "only one source says so")
    return tuple(doubts)
