"""Checks whether a workbook is a valid case on which accepted solutions fail, as intended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judge.annotate.annotator import Annotator, record_facts
from judge.annotate.answers import ProgramRuns, StoredCells, changed_cells, same_cell
from judge.annotate.casebook import CaseData, SavedCase
from judge.annotate.edit import Edited
from judge.annotate.edits import Edit, Formula, SetCell
from judge.annotate.gold import MIN_AGREEING, Proposal
from judge.annotate.rules import check_cases
from judge.annotate.strength import Trial, killed, try_case
from judge.annotate.validator import problem_of
from judge.compare.profiles import get_profile
from judge.core.submission import Submission
from judge.core.verdict import Verdict
from judge.errors import SubmissionError, UsageError
from judge.grading.case import GradingRules
from judge.grading.store import SUBMISSIONS_FILE
from judge.suites.submissions import load_submissions
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.cell import Cell, CellRange, CellRef
from judge.workbook.reader import open_workbook


@dataclass(frozen=True, slots=True)
class Hack:
    """The outcome of the check.

    Attributes:
        proposal: the workbook with its gold.
        edits: how the workbook differs from the base case.
        refused: why the workbook is not a valid case, or empty.
        trials: the outcome for each accepted solution; empty if the workbook is not a valid case.
    """

    proposal: Proposal
    edits: tuple[Edit, ...]
    refused: str
    trials: tuple[Trial, ...] = ()

    @property
    def kills(self) -> tuple[Trial, ...]:
        """The accepted solutions that the workbook kills."""
        return tuple(killed(self.trials))

    @property
    def admitted(self) -> bool:
        """Whether the workbook is a valid case that kills an accepted solution."""
        return not self.refused and bool(self.kills)


def try_hack(
    annotator: Annotator,
    task_id: str,
    workbook: bytes,
    *,
    references: Sequence[Submission],
    accepted: Mapping[str, Submission],
    base: int | None = None,
) -> Hack:
    """Validates a workbook, computes its gold, and judges all accepted solutions on it.

    The formulas of the base case's gold count as a reference if they can give the answer.

    Args:
        annotator: the suite.
        task_id: the task.
        workbook: the input.
        references: solutions that are known to be right.
        accepted: name -> solution that all existing cases accept.
        base: the case that the workbook was made from; None for the first case.

    Raises:
        WorkbookError: the workbook cannot be read.
        SandboxError: the sandbox failed.
    """
    task = annotator.task(task_id)
    start = annotator.book.case(task_id, base if base is not None else task.cases[0].number)
    problem = other_task_problem(annotator, task_id, start, workbook)
    if problem:
        return Hack(Proposal(workbook, None, ()), (), problem)
    edits = edits_between(start.input, workbook)
    proposal = annotator.maker.propose(
        task, start, edits, references=references, edited=Edited(workbook, ())
    )
    refused = _unsettled(proposal)
    if refused or proposal.gold is None:
        return Hack(proposal, tuple(edits), refused)
    with ProgramRuns(annotator.sandbox) as runs:
        trials = try_case(
            task,
            CaseData(0, proposal.input, proposal.gold),
            accepted,
            runs,
            annotator.recalculator,
            GradingRules(get_profile("standard")),
        )
    refused = _refusal(annotator, task_id, start, proposal, kills=bool(killed(trials)))
    return Hack(proposal, tuple(edits), refused, () if refused else tuple(trials))


MIN_SHARED = 0.1
"""Smallest share of the base case's cells that a workbook for the same task must keep."""


def other_task_problem(annotator: Annotator, task_id: str, base: CaseData, workbook: bytes) -> str:
    """Why a workbook does not belong to this task; empty if it may.

    Raises:
        WorkbookError: the workbook cannot be read.
    """
    first, second = open_workbook(base.input), open_workbook(workbook)
    own = [name for name in first.sheet_names if name in second.sheet_names]
    for other in annotator.book.suite.tasks:
        for case in other.cases if other.id != task_id else ():
            if case.input_path.stat().st_size == len(workbook) and (
                case.input_path.read_bytes() == workbook
            ):
                return f"this is the input of case {case.number} of task {other.id}"
    if not own:
        return (
            f"this workbook is not one of task {task_id}: it has the sheets "
            f"{', '.join(second.sheet_names)}, those of the task are {', '.join(first.sheet_names)}"
        )
    unchanged = total = 0
    for name in own:
        whole = CellRange(name, 1, 1, MAX_ROW, MAX_COLUMN)
        old, new = first.cells(whole), second.cells(whole)
        total += len(old)
        unchanged += sum(same_cell(cell, new.get(position)) for position, cell in old.items())
    if total and unchanged < MIN_SHARED * total:
        return (
            f"this workbook is not one of task {task_id}: of the {total} cells of case "
            f"{base.number}, it has {unchanged}"
        )
    return ""


