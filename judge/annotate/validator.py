"""Decides whether an idea is a valid case of its question, and whether its answer is settled.

If no source gives the answer for an input, each program is compared with itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from judge.annotate.answers import (
    ProgramRuns,
    StoredCells,
    answer_of,
    gold_ranges,
    judge_workbooks,
)
from judge.annotate.casebook import CaseData
from judge.annotate.edit import apply_edits
from judge.annotate.edits import RenameSheet, SetCell
from judge.annotate.gold import CARRIED, MIN_AGREEING, GoldMaker, Proposal
from judge.annotate.idea import Idea, Twin, Values
from judge.annotate.relations import DistinctColumn, distinct_column
from judge.annotate.rules import answers_apart
from judge.annotate.strength import Trial
from judge.annotate.tables import Kind, kind_of_value
from judge.core.records.cases import CaseComparison
from judge.core.submission import Origin, Submission
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import PositionError, WorkbookError
from judge.grading.case import CaseJudge, GradingRules, Judgement
from judge.recalc.policy import Recalculator
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.cell import CellRange, CellRef, CellValue, ErrorValue
from judge.workbook.editing.cells import set_cells
from judge.workbook.reader import Workbook, open_workbook

_REPLACING = frozenset({"unicode", "case", "spaces", "nbsp", "renamed-sheet", "text-as-numbers"})
"""Mutators that change how text is written, which contradicts a question that names the text."""


def named_values(task: Task, base: CaseData, idea: Idea) -> str | None:
    """Text that the question names and the idea removes; None if it removes no such text."""
    text_ = task.instruction.casefold()
    if idea.mutator not in _REPLACING:
        return None
    cells = StoredCells(base.input_workbook)
    for edit in idea.edits:
        if isinstance(edit, RenameSheet) and edit.sheet.casefold() in text_:
            return edit.sheet
        if not isinstance(edit, SetCell):
            continue
        cell = cells.get(edit.ref)
        text = cell.value if cell is not None else None
        if isinstance(text, str) and len(text.strip()) > 2 and _is_word(text.strip(), text_):
            return text
    return None


def _is_word(text: str, question: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text.casefold())}(?!\w)", question) is not None


def problem_of(
    task: Task,
    base: CaseData,
    proposal: Proposal,
    others: Sequence[CaseData],
    *,
    recalculator: Recalculator,
    kills: bool = False,
) -> str:
    """Why a proposal is not a valid case of its question; empty if it is valid.

    Args:
        task: the task.
        base: the case that it was made from.
        proposal: input and gold.
        others: cases whose answers it must not repeat, including the base.
        recalculator: computes formulas of golds that have no value.
        kills: whether it makes an accepted program fail; it is then useful whatever its answer is.
    """
    if proposal.gold is None:
        return "" if kills else f"no source gives the answer ({'; '.join(proposal.problems)})"
    gold = open_workbook(proposal.gold)
    if not proposal.moved and not kills:
        return "no cell of the answer moves"
    if kills:
        return ""
    errors = new_errors(task, base, proposal, recalculator)
    if errors:
        return f"the answer becomes an error in {errors} cells"
    if all(change.after in {None, ""} for change in proposal.moved) and not _is_filled(
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
    """Why only a person can decide that a proposal is right; empty if its sources settle it.

    Args:
        proposal: input and gold.
        idea: the changes.
        errors: how many cells of the answer become errors.
    """
    if proposal.gold is None:
        return "no source gives the answer: give it by hand"
    if proposal.is_open:
        return f"the sources disagree: {proposal.vote}"
    if errors:
        return f"the answer becomes an error in {errors} cells; the program gives something else"
    if idea.disputed:
        return idea.disputed
    if proposal.independent >= MIN_AGREEING:
        return ""
    if proposal.agreeing == (CARRIED,):
        return f"{idea.relation}; no other source confirms it"
    if len(proposal.agreeing) > 1:
        return (
            f"only one source gives this answer: {' and '.join(proposal.agreeing)} "
            "compute it in the same way"
        )
    return "only one source gives this answer"


def new_errors(task: Task, base: CaseData, proposal: Proposal, recalculator: Recalculator) -> int:
    """How many cells of the answer become errors; 0 if the base case's answer already has some."""
    errors = sum(isinstance(change.after, ErrorValue) for change in proposal.moved)
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
    """Further doubts that a person should see before accepting a proposal."""
    return tuple(
        f"{source.name} gives no answer: {source.problem}"
        for source in proposal.sources
        if source.agrees is None and source.problem
    )


