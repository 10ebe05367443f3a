"""The answer in a gold: reads its cells, compares two golds, and judges a workbook by a gold."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from judge.annotate.archive import CaseData
from judge.annotate.edits import Edit, SetCell, address
from judge.closable import Closable
from judge.compare.cells.answer_range import prepare
from judge.compare.cells.sides import RangeSide
from judge.compare.cells.value import comparator
from judge.compare.profiles import get_profile
from judge.core.limits import Limits
from judge.core.submission import Answer, Origin, Submission
from judge.core.task import Gold, Task, TestCase
from judge.formulas.references import references
from judge.grading.case import CaseJudge, Judgement
from judge.grading.running import RunOutcome, run_program
from judge.recalc.policy import Recalculator
from judge.sandbox.contract import Sandbox, SandboxSession
from judge.workbook.address import COLUMN_BITS, COLUMN_MASK, MAX_COLUMN, MAX_ROW
from judge.workbook.cell import Cell, CellRange, CellRef, CellValue
from judge.workbook.reader import Workbook, open_workbook


@dataclass(frozen=True, slots=True)
class MovedCell:
    """A cell of the answer whose value differs from that in the base case's gold."""

    ref: CellRef
    before: CellValue
    after: CellValue


def formulas_problem(task: Task, base: CaseData, edits: Sequence[Edit]) -> str:
    """Why the formulas of a case's gold cannot give the answer; empty if they can.

    The formulas can give the answer if every answer cell in which the gold differs from the input
    holds a formula, and if the formulas refer to every cell that the edits fill outside the used
    range of its sheet.

    Raises:
        WorkbookError, PositionError: the workbooks cannot be read.
    """
    gold, before = base.gold_workbook, base.input_workbook
    ranges = gold_ranges(task, gold)
    differing: list[str] = []
    for area in ranges:
        cells = gold.cells(area)
        stored = before.cells(area) if area.sheet in before.sheet_names else {}
        for position, cell in cells.items():
            if cell.formula is not None:
                differing.append(cell.formula)
            elif cell.value is not None and not same_cell(stored.get(position), cell):
                where = address(CellRef(area.sheet, *position))
                return f"{where} of the gold is an answer without a formula"
    if not differing:
        return "the gold's answer holds no formulas"
    reached = {reference for formula in set(differing) for reference in references(formula)}
    stored_cells = StoredCells(before)
    for edit in edits:
        if isinstance(edit, SetCell) and edit.content is not None:
            used = stored_cells.used_range(edit.ref.sheet)
            inside = used is not None and (
                edit.ref.row <= used.max_row and edit.ref.column <= used.max_column
            )
            if not inside and not any(
                area.min_row <= edit.ref.row <= area.max_row
                and area.min_column <= edit.ref.column <= area.max_column
                for area in reached
            ):
                return f"no formula of the gold reaches {address(edit.ref)}"
    return ""


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """The answer of one gold.

    Attributes:
        ranges: the rectangles that are compared.
        values: values of their cells, computed if the file holds no value that can be trusted.
        unknown: cells whose value could not be computed.
    """

    ranges: tuple[CellRange, ...]
    values: Mapping[CellRef, CellValue]
    unknown: frozenset[CellRef]


def answer_of(task: Task, gold: Workbook, recalculator: Recalculator) -> GoldAnswer:
    """The answer of a gold, with its formulas computed.

    A gold that a library wrote holds formulas without values, which must not be read as blanks. So
    all code reads a gold's values through this function.

    Raises:
        WorkbookError, PositionError: the gold cannot be read.
        EngineUnavailableError: an engine cannot be started.
    """
    ranges = gold_ranges(task, gold)
    computed = recalculator.fill(gold, ranges, origin=Origin.GOLD)
    values: dict[CellRef, CellValue] = {}
    unknown: set[CellRef] = set()
    for area in ranges:
        side = RangeSide(gold, area, computed)
        values |= {_ref(area.sheet, key): value for key, value in side.values().items()}
        unknown |= {_ref(area.sheet, key) for key in side.uncomputed()}
    return GoldAnswer(ranges, values, frozenset(unknown))


