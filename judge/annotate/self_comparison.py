"""Programs compared with themselves, where no source says what the answer of an input is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from judge.annotate.answers import StoredCells, answer_of, gold_ranges
from judge.annotate.casebook import CaseData
from judge.annotate.edit import apply_edits
from judge.annotate.edits import SetCell
from judge.annotate.gold import GoldMaker
from judge.annotate.idea import Idea, Twin
from judge.annotate.judging import judge_workbooks, run_on_workbook
from judge.annotate.relations import OnceEach, Values, once_each
from judge.annotate.strength import Trial
from judge.annotate.tables import Kind, kind_of_value
from judge.core.limits import Limits
from judge.core.records.cases import CaseComparison
from judge.core.submission import Origin, Submission
from judge.core.task import Task
from judge.core.verdict import Verdict
from judge.errors import PositionError, WorkbookError
from judge.grading.case import CaseJudge, GradingRules, Judgement
from judge.workbook.address import MAX_COLUMN, MAX_ROW
from judge.workbook.cell import CellRange, CellRef, CellValue
from judge.workbook.editing.cells import set_cells
from judge.workbook.reader import open_workbook


class SelfComparison:
    """Compares what programs answer to two inputs that belong together.

    Args:
        task: the task.
        base: the case that ideas change.
        others: its other published cases.
        maker: computes and runs.
        rules: how answers are compared.
        limits: bounds of each run.
    """

    def __init__(
        self,
        task: Task,
        base: CaseData,
        others: Sequence[CaseData],
        maker: GoldMaker,
        rules: GradingRules,
        limits: Limits,
    ) -> None:
        self._task = task
        self._base = base
        self._maker = maker
        self._judge = CaseJudge(maker.recalculator, rules)
        self._limits = limits
        self._outputs: dict[tuple[str, bytes], bytes | None] = {}
        self._once: OnceEach | None = None
        self.golds: tuple[Values, ...] = ()
        try:
            cases = [base, *others]
            self.golds = tuple(self._values(case.gold) for case in cases)
            self._once = once_each(
                self.golds,
                [_texts(case.input) for case in cases],
                _headings(task, base),
                task.instruction,
            )
        except (WorkbookError, PositionError):
            pass

    def broken(self, idea: Idea, programs: Mapping[str, Submission]) -> tuple[Trial, ...]:
        """The programs whose answer to an idea is that of none of its twins.

        A program that does not give the gold of the base case after the idea's premise is left out.

        Raises:
            WorkbookError: the edits do not fit the workbook.
            SandboxError: the sandbox failed.
        """
        found = []
        for name, program in programs.items():
            if idea.premise and not self._premise_holds(idea, program):
                continue
            output = self._answer(program, self._edited(idea.edits), idea.word, idea.plain)
            if output is None:
                continue
            verdicts = [self._compared(twin, idea, program, output) for twin in idea.twins]
            if all(verdict is not None and verdict.verdict is Verdict.WA for verdict in verdicts):
                first = next(verdict for verdict in verdicts if verdict is not None)
                found.append(Trial(name, first.verdict, first.cause, first.comparison))
        return tuple(found)

    def _premise_holds(self, idea: Idea, program: Submission) -> bool:
        output = self._answer(program, self._edited(idea.premise), "", "")
        return output is not None and self._judged(self._base.gold, output).verdict is Verdict.AC

    def _compared(
        self, twin: Twin, idea: Idea, program: Submission, output: bytes
    ) -> Judgement | None:
        """An answer judged by that of a twin; None if the twin has none."""
        expected: bytes | None = self._base.gold
        if twin.edits:
            expected = self._answer(program, self._edited(twin.edits), twin.word, idea.plain)
        return None if expected is None else self._judged(expected, output)

    def _judged(self, expected: bytes, output: bytes) -> Judgement:
        return judge_workbooks(self._judge, self._task, expected, output, origin=Origin.FINISHED)

    def repeated(
        self, input_data: bytes, programs: Mapping[str, Submission]
    ) -> tuple[tuple[Trial, ...], str]:
        """The programs whose answer repeats values that all golds hold once, and the reason."""
        found, reason = [], ""
        for name, program in programs.items() if self._once is not None else ():
            assert self._once is not None
            output = self._answer(program, input_data, "", "")
            try:
                again = self._once.broken_by(self._values(output)) if output is not None else ""
            except (WorkbookError, PositionError):
                continue
            if again:
                reason = (
                    "the golds hold each value of a column that the question names once, though "
                    f"the inputs repeat them; the program gives {again!r} more than once"
                )
                found.append(Trial(name, Verdict.WA, reason, CaseComparison()))
        return tuple(found), reason

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
            with self._maker.sandbox.session() as session:
                outcome = run_on_workbook(session, program, input_data, self._limits)
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
    """The text above, or else on top of, each column of the answer."""
    gold = open_workbook(base.gold)
    cells = StoredCells(gold)
    found: dict[tuple[str, int], str] = {}
    for area in gold_ranges(task, gold):
        for column in range(area.min_column, area.max_column + 1):
            for row in (area.min_row - 1, area.min_row):
                cell = cells.get(CellRef(area.sheet, row, column)) if row else None
                if cell is not None and isinstance(cell.value, str) and cell.formula is None:
                    found.setdefault((area.sheet, column), cell.value)
    return found


def _texts(data: bytes) -> list[list[CellValue]]:
    """The columns of text of a workbook."""
    workbook = open_workbook(data)
    columns: dict[tuple[str, int], list[CellValue]] = {}
    for sheet in workbook.sheet_names:
        for (_, column), cell in workbook.cells(
            CellRange(sheet, 1, 1, MAX_ROW, MAX_COLUMN)
        ).items():
            if kind_of_value(cell.value) is Kind.TEXT:
                columns.setdefault((sheet, column), []).append(cell.value)
    return list(columns.values())