def solutions_file(path: Path) -> Path:
    """The path of a file of solutions: the given path, or the file in a run's directory.

    Raises:
        SubmissionError: a directory holds no solutions.
    """
    if not path.is_dir():
        return path
    file = path / SUBMISSIONS_FILE
    if not file.is_file():
        raise SubmissionError(
            f"{path} holds no {SUBMISSIONS_FILE}",
            hint="Name a file of solutions (.jsonl), or the directory of a run.",
        )
    return file


def accepted_solutions(
    annotator: Annotator, task_id: str, files: Sequence[Path]
) -> dict[str, Submission]:
    """Solutions of a task that all its cases accept, by name.

    Args:
        annotator: the suite.
        task_id: the task.
        files: files of solutions, and results directories with such a file; files without a
            solution of the task are ignored.

    Raises:
        SubmissionError: a file cannot be used.
        UsageError: no file has a solution of the task that is accepted.
    """
    task = annotator.task(task_id)
    by_name: dict[str, Submission] = {}
    names = [file.name for file in files]
    for given in files:
        file = solutions_file(given)
        shown = given.name if names.count(given.name) == 1 else str(given)
        for submission in load_submissions(file, annotator.book.suite, ids=[task_id]):
            name = submission.label or submission.model or "solution"
            by_name[f"{shown}: {name} #{submission.sample}"] = submission
    rules = GradingRules(get_profile("standard"))
    with ProgramRuns(annotator.sandbox) as runs:
        for case in annotator.cases(task_id):
            for trial in try_case(task, case, by_name, runs, annotator.recalculator, rules):
                if trial.verdict is not Verdict.AC:
                    del by_name[trial.name]
    if not by_name:
        raise UsageError(
            f"no solution of task {task_id} is accepted on all its cases",
            hint="A case is only useful if it makes an accepted program fail.",
        )
    return by_name


def _unsettled(proposal: Proposal) -> str:
    """Why the answer is not settled; empty if independent sources agree on it."""
    if proposal.gold is None:
        return f"no source gives the answer ({'; '.join(proposal.problems)})"
    if proposal.is_open:
        return f"the sources disagree: {proposal.vote}"
    if proposal.independent < MIN_AGREEING:
        same = (
            f"{' and '.join(proposal.agreeing)} count as one" if len(proposal.agreeing) > 1 else ""
        )
        return (
            f"two independent references must agree, but only {proposal.independent} can be used "
            f"({'; '.join(filter(None, [same, *proposal.problems]))})"
        )
    return ""


def _refusal(
    annotator: Annotator, task_id: str, base: CaseData, proposal: Proposal, *, kills: bool
) -> str:
    task = annotator.task(task_id)
    problem = problem_of(
        task,
        base,
        proposal,
        annotator.cases(task_id),
        recalculator=annotator.recalculator,
        kills=kills,
    )
    if problem:
        return problem
    assert proposal.gold is not None
    new = CaseData(base.number + 1, proposal.input, proposal.gold)
    broken = [
        case
        for case in check_cases(
            task,
            [base, new],
            recalculator=annotator.recalculator,
            killing={new.number} if kills else (),
        )
        if case.is_error
    ]
    return broken[0].message if broken else ""


def save_hack(annotator: Annotator, task_id: str, author: str, hack: Hack) -> SavedCase:
    """Saves an accepted workbook as a case of its task.

    Raises:
        ConflictError: somebody else saved the case in the meantime.
    """
    assert hack.admitted, "only what was admitted is saved"
    assert hack.proposal.gold is not None
    draft = annotator.book.begin(task_id, author)
    draft = annotator.book.extend(draft, hack.edits)
    facts = {
        "kind": "hack",
        **record_facts(draft, hack.proposal),
        "kills": [kill.name for kill in hack.kills],
    }
    return annotator.book.save(draft, hack.proposal.input, hack.proposal.gold, facts)


def edits_between(before: bytes, after: bytes) -> list[Edit]:
    """The edits that give one workbook the cells of another; other differences are ignored.

    Raises:
        WorkbookError: a workbook cannot be read.
    """
    cells = StoredCells(open_workbook(after))
    old_sheets = open_workbook(before).sheet_names
    return [
        _edit_of(ref, cells.get(ref))
        for ref in changed_cells(before, after)
        if ref.sheet in old_sheets
    ]


def _edit_of(ref: CellRef, cell: Cell | None) -> SetCell:
    if cell is None:
        return SetCell(ref, None)
    return SetCell(ref, Formula(cell.formula[1:]) if cell.formula else cell.value)