def _ref(sheet: str, key: int) -> CellRef:
    return CellRef(sheet, key >> COLUMN_BITS, key & COLUMN_MASK)


def moved_cells(
    task: Task, before: Workbook | bytes, after: bytes, recalculator: Recalculator
) -> tuple[MovedCell, ...]:
    """Cells of the answer that differ between two golds of a task, by the default rules.

    A cell that could not be computed in one of the golds does not count as changed.

    Raises:
        WorkbookError, PositionError: a gold cannot be read.
        EngineUnavailableError: an engine cannot be started.
    """
    old = answer_of(
        task, open_workbook(before) if isinstance(before, bytes) else before, recalculator
    )
    new = answer_of(task, open_workbook(after), recalculator)
    agree = comparator(get_profile("standard"))
    moved = []
    for old_range, new_range in zip(old.ranges, new.ranges, strict=True):
        stored = [value for value in old.values if _within(value, old_range)]
        positions = {(ref.row, ref.column) for ref in stored}
        positions |= {
            (value.row, value.column) for value in new.values if _within(value, new_range)
        }
        for position in sorted(positions):
            first, second = CellRef(old_range.sheet, *position), CellRef(new_range.sheet, *position)
            was, now = old.values.get(first), new.values.get(second)
            is_known = first not in old.unknown and second not in new.unknown
            if is_known and not agree(was, now):
                moved.append(MovedCell(second, was, now))
    return tuple(moved)


def _within(ref: CellRef, area: CellRange) -> bool:
    return (
        ref.sheet == area.sheet
        and area.min_row <= ref.row <= area.max_row
        and area.min_column <= ref.column <= area.max_column
    )


def gold_ranges(task: Task, gold: Workbook) -> tuple[CellRange, ...]:
    """The rectangles of a gold that are compared.

    Raises:
        WorkbookError, PositionError: the gold cannot be read, or the position does not fit it.
    """
    return prepare(
        task.checker,
        gold=gold,
        output=None,
    ).gold_ranges


def value_of(cell: Cell | None) -> CellValue:
    """The value of a stored cell; None if nothing is stored."""
    return None if cell is None else cell.value


class StoredCells:
    """The stored cells of a workbook by their position; each sheet is read once.

    Args:
        workbook: the workbook.
    """

    def __init__(self, workbook: Workbook) -> None:
        self._workbook = workbook
        self._sheets: dict[str, Mapping[tuple[int, int], Cell]] = {}
        self._used: dict[str, CellRange | None] = {}

    def __contains__(self, sheet: str) -> bool:
        """Whether the workbook has a worksheet of this name."""
        return sheet in self._workbook.sheet_names

    def get(self, ref: CellRef) -> Cell | None:
        """A cell; None if nothing is stored.

        Raises:
            WorkbookError: the sheet is missing or cannot be read.
        """
        if ref.sheet not in self._sheets:
            whole = CellRange(ref.sheet, 1, 1, MAX_ROW, MAX_COLUMN)
            self._sheets[ref.sheet] = self._workbook.cells(whole)
        return self._sheets[ref.sheet].get((ref.row, ref.column))

    def used_range(self, sheet: str) -> CellRange | None:
        """The rectangle around all cells of a sheet that are not empty."""
        if sheet not in self._used:
            self._used[sheet] = self._workbook.used_range(sheet)
        return self._used[sheet]


def same_content(first: StoredCells, second: StoredCells, ref: CellRef) -> bool:
    """Whether a cell holds the same constant or formula in two workbooks."""
    if ref.sheet not in second or ref.sheet not in first:
        return False
    return same_cell(first.get(ref), second.get(ref))


_strictly = comparator(get_profile("strict"))


def same_cell(first: Cell | None, second: Cell | None) -> bool:
    """Whether two stored cells hold the same constant or formula."""
    if (first.formula if first else None) != (second.formula if second else None):
        return False
    return (first is not None and first.formula is not None) or _strictly(
        value_of(first), value_of(second)
    )


