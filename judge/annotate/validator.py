"""Whether an idea is a case for its question, and whether its answer is settled."""

from __future__ import annotations

import re
from collections.abc import Sequence

from judge.annotate.answers import StoredCells, answer_of
from judge.annotate.casebook import CaseData
from judge.annotate.edits import RenameSheet, SetCell
from judge.annotate.gold import MIN_AGREEING, Proposal
from judge.annotate.idea import Idea
from judge.annotate.rules import answers_apart
from judge.core.task import Task
from judge.recalc.policy import Recalculator
from judge.workbook.cell import ErrorValue
from judge.workbook.reader import Workbook, open_workbook


def named_values(task: Task, base: CaseData, idea: Idea) -> str | None:
    """Text that the question names and the idea removes, or None."""
    said = task.instruction.casefold()
    if idea.mutator not in _REPLACING:
        return None
    cells = StoredCells(base.input_workbook)
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
    others: Sequence[CaseData],
    *,
    recalculator: Recalculator,
    kills: bool = False,
) -> str:
    """Why a proposal is not a case for its question; empty if it is one.

    Args:
        task: the task.
        base: the case that it was made from.
        proposal: input and gold.
        others: cases whose answers it must not repeat, the base among them.
        recalculator: computes formulas of golds that have no value.
        kills: whether it makes an accepted program fail; then it is worth having whatever its
            answer is.
    """
    if proposal.gold is None:
        told = [f"{source.name}: {source.problem}" for source in proposal.sources if source.problem]
        return "" if kills else f"nothing says what the answer is ({'; '.join(told)})"
    gold = open_workbook(proposal.gold)
    if not proposal.moved and not kills:
        return "no cell of the answer moves"
    if kills:
        return ""
    errors = new_errors(task, base, proposal, recalculator)
    if errors:
        return f"the answer becomes an error in {errors} cells"
    if all(each.after in {None, ""} for each in proposal.moved) and not _is_filled(
        task, gold, recalculator
    ):
        return "the answer becomes blank"
    for other in others:
        if answers_apart(task, other.gold_workbook, gold, recalculator).equal:
            return f"the answer is that of case {other.number}"
    if answers_apart(task, gold, open_workbook(proposal.input), recalculator).equal:
        return "the untouched input is its own answer"
    return ""


def contest_of(proposal: Proposal, idea: Idea, errors: int = 0) -> str:
    """Why only a person can say that a proposal is right; empty if its sources settle it.

    Args:
        proposal: input and gold.
        idea: what was changed.
        errors: cells of the answer that become errors.
    """
    if proposal.gold is None:
        return "nothing says what the answer is; give it by hand"
    if proposal.is_open:
        return f"the sources disagree: {proposal.vote}"
    if errors:
        return f"the answer becomes an error in {errors} cells; the program gives something else"
    if idea.disputed:
        return idea.disputed
    if proposal.voices >= MIN_AGREEING:
        return ""
    if len(proposal.agreeing) > 1:
        return f"only one source says so: {' and '.join(proposal.agreeing)} do the same"
    return "only one source says so"


def new_errors(task: Task, base: CaseData, proposal: Proposal, recalculator: Recalculator) -> int:
    """How many cells of the answer become errors, if the base case's answer has none."""
    errors = sum(isinstance(each.after, ErrorValue) for each in proposal.moved)
    if errors and _has_errors(task, base.gold_workbook, recalculator):
        return 0
    return errors


def _has_errors(task: Task, gold: Workbook, recalculator: Recalculator) -> bool:
    values = answer_of(task, gold, recalculator).values.values()
    return any(isinstance(value, ErrorValue) for value in values)


def _is_filled(task: Task, gold: Workbook, recalculator: Recalculator) -> bool:
    answer = answer_of(task, gold, recalculator)
    return bool(answer.unknown) or any(value not in {None, ""} for value in answer.values.values())


def doubts_of(proposal: Proposal) -> tuple[str, ...]:
    """What else a person should know before a proposal is accepted."""
    return tuple(
        f"{source.name} says nothing: {source.problem}"
        for source in proposal.sources
        if source.agrees is None and source.problem
    )