class SelfComparison:
    """Compares a program's answers to two related inputs.

    Args:
        task: the task.
        base: the case that ideas change.
        others: the task's other published cases.
        maker: computes formulas and runs programs.
        rules: how answers are compared.
        runs: runs the programs.
    """

    def __init__(
        self,
        task: Task,
        base: CaseData,
        others: Sequence[CaseData],
        maker: GoldMaker,
        rules: GradingRules,
        runs: ProgramRuns,
    ) -> None:
        self._task = task
        self._base = base
        self._maker = maker
        self._judge = CaseJudge(maker.recalculator, rules)
        self._runs = runs
        self._outputs: dict[tuple[str, bytes], bytes | None] = {}
        self._once: DistinctColumn | None = None
        self.golds: tuple[Values, ...] = ()
        try:
            cases = [base, *others]
            self.golds = tuple(self._values(case.gold) for case in cases)
            self._once = distinct_column(
                self.golds,
                [_texts(case.input) for case in cases],
                _headings(task, base),
                task.instruction,
            )
        except (WorkbookError, PositionError):
            pass

    def broken(self, idea: Idea, programs: Mapping[str, Submission]) -> tuple[Trial, ...]:
        """The programs whose answer to the idea's input contradicts all twins.

        A twin with edits expects the program's own answer to the twin's input; a twin without edits
        expects the gold of the base case. Programs for which the idea's
        premise does not hold are left out.

        Raises:
            WorkbookError: the edits do not fit the workbook.
            SandboxError: the sandbox failed.
        """
        problems = []
        for name, program in programs.items():
            if idea.premise and not self._premise_holds(idea, program):
                continue
            output = self._answer(program, self._edited(idea.edits), idea.word, idea.plain)
            if output is None:
                continue
            verdicts = [self._compared(twin, idea, program, output) for twin in idea.twins]
            if all(verdict is not None and verdict.verdict is Verdict.WA for verdict in verdicts):
                first = next(verdict for verdict in verdicts if verdict is not None)
                problems.append(Trial(name, first.verdict, first.cause, first.comparison))
        return tuple(problems)

    def _premise_holds(self, idea: Idea, program: Submission) -> bool:
        output = self._answer(program, self._edited(idea.premise), "", "")
        return output is not None and self._judged(self._base.gold, output).verdict is Verdict.AC

    def _compared(
        self, twin: Twin, idea: Idea, program: Submission, output: bytes
    ) -> Judgement | None:
        """Compares an output with the program's output on a twin; None if the program has none."""
        expected: bytes | None = self._base.gold
        if twin.edits:
            expected = self._answer(program, self._edited(twin.edits), twin.word, idea.plain)
        return None if expected is None else self._judged(expected, output)

    def _judged(self, expected: bytes, output: bytes) -> Judgement:
        return judge_workbooks(self._judge, self._task, expected, output, origin=Origin.FINISHED)

    def repeated(
        self, input_data: bytes, programs: Mapping[str, Submission]
    ) -> tuple[tuple[Trial, ...], str]:
        """The programs whose answer repeats values that no gold repeats, and the reason."""
        cells, reason = [], ""
        for name, program in programs.items() if self._once is not None else ():
            assert self._once is not None
            output = self._answer(program, input_data, "", "")
            try:
                again = self._once.broken_by(self._values(output)) if output is not None else ""
            except (WorkbookError, PositionError):
                continue
            if again:
                reason = (
                    "in a column that the question names, no gold repeats a value, although the "
                    f"inputs do; the program gives {again!r} more than once"
                )
                cells.append(Trial(name, Verdict.WA, reason, CaseComparison()))
        return tuple(cells), reason

    # -- answers ----------------------------------------------------------------------------------

    def _edited(self, edits: Sequence[object]) -> bytes:
        return apply_edits(
            self._base.input,
            edits,  # type: ignore[arg-type]
            recalculator=self._maker.recalculator,
        ).data

    def _answer(
        self, program: Submission, input_data: bytes, word: str, plain: str
    ) -> bytes | None:
        """The base case's gold with a program's answer in it; None if the program gives none."""
        key = (program.code or "", input_data)
        if key not in self._outputs:
            outcome = self._runs.outcome(program, input_data)
            data = outcome.answer.data if outcome.answer is not None else None
            self._outputs[key] = (
                None if data is None else self._maker.answer_in(self._task, self._base.gold, data)
            )
        answer = self._outputs[key]
        if answer is None or not word:
            return answer
        edits = [
            SetCell(ref, plain) for ref, value in self._values(answer).items() if value == word
        ]
        return set_cells(answer, edits) if edits else answer

    def _values(self, workbook: bytes) -> Values:
        return answer_of(self._task, open_workbook(workbook), self._maker.recalculator).values


def _headings(task: Task, base: CaseData) -> dict[tuple[str, int], str]:
    """Sheet and column -> the text above the answer or, without any, in its first row."""
    gold = open_workbook(base.gold)
    cells = StoredCells(gold)
    values: dict[tuple[str, int], str] = {}
    for area in gold_ranges(task, gold):
        for column in range(area.min_column, area.max_column + 1):
            for row in (area.min_row - 1, area.min_row):
                cell = cells.get(CellRef(area.sheet, row, column)) if row else None
                if cell is not None and isinstance(cell.value, str) and cell.formula is None:
                    values.setdefault((area.sheet, column), cell.value)
    return values


def _texts(data: bytes) -> list[list[CellValue]]:
    """The text in each column of a workbook."""
    workbook = open_workbook(data)
    columns: dict[tuple[str, int], list[CellValue]] = {}
    for sheet in workbook.sheet_names:
        for (_, column), cell in workbook.cells(
            CellRange(sheet, 1, 1, MAX_ROW, MAX_COLUMN)
        ).items():
            if kind_of_value(cell.value) is Kind.TEXT:
                columns.setdefault((sheet, column), []).append(cell.value)
    return list(columns.values())