def changed_cells(before: bytes, after: bytes) -> list[CellRef]:
    """Cells whose content differs between two workbooks: constants by value, formulas by text.

    Raises:
        WorkbookError: a workbook cannot be read.
    """
    first, second = open_workbook(before), open_workbook(after)
    changes = []
    for sheet in second.sheet_names:
        area = CellRange(sheet, 1, 1, MAX_ROW, MAX_COLUMN)
        old = first.cells(area) if sheet in first.sheet_names else {}
        new = second.cells(area)
        for position in sorted(old.keys() | new.keys()):
            was, now = old.get(position), new.get(position)
            formulas = [cell.formula if cell else None for cell in (was, now)]
            if formulas == [None, None]:
                differs = not _strictly(was.value if was else None, now.value if now else None)
            else:
                differs = formulas[0] != formulas[1]
            if differs:
                changes.append(CellRef(sheet, *position))
    return changes


def judge_workbooks(
    judge: CaseJudge, task: Task, gold: bytes, output: bytes, *, origin: Origin
) -> Judgement:
    """Judges an output workbook by a gold workbook.

    Args:
        judge: judges the output.
        task: the task, whose checker is used.
        gold: the gold workbook.
        output: the output workbook, which is not trusted.
        origin: where the output comes from.
    """
    case = TestCase(1, (), (Gold(data=gold),))
    return judge.judge(task, case, Answer.of_workbook(output, origin))


def run_on_workbook(
    session: SandboxSession, submission: Submission, input_data: bytes, limits: Limits
) -> RunOutcome:
    """Runs a submission on an input workbook.

    Raises:
        SandboxError: the sandbox failed, not the program.
    """
    return run_program(session, submission, {submission.input_path: input_data}, limits)


MAX_SESSIONS = 4
"""How many programs keep a sandbox session open; each session takes the memory of a container."""

_ProgramKey = tuple[str | None, str, str]


class ProgramRuns(Closable):
    """Runs programs on workbooks in the background, with one sandbox session for each program.

    Runs are done one after the other, in the order in which they were started.

    Args:
        sandbox: runs the programs.
        limits: limits of each run.
    """

    def __init__(self, sandbox: Sandbox, limits: Limits | None = None) -> None:
        self.sandbox = sandbox
        self._limits = limits or Limits()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="program-runs")
        self._sessions: OrderedDict[_ProgramKey, SandboxSession] = OrderedDict()
        self._started: dict[tuple[_ProgramKey, bytes], Future[RunOutcome]] = {}

    def start(self, programs: Iterable[Submission], input_data: bytes) -> None:
        """Starts runs; their outcomes may be requested later."""
        for program in programs:
            key = (_program_key(program), input_data)
            if key not in self._started:
                self._started[key] = self._worker.submit(self._run, program, input_data)

    def outcome(self, program: Submission, input_data: bytes) -> RunOutcome:
        """Waits for the outcome of a run, starting it if necessary; the outcome is not kept.

        Raises:
            SandboxError: the sandbox failed, not the program.
        """
        self.start([program], input_data)
        return self._started.pop((_program_key(program), input_data)).result()

    def close(self) -> None:
        """Cancels the runs that have not begun, and closes the sessions."""
        self._worker.shutdown(cancel_futures=True)
        self._started.clear()
        while self._sessions:
            self._sessions.popitem()[1].close()

    def _run(self, program: Submission, input_data: bytes) -> RunOutcome:
        key = _program_key(program)
        session = self._sessions.pop(key, None) or self.sandbox.session()
        if len(self._sessions) == MAX_SESSIONS:
            self._sessions.popitem(last=False)[1].close()
        try:
            outcome = run_on_workbook(session, program, input_data, self._limits)
        except BaseException:
            session.close()
            raise
        self._sessions[key] = session
        return outcome


def _program_key(program: Submission) -> _ProgramKey:
    return program.code, program.input_path, program.output_path
